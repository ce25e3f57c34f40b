"""Snapshots: the submission as it changes while an agent runs, kept where the agent cannot look.

    with Snapshots(job, every=1800) as snapshots:
        sandbox.run(job)
    snapshots.taken           # when, which content, how large

After the run they lie in the attempt's folder, each content once, by its checksum; until then they
are files without a name. What is read belongs to an agent at work: it is read as everything else of
an agent is, by ``collect``, bounded in size and number; what cannot be read is passed over. A
snapshot never spoils an attempt.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import tempfile
import threading
import time
from typing import IO

from pytest_mlebench._files import atomic_file
from pytest_mlebench._units import parse_duration
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.grade import Snapshot
from pytest_mlebench.layout import AttemptFolder
from pytest_mlebench.sandbox import Job
from pytest_mlebench.sandbox.collect import SUBMISSION, read_submission

MAX_SNAPSHOTS = 200  # snapshots of an attempt; each is an open file while the agent runs
SHORTEST = 1.0  # seconds between two looks

_TRIES = 3  # for a file that is being written
_PAUSE = 1.0  # seconds between them

logger = logging.getLogger(__name__)


class Snapshots:
    """A look at the submission of a job every so often, in a thread, until the block ends."""

    def __init__(self, job: Job, every: float) -> None:
        self._job = job
        self._home = job.folder / "home"
        self._every = every
        self._room = job.limits.artefact_bytes
        self._seen: tuple[int, ...] | None = None
        self._began = time.monotonic()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="mlebench-snapshots", daemon=True)
        self._files: dict[str, IO[bytes]] = {}
        self.taken: list[Snapshot] = []

    def __enter__(self) -> Snapshots:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        try:
            self._unfold()
        except OSError as problem:
            self.taken.clear()
            logger.warning("the snapshots of %s are lost: %s", self._job.folder, problem)

    def _watch(self) -> None:
        due = self._began
        try:
            while len(self.taken) < MAX_SNAPSHOTS:
                due = max(due + self._every, time.monotonic())
                if self._end.wait(due - time.monotonic()):
                    return
                self._look()
            logger.warning(
                "%s has %d snapshots: no more are taken", self._job.folder, MAX_SNAPSHOTS
            )
        except OSError as problem:
            logger.warning("no more snapshots of %s: %s", self._job.folder, problem)

    def _look(self) -> None:
        """Keep the submission if it is another one than the last."""
        for _ in range(_TRIES):
            before = self._state()
            if before is None or before == self._seen:
                return
            seconds = time.monotonic() - self._began
            # A file without a name: the agent may see names in the folders above its own.
            file = tempfile.TemporaryFile(dir=self._job.folder)  # noqa: SIM115  # stays open
            most = min(self._job.limits.submission_bytes, self._room)
            refused = read_submission(self._home, file, most)
            if refused is None and self._state() == before:
                self._keep(file, seconds)
                self._seen = before
                return
            file.close()
            if refused is not None:
                logger.debug("no snapshot: %s", refused)
                return
            if self._end.wait(_PAUSE):  # it was being written: half a file tells nothing
                return

    def _keep(self, file: IO[bytes], seconds: float) -> None:
        size = file.tell()
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # is one
        if digest in self._files:
            file.close()
        else:
            self._files[digest] = file
            self._room -= size
        if not self.taken or self.taken[-1].sha256 != digest:
            self.taken.append(Snapshot(round(seconds, 3), digest, size))

    def _unfold(self) -> None:
        """Give the files their names, now that the agent has ended."""
        for snapshot in self.taken:
            target = AttemptFolder(self._job.folder).snapshot(snapshot.sha256)
            if target.exists():
                continue
            file = self._files[snapshot.sha256]
            file.seek(0)
            with atomic_file(target) as temporary, temporary.open("wb") as copy:
                shutil.copyfileobj(file, copy)
        for file in self._files.values():
            file.close()

    def _state(self) -> tuple[int, ...] | None:
        """Return what changes with every change of the file; None if there is none."""
        try:
            found = os.lstat(self._home / "submission" / SUBMISSION)
        except OSError:
            return None
        return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def parse_every(value: str, option: str) -> float:
    """Return the seconds between two snapshots, or refuse them."""
    seconds = parse_duration(value, option)
    if seconds < SHORTEST:
        raise ConfigError(f"{option} must be {SHORTEST:g}s or more, given: {value}")
    return seconds
