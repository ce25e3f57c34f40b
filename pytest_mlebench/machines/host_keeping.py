"""How a worker on another machine keeps attempts: by keepers, numbered by the controller.

What the controller knows is brought before an attempt; what an attempt leaves is delivered after
it. In a runs folder that both see nothing is copied.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pytest_mlebench.errors import InfrastructureError
from pytest_mlebench.gateway.ledger import SharedAccount
from pytest_mlebench.layout import AttemptFolder, RunFolder, SeedFolder
from pytest_mlebench.machines import keeper
from pytest_mlebench.machines.homecoming import Homecoming, is_home
from pytest_mlebench.machines.host_account import (
    Exchange,
    HostAccount,
    answering,
    settle_rest,
)
from pytest_mlebench.machines.link import Link
from pytest_mlebench.machines.posting import Posting, place_name
from pytest_mlebench.machines.seed_occupation import SeedOccupation, is_occupied
from pytest_mlebench.sandbox.collect import NotCollected, remove_tree
from pytest_mlebench.sandbox.process.own_disk import release

REMOVE_SECONDS = 10.0  # for what is just being written to


class HostKeeping:
    """A worker's way to run attempts so that they outlive it, and come home in the end."""

    def __init__(self, link: Link, run: RunFolder, posting: Posting, *, shared: bool) -> None:
        self.machine: str | None = posting.machine
        self.job = posting.job
        self.lease: str | None = None
        self._link = link
        self._run = run
        self._posting = posting
        self._shared = shared
        self._homecoming = Homecoming(link, self._name, self.home)
        self._occupation = SeedOccupation()
        self._beaten = threading.Event()  # by the controller, which is ready to be asked
        link.on_beat = self._beaten.set
        link.on_stop = self._stop
        threading.Thread(target=self._renew_always, name="mlebench-renew", daemon=True).start()

    def prepare(self, folder: SeedFolder) -> None:
        """Bring the records of attempts that are over; of one without a grade, its files too."""
        if self._shared:
            folder.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            for attempt in folder.attempts():
                if not keeper.is_kept(attempt.path):
                    keeper.clear(attempt.path)
            return
        self._occupation.occupy(folder)
        for known in self._link.ask("known", **_item(folder)):
            attempt = folder.attempt(known["number"])
            if not attempt.record.exists():
                self._homecoming.bring(attempt, known)

    def next_attempt(self, folder: SeedFolder) -> AttemptFolder:
        """Return the folder of the attempt whose number the controller gives out.

        An earlier one that was spoilt goes home first: with the number the item is another's.
        """
        self.deliver(folder)
        given = self._link.ask("number", **_item(folder))
        attempt, self.lease = folder.attempt(given["number"]), given["lease"]
        if self._shared:  # the controller has made it
            with contextlib.suppress(OSError):
                attempt.path.rmdir()
        return attempt

    def hold(
        self, folder: AttemptFolder, work: Callable[[], None], after_kill: Callable[[], None] | None
    ) -> bool:
        """Let a keeper do the work, and wait for its end."""
        if not self._shared:
            self._homecoming.send_record(folder)
        keeper.start_keeper(
            folder.path,
            work,
            grace=self._posting.grace,
            renewed=self._renew(),
            after_kill=after_kill,
        )
        self._wait(folder)
        return True

    def adopt(self, folder: AttemptFolder) -> bool:
        """Wait for the end of an attempt that a keeper still holds."""
        if not keeper.is_kept(folder.path):
            return False
        self._renew()
        self._wait(folder)
        return True

    def run_account(self, folder: Path, limit: float) -> SharedAccount:
        """Return a share in the account that the controller has."""
        return HostAccount(folder)

    def left(self) -> list[dict[str, Any]]:
        """Return what earlier workers left here of this run, for the controller to decide about."""
        found = []
        for attempt in self._attempts():
            # another worker may be about to start its keeper, or be grading what that has left
            kept = keeper.is_kept(attempt.path) or is_occupied(attempt.path.parent)
            try:
                record = json.loads(attempt.record.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                if not self._shared:  # a worker was killed while it made or removed it
                    with self._occupation.alone(attempt.path.parent) as alone:
                        if alone and not keeper.is_kept(attempt.path):
                            _remove(attempt.path)
                continue
            is_here = self._is_here(record)
            if self._shared and not (kept and is_here):
                continue
            if self.job is not None and kept and not is_here:
                continue  # another allocation's, that sees the same folder
            name, phase = self._name(attempt), record["phase"]
            lease = record.get("lease")
            facts = {"item": record["item"], "kept": kept, "phase": phase, "lease": lease}
            place = None if self.job is None else self._place_of(record)
            found.append({"name": name, "place": place, **facts})
        return found

    def drop(self, names: list[str]) -> None:
        """End and remove attempts that the controller does not want any more."""
        for name in names:
            folder = self._run.path / name
            keeper.end(folder)
            settle_rest(folder, self._exchange(name))
            if not self._shared:
                _remove(folder)
        self._remove_empty()

    def deliver(self, folder: SeedFolder) -> None:
        """Send home all attempts of a competition and seed that have come to their end."""
        if self._shared:
            return
        for attempt in folder.attempts():
            if not keeper.is_kept(attempt.path) and attempt.record.is_file():
                self._deliver(attempt)

    def tidy(self) -> None:
        """Deliver what is left, and remove what has been delivered; this worker is done with it."""
        if self._shared:
            return
        for seed in list(self._run.seeds()):
            with self._occupation.alone(seed.path) as alone:
                if alone:
                    self._tidy(seed)
        self._occupation.leave()
        self._remove_empty()

    def home(self, folder: Path) -> str:
        """Return where the folder of an attempt is, or will be, on the controller."""
        return str(Path(self._posting.run) / folder.relative_to(self._run.path))

    def _exchange(self, name: str) -> Exchange:
        """Return what asks the controller about the run's dollars, for an attempt."""

        def ask(
            first: int, settled: list[str], holding: str, wanted: str | None
        ) -> tuple[str, str]:
            question = {"first": first, "settled": settled, "holding": holding, "wanted": wanted}
            answer, text = self._link.ask("spend", name=name, **question)
            return answer, text

        return ask

    @contextlib.contextmanager
    def _accounted(self, folder: AttemptFolder) -> Iterator[None]:
        """Answer an attempt for a block what it asks about the run's dollars, if it does."""
        if self._posting.session_usd is None:
            yield
            return
        exchange = self._exchange(self._name(folder))
        with answering(folder.path, exchange):
            yield
        if not keeper.is_kept(folder.path):
            settle_rest(folder.path, exchange)

    def _wait(self, folder: AttemptFolder) -> None:
        stopping = self._link
        try:
            with self._accounted(folder):
                keeper.wait_for_end(
                    folder.path,
                    tend=lambda: self._tend(folder),
                    is_stopping=lambda: stopping.is_stopping,
                )
        finally:
            if not keeper.is_kept(folder.path):
                keeper.clear(folder.path)

    def _tend(self, folder: AttemptFolder) -> None:
        if not self._shared:
            self._homecoming.show(folder)

    def _deliver(self, attempt: AttemptFolder) -> None:
        if self._homecoming.is_due(attempt):
            settle_rest(attempt.path, self._exchange(self._name(attempt)))
            record = json.loads(attempt.record.read_text(encoding="utf-8"))
            self._homecoming.deliver(attempt, is_ours=self._is_here(record))

    def _renew_always(self) -> None:
        """Ask for more time whenever the controller shows that it is there; in a thread."""
        while True:
            self._beaten.wait()
            self._beaten.clear()
            try:
                self._renew()
            except InfrastructureError:
                return  # this process is about to end

    def _renew(self) -> float:
        """Ask for more time for all that is kept here; return when that was asked for."""
        asked_at = keeper.boot_clock()
        self._link.ask("renew")
        for attempt in self._attempts():
            if keeper.is_kept(attempt.path) and self._is_kept_here(attempt):
                keeper.beat(attempt.path, asked_at)
        return asked_at

    def _is_kept_here(self, attempt: AttemptFolder) -> bool:
        """Tell whether an attempt is this machine's; in a shared folder are those of all."""
        if not self._shared and self.job is None:
            return True
        try:
            return self._is_here(json.loads(attempt.record.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return False

    def _stop(self) -> None:
        """Let every attempt on this machine end: its keeper looks for this file."""
        for attempt in self._attempts():
            if keeper.is_kept(attempt.path):
                with contextlib.suppress(OSError):
                    (attempt.path / ".stop").touch()

    def _attempts(self) -> Iterator[AttemptFolder]:
        for seed in self._run.seeds():
            yield from seed.attempts()

    def _is_here(self, record: dict[str, Any]) -> bool:
        """Tell whether an attempt is this machine's, and of Slurm's this allocation's."""
        if not self._shared and self.job is None:
            return True  # a folder of its own
        return self._place_of(record) == place_name(self._posting.machine, self.job)

    def _place_of(self, record: dict[str, Any]) -> str:
        conditions = record.get("conditions", {})
        return place_name(conditions.get("machine") or "", conditions.get("job"))

    def _name(self, attempt: AttemptFolder) -> str:
        return attempt.path.relative_to(self._run.path).as_posix()

    def _tidy(self, seed: SeedFolder) -> None:
        self.deliver(seed)
        for attempt in seed.attempts():
            if is_home(attempt) and not keeper.is_kept(attempt.path):
                _remove(attempt.path)

    def _remove_empty(self) -> None:
        """Remove the folders of a run in which nothing is left, and then its own."""
        for seed in list(self._run.seeds()):
            self._occupation.remove_empty(seed)
        folders: list[Path] = []
        with contextlib.suppress(OSError):  # another has just removed it
            folders = list(self._run.path.iterdir())
        for path in (*folders, self._run.path):
            with contextlib.suppress(OSError):  # not empty, or a file
                path.rmdir()


def sees(run: Path, token: str) -> bool:
    """Tell whether the controller's folder of a run is seen from here, too."""
    try:
        return (run / ".token").read_text() == token
    except OSError:
        return False


def _remove(folder: Path) -> None:
    """Remove the folder of an attempt; its last processes may be ending, and write to it still."""
    deadline = time.monotonic() + REMOVE_SECONDS
    while time.monotonic() < deadline:  # beyond it, whoever comes next finds it without a record
        with contextlib.suppress(OSError, NotCollected):
            release(AttemptFolder(folder).home)
            remove_tree(folder)
            return
        time.sleep(0.05)


def _item(folder: SeedFolder) -> dict[str, Any]:
    seed = int(folder.path.name.removeprefix("seed"))
    return {"competition": folder.path.parent.name, "seed": seed}
