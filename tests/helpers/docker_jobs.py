"""Jobs for the tests: small limits, and an agent that is a shell script."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from docker_images import BUSYBOX

from pytest_mlebench.agent import Agent
from pytest_mlebench.errors import InvalidSubmission
from pytest_mlebench.host import leases, process_identity
from pytest_mlebench.limits import STANDARD
from pytest_mlebench.sandbox import Job

HELPERS = Path(__file__).parent  # for programs of their own that use this module
HOST = "MLEBENCH_TESTS_HOST"

SMALL = replace(
    STANDARD,
    time_seconds=60,
    cpus=1,
    memory_bytes=256 * 10**6,
    gpus=0,
    shm_bytes=64 * 10**6,
    pids=200,
    open_files=1024,
    disk_bytes=10**9,
    log_bytes=10**6,
    submission_bytes=10**6,
    artefact_bytes=10**6,
    artefact_files=100,
)


def take_host_name() -> None:
    """Count as a process of the host that the environment names, here and in our children.

    Other tests run beside us on the same engine, and remove what dead processes of their host left.
    """
    if name := os.environ.get(HOST):
        process_identity.host_name = leases.host_name = lambda: name


take_host_name()


@dataclass
class JobMaker:
    """Makes jobs in a folder, each attempt in its own."""

    folder: Path
    data: Path
    count: int = 0

    def __call__(
        self,
        script: str = "true",
        *,
        agent: Agent | None = None,
        image: str = BUSYBOX,
        env: dict[str, str] | None = None,
        network: str = "none",
        gpus: tuple[str, ...] = (),
        **limits: object,
    ) -> Job:
        """Return a job that runs a shell script, or another agent, under small limits."""
        self.count += 1
        folder = self.folder / f"attempt{self.count}"
        folder.mkdir(parents=True)
        shell = Agent(name="shell", image=image, command=("sh", "-c", script), env=env or {})
        return Job(
            competition="demo",
            seed=1,
            agent=agent or shell,
            limits=replace(SMALL, **limits),  # type: ignore[arg-type]  # a test's own words
            network=network,
            data=self.data,
            instructions="Win.\n",
            folder=folder,
            check=check_header,
            hidden=(self.data.parents[2],),
            labels={"run": "tests", "attempt": f"{self.folder.parent.name}-{self.count}"},
            gpus=gpus,
        )


def check_header(path: Path) -> None:
    """A format check like any other: the file must begin with the right columns."""
    if not path.read_bytes().startswith(b"id,target\n"):
        raise InvalidSubmission("the columns must be id,target")
