"""`--mle-memory`: what an attempt may hold."""

from __future__ import annotations

from plugin_session import Session

GREEDY = """
import os, shutil
shutil.copy(os.environ["DATA_DIR"] + "/sample_submission.csv",
            os.environ["SUBMISSION_DIR"] + "/submission.csv")
held = [bytearray(b"x" * 2**20) for _ in range(2000)]
"""


def test_what_is_there_when_the_memory_is_used_up_is_graded(session: Session) -> None:
    agent = f"--mle-agent={session.agent('greedy', GREEDY)}"
    result = session.run(
        agent, "--mle-competition=demo-digits", "--mle-memory=300MB", "--mle-run=mine"
    )
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["not standard: *memory 300MB instead of *"])
    (record,) = session.records("mine").values()
    assert record["ending"]["reason"] == "memory-limit"
