"""From what an agent does to what pytest says: blame decides."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from plugin_session import Session

ONE = "--mle-competition=demo-digits"

COPY = """
import os, shutil
shutil.copy(os.environ["DATA_DIR"] + "/sample_submission.csv",
            os.environ["SUBMISSION_DIR"] + "/submission.csv")
"""


def test_a_valid_submission_passes_and_the_summary_counts_it(
    session: Session, workers: tuple[str, ...]
) -> None:
    command = session.agent("copier", COPY)
    result = session.run(f"--mle-agent={command}", ONE, "--mle-report=report.json", *workers)
    assert result.ret == 0, result.stdout.str()
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["mle-bench: agent *copier*, 1 competition (demo-digits), 1 seed, require pass"]
    )
    result.stdout.fnmatch_lines(["*= MLE-bench =*", "valid * 100.00", "any medal * 0.00"])
    (only,) = session.report()["results"]
    assert only["outcome"] == "graded"
    assert only["grade"]["medal"] == "none"


HUGE = """
import os
rows = open(os.environ["DATA_DIR"] + "/sample_submission.csv").read().splitlines()
rows[1] = rows[1].split(",")[0] + "," + "9" * 4000
open(os.environ["SUBMISSION_DIR"] + "/submission.csv", "w").write("\\n".join(rows))
"""


def test_a_number_of_thousands_of_digits_is_the_agents_failure(session: Session) -> None:
    result = session.run(f"--mle-agent={session.agent('huge', HUGE)}", ONE)
    assert result.ret == 1
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*must hold * 64 bits, given: *9999*"])


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("", "demo-digits: the agent left no submission.csv*"),
        ("raise SystemExit(3)", "demo-digits: *it ended with exit code 3, see *run.log"),
        (
            "import os; open(os.environ['SUBMISSION_DIR'] + '/submission.csv', 'w').write('a,b')",
            "demo-digits: column 'id' is missing; it has 'a', 'b'",
        ),
    ],
    ids=["nothing", "crash", "broken"],
)
def test_the_agents_own_fault_is_a_failure(session: Session, code: str, message: str) -> None:
    result = session.run(f"--mle-agent={session.agent('broken', code)}", ONE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([message])


def test_the_benchmarks_own_fault_is_an_error_that_counts_as_no_medal(
    session: Session, workers: tuple[str, ...]
) -> None:
    session.pytester.makeconftest(
        """
        from pytest_mlebench.errors import SandboxError

        class Lost:
            name = "lost"
            def preflight(self, agent, limits, network):
                return ("the sandbox of this test is always lost",)
            def run(self, job):
                raise SandboxError("the container vanished")

        def pytest_mle_sandbox(config, name, agent):
            return Lost()
        """
    )
    result = session.run("--mle-agent=dummy", ONE, "--mle-run=lost", "--mle-fail-under=0", *workers)
    assert result.ret == 1
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["the sandbox of this test is always lost"])
    result.stdout.fnmatch_lines(["the benchmark failed: the container vanished"])
    result.stdout.fnmatch_lines(["demo-digits *error*"])
    assert "Traceback" not in result.stdout.str()
    attempts = session.records("lost")
    assert [record["phase"] for record in attempts.values()] == ["error"] * 3


def test_medals_are_letters_and_words(session: Session, workers: tuple[str, ...]) -> None:
    session.pytester.makeconftest(
        """
        import shutil
        import pytest
        from pytest_mlebench.sandbox import Ending

        class Oracle:
            name = "oracle"
            def preflight(self, agent, limits, network):
                return ()
            def run(self, job):
                shutil.copy(job.data.parent / "private" / "answers.csv", job.submission)
                return Ending("exited", 0, 0.1)

        def pytest_mle_sandbox(config, name, agent):
            return Oracle()
        """
    )
    result = session.run("--mle-agent=dummy", ONE, *workers)
    result.assert_outcomes(passed=1)
    if not workers:
        result.stdout.fnmatch_lines(["*G *[[]100%[]]"])
    verbose = session.run("--mle-agent=dummy", ONE, "-v", *workers)
    verbose.stdout.fnmatch_lines(["*GOLD*"])


def test_junit_carries_score_medal_and_thresholds(
    session: Session, workers: tuple[str, ...]
) -> None:
    session.run("--mle-agent=dummy", ONE, "--junit-xml=junit.xml", *workers)
    case = ET.parse(session.path / "junit.xml").find(".//testcase")
    assert case is not None
    found = {p.get("name"): p.get("value") for p in case.findall("properties/property")}
    assert found["mle_competition"] == "demo-digits"
    assert found["mle_medal"] == "none"
    assert float(found["mle_score"] or "nan") > 0
    assert {"mle_gold", "mle_silver", "mle_bronze", "mle_median", "mle_run"} <= found.keys()


def test_a_failing_comparison_of_medals_explains_itself(session: Session) -> None:
    session.pytester.makepyfile(
        """
        import pytest
        from pytest_mlebench import Medal

        @pytest.mark.mle(competition="demo-digits")
        def test_gold(mle_grade):
            assert mle_grade.medal >= Medal.GOLD
        """
    )
    result = session.run("--mle-agent=dummy", ".")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*assert medal: none >= gold", "*demo-digits: score *", "*thresholds: gold *"]
    )
