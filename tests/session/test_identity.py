"""An attempt is judged only under its own conditions: no test passes on another one's medal."""

from __future__ import annotations

import pytest
from plugin_session import Session

ONE = "--mle-competition=demo-digits"
COPIES = """
    import os, shutil
    shutil.copy(os.environ["DATA_DIR"] + "/sample_submission.csv",
                os.environ["SUBMISSION_DIR"] + "/submission.csv")
"""


def test_one_more_parameter_changes_nothing(session: Session, workers: tuple[str, ...]) -> None:
    session.pytester.makepyfile(
        test_mine="""
        import pytest

        @pytest.mark.mle(competition="demo-digits")
        @pytest.mark.parametrize("speed", ["fast", "slow"])
        def test_mine(mle_grade, speed):
            assert mle_grade.valid
        """
    )
    result = session.run(
        "--mle-agent=dummy",
        "test_mine.py",
        "--mle-run=r",
        "--mle-fail-under=60",
        "--mle-report=r.json",
        *workers,
    )
    result.assert_outcomes(passed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["missed: any-medal rate * is 0.00 %, below the bar of 60 %*"])
    (only,) = session.report("r.json")["results"]
    assert (only["competition"], only["seed"], only["outcome"]) == ("demo-digits", 0, "graded")
    assert list(session.records("r")) == ["demo-digits/seed0/attempt1"]


def test_a_broken_agent_does_not_pass_on_anothers_medal(
    session: Session, workers: tuple[str, ...]
) -> None:
    tests = session.path / "tests"
    for name in ("option", "broken"):
        (tests / name).mkdir(parents=True)
        (tests / name / f"test_{name}.py").write_text(
            "import pytest\n\n"
            "@pytest.mark.mle(competition='demo-digits')\n"
            f"def test_{name}(mle_grade):\n    assert mle_grade.valid\n"
        )
    (tests / "broken" / "conftest.py").write_text(
        "import pytest\nfrom pytest_mlebench import Agent\n\n"
        "@pytest.fixture\ndef mle_agent():\n    return Agent('broken', command=('false',))\n"
    )
    result = session.run(
        "--mle-agent=dummy", "tests", "--mle-run=r", "--mle-report=r.json", *workers
    )
    result.assert_outcomes(passed=1, failed=1)
    report = session.report("r.json")
    assert {(r["agent"], r["outcome"]) for r in report["results"]} == {
        ("dummy", "graded"),
        ("broken", "failed"),
    }
    assert [(row["agent"], row["valid"]["mean"]) for row in report["rates"]] == [
        ("broken", 0.0),
        ("dummy", 100.0),
    ]
    assert report["disclosure"]["agent"] in ("dummy, broken", "broken, dummy")
    assert len(session.records("r")) == 2
    result.stdout.fnmatch_lines(["agent broken", "agent dummy"])


def test_an_agent_of_the_same_name_is_another_agent(session: Session) -> None:
    session.pytester.makepyfile(
        test_mine="""
        import pytest
        from pytest_mlebench import Agent

        class TestOther:
            @pytest.fixture
            def mle_agent(self):
                return Agent("dummy", command=("false",))

            @pytest.mark.mle(competition="demo-digits")
            def test_other(self, mle_grade):
                assert not mle_grade.valid

        @pytest.mark.mle(competition="demo-digits")
        def test_option(mle_grade):
            assert mle_grade.valid
        """
    )
    session.run("--mle-agent=dummy", "test_mine.py", "--mle-report=r.json").assert_outcomes(
        passed=2
    )
    agents = [result["agent"] for result in session.report("r.json")["results"]]
    assert sorted(agents)[0] == "dummy"
    assert sorted(agents)[1].startswith("dummy [mle_agent of ")


def test_other_limits_make_another_attempt(session: Session, workers: tuple[str, ...]) -> None:
    sleepy = session.agent("sleepy", "import time; time.sleep(3)\n" + COPIES.replace("    ", ""))
    session.pytester.makepyfile(
        test_mine="""
        import pytest

        @pytest.mark.mle(competition="demo-digits")
        def test_long(mle_grade):
            assert mle_grade.valid

        @pytest.mark.mle(competition="demo-digits", limits={"time": "1s"})
        def test_short(mle_grade):
            assert mle_grade.valid
        """
    )
    result = session.run(
        f"--mle-agent={sleepy}", "test_mine.py", "--mle-run=r", "--mle-report=r.json", *workers
    )
    result.assert_outcomes(passed=1, failed=1)
    found = {(r["conditions"], r["outcome"]) for r in session.report("r.json")["results"]}
    assert found == {("", "graded"), ("time 1s", "failed")}
    fingerprints = {record["fingerprint"] for record in session.records("r").values()}
    assert len(fingerprints) == 2
    limits = session.report("r.json")["disclosure"]["limits"]
    assert limits["time"] in ("10m, 1s", "1s, 10m")


def test_an_agent_that_was_overridden_is_disclosed_as_it_ran(session: Session) -> None:
    session.pytester.makeconftest(
        """
        import pytest
        from pytest_mlebench import Agent

        def solve(context):
            sample = (context.data / "sample_submission.csv").read_text()
            (context.submission / "submission.csv").write_text(sample)

        @pytest.fixture
        def mle_agent():
            return Agent("mine", version="2.1", function=solve, network="none")
        """
    )
    session.pytester.makepyfile(
        test_mine="""
        import pytest

        @pytest.mark.mle(competition="demo-digits", seeds=2, limits={"time": "20s"})
        def test_mine(mle_grade):
            assert mle_grade.valid
        """
    )
    result = session.run("--mle-agent=x", "test_mine.py", "--mle-report=r.json")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            "mle-bench: agent x, tests of your own, require pass",
            "mle-bench: * 1 competition, 2 seeds",
        ]
    )
    disclosure = session.report("r.json")["disclosure"]
    assert (disclosure["agent"], disclosure["agent_version"]) == ("mine", "2.1")
    assert (disclosure["network"], disclosure["limits"]["time"]) == ("none", "20s")
    assert (disclosure["splits"], disclosure["competitions"]) == ([], ["demo-digits"])
    assert disclosure["seeds"] == 2


def test_a_comparison_is_explained_by_the_items_own_grade(session: Session) -> None:
    session.pytester.makepyfile(
        test_mine="""
        import pytest
        from pytest_mlebench import Medal

        COMPETITIONS = ["demo-digits", "demo-wine-cultivars"]

        @pytest.fixture(scope="session")
        def first():
            return []

        @pytest.mark.mle(competition=COMPETITIONS)
        def test_medal(mle_grade, first):
            first.append(mle_grade)
            assert first[0].medal >= Medal.BRONZE

        @pytest.mark.mle(competition="demo-digits")
        def test_score(mle_grade):
            assert mle_grade.score > 0.5

        @pytest.mark.mle(competition="demo-digits")
        def test_median(mle_grade):
            assert mle_grade.above_median

        @pytest.mark.mle(competition="demo-digits")
        def test_no_figure_of_a_grade(mle_grade):
            assert 1 == 2
        """
    )
    result = session.run("--mle-agent=dummy", "test_mine.py")
    result.assert_outcomes(failed=5)
    text = result.stdout.str()
    wine = text[text.index("test_medal[demo-wine-cultivars-seed0] _") :].split("\n____")[0]
    explained = [line for line in wine.splitlines() if line.startswith("E ")]
    assert any("demo-wine-cultivars: score" in line for line in explained)
    assert not any("demo-digits: score" in line for line in explained)
    score = text[text.index("___ test_score[") :].split("\n____")[0]
    assert "demo-digits: score 0.0818 (higher is better), no medal" in score
    median = text[text.index("___ test_median[") :].split("\n____")[0]
    assert "demo-digits: score 0.0818" in median
    figure = text[text.index("___ test_no_figure_of_a_grade[") :].split("\n____")[0]
    assert "assert 1 == 2" in figure


@pytest.mark.parametrize("level", ["pass", "median", "bronze", "silver", "gold"])
def test_the_bar_of_an_item_is_reached_exactly(session: Session, level: str) -> None:
    thresholds = {"pass": 0.0, "median": 0.5, "bronze": 0.6, "silver": 0.7, "gold": 0.8}
    own = session.path / "own" / "exact"
    own.mkdir(parents=True)
    percentiles = ", ".join(str(1 - p / 100) for p in range(101))
    (own / "competition.toml").write_text(
        f"""
title = "Exact"
complexity = "custom"
category = "Tabular"
source = "generated"
answers = "answers.csv"
sample = "sample_submission.csv"

[metric]
name = "own"
direction = "higher"

[submission]
id = "id"
targets = ["y"]

[leaderboard]
teams = 10
gold = 0.8
silver = 0.7
bronze = 0.6
median = 0.5
percentiles = [{percentiles}]
"""
    )
    (own / "prepare.py").write_text(
        "def generate(raw):\n    pass\n\n"
        "def prepare(raw, public, private):\n"
        "    (public / 'sample_submission.csv').write_text('id,y\\n1,0\\n')\n"
        "    (private / 'answers.csv').write_text('id,y\\n1,0\\n')\n"
    )
    (own / "grade.py").write_text(
        "def grade(submission, answers):\n    return submission['y'][0]\n"
    )
    (own / "description.md").write_text("# Exact\n")
    session.pytester.makeini("[pytest]\nmle_competitions = own\n")
    bar = thresholds[level]
    # a score is rounded to five decimals before it is judged; the median must be exceeded
    enough = {"pass": [0.0], "median": [0.500005001], "bronze": [0.599995001]}.get(
        level, [bar, bar - 4.9e-6]
    )
    short = {"pass": [], "median": [0.5, 0.5000049]}.get(level, [bar - 5.1e-6])
    for number, score in enumerate([*enough, *short]):
        command = session.agent(
            f"agent{number}",
            f"""
            import os
            with open(os.environ["SUBMISSION_DIR"] + "/submission.csv", "w") as file:
                file.write("id,y\\n1,{score!r}\\n")
            """,
        )
        result = session.run(
            f"--mle-agent={command}", "--mle-competition=exact", f"--mle-require={level}"
        )
        assert result.ret == (0 if score in enough else 1), (score, result.stdout.str())
