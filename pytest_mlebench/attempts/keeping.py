"""Which process holds an attempt while it runs: this one, or one that outlives it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pytest_mlebench.layout import AttemptFolder, SeedFolder

if TYPE_CHECKING:
    from pytest_mlebench.gateway.ledger import SharedAccount


class Keeping(Protocol):
    """What differs between an attempt of this process and one that is kept on another host."""

    machine: str | None  # its name in hosts.toml
    job: str | None  # the allocation of Slurm that it is in
    lease: str | None  # the token of the attempt that was numbered last

    def prepare(self, folder: SeedFolder) -> None:
        """Make the folder of a competition and seed, and bring what is known elsewhere of it."""

    def next_attempt(self, folder: SeedFolder) -> AttemptFolder:
        """Return the folder of the next attempt, which does not exist yet."""

    def hold(
        self, folder: AttemptFolder, work: Callable[[], None], after_kill: Callable[[], None] | None
    ) -> bool:
        """Do the work of an attempt; tell whether another process has written its record.

        What the work leaves running when its process is killed is ended by *after_kill*.
        """

    def adopt(self, folder: AttemptFolder) -> bool:
        """Wait for the end of an attempt that is still held; tell whether there was one."""

    def run_account(self, folder: Path, limit: float) -> SharedAccount:
        """Return the share of an attempt in the dollars of the whole run."""


class HeldHere:
    """The usual way: an attempt begins and ends with the process that runs it."""

    machine: str | None = None
    job: str | None = None
    lease: str | None = None

    def prepare(self, folder: SeedFolder) -> None:
        """Make the folder: all that is known is in it."""
        if not folder.path.is_dir():
            folder.path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def next_attempt(self, folder: SeedFolder) -> AttemptFolder:
        """Return the folder that comes after all that exist."""
        return folder.next_attempt()

    def hold(
        self, folder: AttemptFolder, work: Callable[[], None], after_kill: Callable[[], None] | None
    ) -> bool:
        """Do the work."""
        work()
        return False

    def adopt(self, folder: AttemptFolder) -> bool:
        """Say that there is none: it would have ended with its process."""
        return False

    def run_account(self, folder: Path, limit: float) -> SharedAccount:
        """Return a share in the account that is a file of the run."""
        from pytest_mlebench.gateway.run_account import RunAccount  # late on purpose: with a bound

        return RunAccount(folder.parents[2], limit, str(folder.absolute()))
