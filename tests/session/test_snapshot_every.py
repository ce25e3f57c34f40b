"""Sessions that keep and grade what agents had on the way."""

from __future__ import annotations

import pytest
from plugin_session import Session

ONE = "--mle-competition=demo-wine-cultivars"

# hands in nonsense, then the sample
BETTERING = """
import os, pathlib, shutil, time
target = pathlib.Path(os.environ["SUBMISSION_DIR"], "submission.csv")
sample = pathlib.Path(os.environ["DATA_DIR"], "sample_submission.csv")
target.write_text("nonsense\\n")
time.sleep(3)
shutil.copy(sample, target.with_name("new"))
target.with_name("new").rename(target)
time.sleep(3)
"""


def test_snapshots_are_graded_after_the_run(session: Session, workers: tuple[str, ...]) -> None:
    agent = f"--mle-agent={session.agent('bettering', BETTERING)}"
    arguments = (agent, ONE, "--mle-run=mine", "--mle-snapshot-every=1s", *workers)
    session.run(*arguments, "--mle-report=report.json").assert_outcomes(passed=1)
    (record,) = session.records("mine").values()
    first, second = record["snapshots"]
    assert first["score"] is None
    assert first["problem"]
    assert second["score"] == record["grade"]["score"]
    assert second["medal"] == record["grade"]["medal"]
    assert second["percentile"] == record["grade"]["percentile"]
    assert 1 <= first["seconds"] < second["seconds"] < 30
    assert session.report()["results"][0]["snapshots"] == [first, second]


def test_without_the_option_there_are_none(session: Session) -> None:
    session.run("--mle-agent=dummy", ONE, "--mle-run=mine").assert_outcomes(passed=1)
    ((name, record),) = session.records("mine").items()
    assert record["snapshots"] == []
    assert not (session.path / "mle-runs/mine" / name / "snapshots").exists()


def test_a_pause_that_makes_no_sense_is_refused(session: Session) -> None:
    result = session.run("--mle-agent=dummy", ONE, "--mle-snapshot-every=often")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        "*--mle-snapshot-every must be a duration such as 24h, 90m or 30s, given: often"
    )
