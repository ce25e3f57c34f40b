"""Comparing a session with an earlier report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from plugin_session import Session

COPY = """
import os, shutil
shutil.copy(os.environ["DATA_DIR"] + "/sample_submission.csv",
            os.environ["SUBMISSION_DIR"] + "/submission.csv")
"""


def decorate(path: Path) -> None:
    """Turn every grade of a report into gold."""
    report = json.loads(path.read_text())
    for result in report["results"]:
        result["grade"]["medal"] = "gold"
    path.write_text(json.dumps(report))


def test_a_significant_fall_fails_the_session(session: Session, workers: tuple[str, ...]) -> None:
    arguments = (f"--mle-agent={session.agent('copier', COPY)}", *workers)
    session.run(*arguments, "--mle-report=old.json").assert_outcomes(passed=6)
    same = session.run(*arguments, "--mle-baseline=old.json")
    assert same.ret == 0
    same.stdout.fnmatch_lines(["compared with old.json:"])
    decorate(session.path / "old.json")
    worse = session.run(*arguments, "--mle-baseline=old.json")
    assert worse.ret == 1
    worse.stdout.fnmatch_lines(["missed: *any-medal rate*100.00*0.00*"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot read the report *old.json: No such file*"),
        ("{", "*old.json*"),
        ('{"schema": 99}', "*old.json*"),
    ],
)
def test_a_baseline_that_cannot_be_read_is_a_usage_error(
    session: Session, content: str | None, message: str
) -> None:
    if content is not None:
        (session.path / "old.json").write_text(content)
    result = session.run("--mle-agent=dummy", "--mle-baseline=old.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}"])
