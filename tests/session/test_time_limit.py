"""`--mle-time-limit`: what is there in the end counts."""

from __future__ import annotations

from plugin_session import Session

ONE = "--mle-competition=demo-digits"

COPY = """
import os, shutil
shutil.copy(os.environ["DATA_DIR"] + "/sample_submission.csv",
            os.environ["SUBMISSION_DIR"] + "/submission.csv")
"""


def test_what_is_there_when_the_time_is_up_is_graded(session: Session) -> None:
    command = session.agent("slow", COPY + "\nimport time; time.sleep(600)")
    result = session.run(f"--mle-agent={command}", ONE, "--mle-time-limit=4s", "--mle-run=late")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["not standard: time 4s instead of 10m"])
    (record,) = session.records("late").values()
    assert record["ending"]["reason"] == "time-limit"
