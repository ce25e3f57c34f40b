"""`--mle-audit` and `--mle-fail-on`: what is suspicious can fail a session."""

from __future__ import annotations

import pytest
from plugin_session import Session

ONE = "--mle-competition=demo-digits"

COPY = """
import os, shutil
shutil.copy(os.environ["DATA_DIR"] + "/sample_submission.csv",
            os.environ["SUBMISSION_DIR"] + "/submission.csv")
"""

CHEATS = """
import csv
with open(os.environ["DATA_DIR"] + "/sample_submission.csv") as file:
    ids = [row["id"] for row in csv.DictReader(file)]
with open(os.environ["CODE_DIR"] + "/main.py", "w") as file:
    file.write("LABELS = {" + ", ".join(f"{each!r}: 1" for each in ids) + "}")
"""


def test_an_audit_that_finds_a_violation_fails_the_session_if_asked_to(session: Session) -> None:
    command = session.agent("cheat", COPY + CHEATS)
    asked = (f"--mle-agent={command}", ONE, "--mle-run=r", "--mle-audit=on")
    result = session.run(*asked, "--mle-fail-on=violation", "--mle-report=r.json")
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["missed: demo-digits seed 0: artefacts/code/main.py has *ids*"])
    (found,) = session.report("r.json")["audit"]["attempts"]
    levels = [each["level"] for check in found["checks"] for each in check["findings"]]
    assert levels.count("violation") == 1
    assert session.run(*asked).ret == pytest.ExitCode.TESTS_FAILED, "the gate is in the plan"
    other = (f"--mle-agent={command}", ONE, "--mle-run=other", "--mle-audit=on")
    assert session.run(*other).ret == pytest.ExitCode.OK
    result = session.run(f"--mle-agent={command}", ONE, "--mle-fail-on=violation")
    result.stderr.fnmatch_lines(["*--mle-fail-on=violation has nothing to judge without*"])
