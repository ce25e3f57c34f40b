"""Snapshots of a submission in a container."""

from __future__ import annotations

from docker_jobs import JobMaker

from pytest_mlebench.layout import AttemptFolder
from pytest_mlebench.sandbox.docker import DockerSandbox
from pytest_mlebench.sandbox.snapshots import Snapshots

SCRIPT = """
for n in 1 2; do
    echo "$n" > /home/submission/new
    mv /home/submission/new /home/submission/submission.csv
    sleep 2
done
find / -xdev -name 'snapshots*' 2>/dev/null
ls -A /home/submission
"""


def test_a_submission_is_kept_as_it_changes_and_the_container_sees_nothing_of_it(
    sandbox: DockerSandbox, make_job: JobMaker
) -> None:
    job = make_job(SCRIPT)
    with Snapshots(job, 0.3) as kept:
        outcome = sandbox.run(job)
    assert outcome.exit_code == 0
    kept_files = map(AttemptFolder(job.folder).snapshot, (one.sha256 for one in kept.taken))
    assert [path.read_text() for path in kept_files] == ["1\n", "2\n"]
    assert job.log.read_text() == "submission.csv\n"
