"""What is not prepared is skipped only in the open: it stays expected, and no bar forgets it."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from plugin_session import Session

NEVER = ("--mle-prepare=never", "--mle-missing=skip", "--mle-gpus=0", "--mle-memory=1GB")
LITE = ("--mle-agent=dummy", "--mle-split=lite", "--mle-cpus=1", *NEVER)
MIXED = (
    "--mle-agent=dummy",
    "--mle-competition=demo-digits",
    "--mle-competition=leaf-classification",
    "--mle-cpus=1",
    *NEVER,
)


@pytest.fixture
def with_digits(session: Session) -> Session:
    """A session whose store has one competition."""
    session.run("--mle-agent=dummy", "--mle-competition=demo-digits", "--mle-prepare=only")
    return session


def test_a_session_that_skips_everything_fails(session: Session, workers: tuple[str, ...]) -> None:
    result = session.run(*LITE, "--mle-fail-under=low:1", "--mle-report=r.json", *workers)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(skipped=22)
    result.stdout.fnmatch_lines(
        [
            "*22 of 22 runs are missing (22 skipped): counted as no medal",
            "missed: nothing ran: 22 of 22 items were skipped",
            "missed: any-medal rate of low cannot be judged: 22 of 22 runs were skipped "
            "(--mle-fail-under=low:1); to judge what is left by a bar of its own give "
            "--mle-fail-under=prepared:1",
        ]
    )
    results = session.report("r.json")["results"]
    assert {r["outcome"] for r in results} == {"skipped"}
    assert all("not prepared in" in r["error"] for r in results)


def test_nothing_ran_is_a_failure_without_any_bar(session: Session) -> None:
    assert session.run(*LITE).ret == pytest.ExitCode.TESTS_FAILED


def test_what_is_left_can_have_a_bar_of_its_own(with_digits: Session) -> None:
    low = with_digits.run(*MIXED, "--mle-fail-under=prepared:1")
    assert low.ret == pytest.ExitCode.TESTS_FAILED
    low.stdout.fnmatch_lines(
        ["missed: any-medal rate of the prepared competitions is 0.00 %, below the bar of 1 %*"]
    )
    enough = with_digits.run(*MIXED, "--mle-fail-under=prepared:0", "--junitxml=junit.xml")
    enough.assert_outcomes(passed=1, skipped=1)
    assert enough.ret == pytest.ExitCode.OK
    both = with_digits.run(*MIXED, "--mle-fail-under=0")
    assert both.ret == pytest.ExitCode.TESTS_FAILED
    both.stdout.fnmatch_lines(["missed: any-medal rate of the selected competitions cannot be*"])
    tree = ElementTree.parse(with_digits.path / "junit.xml")
    properties = {(node.attrib["name"], node.attrib["value"]) for node in tree.iter("property")}
    assert ("mle_outcome", "skipped") in properties


def test_a_skip_of_ones_own_stays_expected(session: Session) -> None:
    session.pytester.makepyfile(
        test_mine="""
        import pytest

        @pytest.mark.skip(reason="broken on Mondays")
        @pytest.mark.mle(competition="demo-wine-cultivars")
        def test_skipped(mle_grade):
            pass

        @pytest.mark.mle(competition="demo-digits")
        def test_run(mle_grade):
            pass
        """
    )
    result = session.run("--mle-agent=dummy", "test_mine.py", "--mle-report=r.json")
    result.assert_outcomes(passed=1, skipped=1)
    found = {
        r["competition"]: (r["outcome"], r["error"]) for r in session.report("r.json")["results"]
    }
    assert found == {
        "demo-digits": ("graded", None),
        "demo-wine-cultivars": ("skipped", "broken on Mondays"),
    }
    result.stdout.fnmatch_lines(["demo-wine-cultivars seed0: broken on Mondays"])


@pytest.mark.parametrize("option", ["--mle-fail-under=60", "--mle-report=r.json"])
def test_bars_and_reports_without_any_attempt_are_an_error(session: Session, option: str) -> None:
    session.pytester.makepyfile(test_unit="def test_unit(): pass")
    result = session.run("--mle-agent=dummy", "test_unit.py", option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    name = option.partition("=")[0]
    result.stdout.fnmatch_lines([f"missed: {name} has nothing to judge: no test of this session*"])


def test_a_bar_of_the_ini_file_is_judged_where_the_agent_is_typed(session: Session) -> None:
    session.pytester.makepyfile(test_unit="def test_unit(): pass")
    session.pytester.makeini("[pytest]\nmle_fail_under = 60\n")
    result = session.run("--mle-agent=dummy", "test_unit.py")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["missed: mle_fail_under * has nothing to judge: no test of *"])
    session.pytester.makeini("[pytest]\nmle_fail_under = 60\nmle_agent = dummy\n")
    assert session.run("test_unit.py").ret == pytest.ExitCode.OK, "a plain unit test"


def test_workers_that_run_nothing_are_a_failure(session: Session) -> None:
    session.pytester.makeconftest(
        """
        import os

        def pytest_collection_finish(session):
            if hasattr(session.config, "workerinput"):
                os._exit(1)
        """
    )
    result = session.run("--mle-agent=dummy", "-n2", "--max-worker-restart=0")
    assert result.ret != pytest.ExitCode.OK


def test_data_that_vanish_in_the_middle_of_a_session_are_prepared_again(session: Session) -> None:
    session.pytester.makepyfile(
        """
        import pytest, shutil

        @pytest.mark.parametrize("time", [1, 2])
        def test_data(mle_dataset, time):
            assert (mle_dataset.public / "train.csv").is_file()
            shutil.rmtree(mle_dataset.public.parent)
        """
    )
    own = ("--mle-competition=demo-digits", "--mle-data-dir=own")
    done = session.run("--mle-agent=dummy", *own, ".")
    done.assert_outcomes(passed=2)
