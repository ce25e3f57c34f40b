"""What an agent finds in its container, and what comes out of it."""

from __future__ import annotations

from docker_jobs import JobMaker

from pytest_mlebench.sandbox.docker import DockerSandbox


def test_a_submission_comes_out(sandbox: DockerSandbox, make_job: JobMaker) -> None:
    job = make_job("cp $DATA_DIR/sample_submission.csv $SUBMISSION_DIR/submission.csv; echo done")
    outcome = sandbox.run(job)
    assert (outcome.reason, outcome.exit_code, outcome.problem) == ("exited", 0, None)
    assert job.submission.read_text() == "id,target\n1,0\n"
    assert job.log.read_text() == "done\n"
