"""A store, a runs folder and jobs for the tests of sandboxes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_mlebench.agent import Agent
from pytest_mlebench.errors import InvalidSubmission
from pytest_mlebench.host.demo_limits import demo_limits
from pytest_mlebench.limits import Limits
from pytest_mlebench.sandbox import Ending, Job
from pytest_mlebench.sandbox.process.order import Builder
from pytest_mlebench.sandbox.process.process_sandbox import ProcessSandbox
from pytest_mlebench.sandbox.process.walls import BUILDERS

HELPERS = Path(__file__).parent  # for programs of their own that use this module
CANARY = "canary-7f3a9c"


def check(path: Path) -> None:
    """Be content with any file that has a label."""
    if b"label" not in path.read_bytes():
        raise InvalidSubmission("column 'label' is missing")


@dataclass
class Place:
    """A folder with a store, in which the answers are, and with runs beside it."""

    folder: Path
    builders: tuple[Builder, ...] = BUILDERS
    cgroup: bool = True

    def __post_init__(self) -> None:
        self.store = self.folder / "store"
        self.runs = self.folder / "runs"
        self.public = self.store / "tiny" / "prepared" / "public"
        self.answers = self.store / "tiny" / "prepared" / "private" / "answers.csv"
        self.public.mkdir(parents=True)
        self.answers.parent.mkdir()
        self.answers.write_text(f"id,label\n1,{CANARY}\n")
        (self.public / "images").mkdir()
        (self.public / "images" / "1.txt").write_text("one")
        (self.public / "train.csv").write_text("id,label\n0,0\n")
        self.attempts = 0

    def job(
        self,
        agent: Agent | None = None,
        *,
        python: str = "",
        shell: str = "",
        function: Callable[[Any], object] | None = None,
        network: str = "open",
        **limits: float,
    ) -> Job:
        """Return a job for an agent, a program in Python or sh, or a function."""
        command = (sys.executable, "-c", python) if python else ("sh", "-c", shell)
        self.attempts += 1
        folder = self.runs / "run" / "tiny" / "seed0" / f"attempt{self.attempts}"
        folder.mkdir(parents=True)
        return Job(
            competition="tiny",
            seed=7,
            agent=agent or Agent("tester", command=() if function else command, function=function),
            limits=replace(_limits(), **limits),  # type: ignore[arg-type]  # sizes are numbers
            network=network,
            data=self.public,
            instructions="Write /home/submission/submission.csv, not /home/me.",
            folder=folder,
            check=check,
            hidden=(self.store, self.runs),
        )

    def run(self, *arguments: Any, grace_seconds: float = 0.3, **options: Any) -> Finished:
        """Run a job to its end in the process sandbox."""
        job = self.job(*arguments, **options)
        return Finished(job, self.sandbox(grace_seconds=grace_seconds).run(job))

    def sandbox(self, **options: Any) -> ProcessSandbox:
        """Return the process sandbox with the walls that this place is about."""
        return ProcessSandbox(builders=self.builders, cgroup=self.cgroup, **options)


@dataclass
class Finished:
    """A job and how it ended."""

    job: Job
    outcome: Ending

    @property
    def log(self) -> str:
        return self.job.log.read_text()

    @property
    def submission(self) -> str:
        return self.job.submission.read_text()


def running(mark: str) -> list[int]:
    """Return the processes that have *mark* in their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def wait_until(condition: Callable[[], object], seconds: float = 10.0) -> bool:
    """Wait until *condition* holds, and tell whether it does."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _limits() -> Limits:
    return replace(demo_limits(), time_seconds=30)
