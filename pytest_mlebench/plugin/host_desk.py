"""What workers on other machines ask the controller, and what it answers.

Every question is answered in the thread of its worker's connection, all of them under one lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from pytest_mlebench._files import write_text
from pytest_mlebench.attempts.record import Run, read_attempt, read_attempts
from pytest_mlebench.attempts.run_results import item_of
from pytest_mlebench.errors import InfrastructureError
from pytest_mlebench.gateway.refusal import CallRefusal
from pytest_mlebench.gateway.run_account import RunAccount
from pytest_mlebench.layout import AttemptFolder, RunFolder
from pytest_mlebench.machines.delivery import PIECE_BYTES, Incoming, delivered_files
from pytest_mlebench.machines.host_account import AWAY, EXHAUSTED, FULL, HELD
from pytest_mlebench.machines.large_files import LargeFiles
from pytest_mlebench.machines.link import AttemptUnwanted
from pytest_mlebench.machines.packing import Package
from pytest_mlebench.plugin.custody import Custody
from pytest_mlebench.plugin.lease_tokens import LeaseTokens
from pytest_mlebench.reports.results import ItemKey

OVER = ("collected", "graded")


class HostDesk:
    """Give out packages, numbers and what is known; take in what attempts leave."""

    def __init__(
        self,
        run: RunFolder,
        custody: Custody,
        packages: Iterable[Package],
        item_of_worker: Callable[[Any], ItemKey | None],
        given_to: Callable[[ItemKey], str | None],
        large_files: LargeFiles,
        session_usd: float | None = None,
    ) -> None:
        self.lock = threading.RLock()
        self.custody = custody
        self._run = run
        self._packages = {each.sha256: each.data for each in packages}
        self._item_of_worker = item_of_worker
        self._given_to = given_to  # the machine whose worker has an item, begun or not
        self._session_usd = session_usd  # that all attempts may spend on models together
        self._incoming = Incoming(run)
        self._incoming.discard()
        self._tokens = LeaseTokens(run)
        self._large_files = large_files

    def answers(self) -> Mapping[str, Callable[..., Any]]:
        """Return what workers may ask for, and who answers."""
        take: dict[str, Callable[..., Any]] = {
            "record": self._record,
            "tail": self._incoming.tail,
            "piece": self._incoming.piece,
            "place": self._incoming.place,
        }
        copy: dict[str, Callable[..., str]] = {"copy": self._copy, "copied": self._copied}
        return {
            "renew": self._renew,
            "parcel": self._parcel,
            "known": self._known,
            "file": self._file,
            "number": self._number,
            "spend": self._spend,
            **{name: partial(self._if_theirs, _without_node(act)) for name, act in take.items()},
            **{name: partial(self._if_theirs, act) for name, act in copy.items()},
        }

    def unwanted(self, machine: str, left: list[dict[str, Any]]) -> list[str]:
        """Take in what a machine has of earlier workers, and return what it shall remove."""
        unwanted = []
        with self.lock:
            for attempt in left:
                key = ItemKey.from_dict(attempt["item"], f"an attempt on {machine}")
                owner = self.custody.machine_of(key) or self._given_to(key)
                place = attempt.get("place")
                if place is not None and owner == place != machine:
                    continue  # of another allocation, which may come back for it
                alive = attempt["kept"] or attempt["phase"] in OVER
                stale = self._tokens.is_stale(key, attempt["lease"])
                if not alive or stale or owner not in (None, machine) or self._is_over(key):
                    unwanted.append(attempt["name"])
                else:
                    self.custody.take(key, machine, attempt["name"], attempt["lease"])
        return unwanted

    def _is_over(self, key: ItemKey) -> bool:
        return any(run.is_over and item_of(run.record) == key for run in self._attempts(key))

    def _attempts(self, key: ItemKey) -> list[Run]:
        return read_attempts(self._run.seed(key.competition, key.seed))

    def _if_theirs(
        self, act: Callable[..., Any], node: Any, name: str, lease: str | None, **data: Any
    ) -> Any:
        """Do something to an attempt that the worker's machine has a lease of; to no other."""
        with self.lock:
            if not self.custody.allows(node.machine, name, lease):
                raise AttemptUnwanted(f"{name} does not belong to {node.machine} any more")
        return act(node, name, **data)

    def _renew(self, node: Any) -> None:
        self.custody.renew(node.machine)

    def _copy(self, node: Any, name: str, file: str, path: str) -> str:
        """Begin to copy a file that is too large to come in pieces."""
        target = self._incoming.part(name, file)
        return self._large_files.begin(node.mle_slot.machine, path, target)

    def _copied(self, _node: Any, name: str, file: str) -> str:
        return self._large_files.state(self._incoming.part(name, file))

    def _parcel(self, _node: Any, sha256: str, offset: int) -> bytes:
        return self._packages[sha256][offset : offset + PIECE_BYTES]

    def _known(self, _node: Any, competition: str, seed: int) -> list[dict[str, Any]]:
        """Return the attempts that are over, those without a grade with their files' names."""
        found = []
        for run in read_attempts(self._run.seed(competition, seed)):
            if run.is_over:
                files = [] if run.phase == "graded" else delivered_files(run.folder)
                names = [path.relative_to(run.folder).as_posix() for path in files]
                record = AttemptFolder(run.folder).record.read_text(encoding="utf-8")
                found.append({"number": run.attempt, "record": record, "files": names})
        return found

    def _file(self, _node: Any, name: str, file: str, offset: int) -> bytes:
        folder = self._incoming.attempt(name).path
        if file not in {path.relative_to(folder).as_posix() for path in delivered_files(folder)}:
            raise InfrastructureError(f"{name} has no file {file}")
        with (folder / file).open("rb") as source:
            source.seek(offset)
            return source.read(PIECE_BYTES)

    def _number(self, node: Any, competition: str, seed: int) -> dict[str, Any]:
        """Give out number and lease of a new attempt, which from now on is that machine's."""
        key = self._item_of_worker(node)
        if key is None or (key.competition, key.seed) != (competition, seed):
            raise InfrastructureError(f"{node.machine} has not been given {competition}/seed{seed}")
        with self.lock:
            if not self.custody.may_have(key, node.machine):
                owner = self.custody.machine_of(key)
                raise InfrastructureError(f"{competition}/seed{seed} belongs to {owner}")
            folder = self._run.seed(competition, seed)
            attempt = folder.next_attempt()
            attempt.path.mkdir(mode=0o700, parents=True)
            name = attempt.path.relative_to(self._run.path).as_posix()
            lease = self._tokens.issue(key)
            self.custody.take(key, node.machine, name, lease)
        return {"number": attempt.number, "lease": lease}

    def _spend(
        self, node: Any, name: str, first: int, settled: list[str], holding: str, wanted: str | None
    ) -> tuple[str, str]:
        """Take in what an attempt has spent, whoever has it now; give more only to its owner."""
        self._incoming.attempt(name)  # a name of one
        if self._session_usd is None:
            raise InfrastructureError("this run has no budget for all attempts together")
        account = RunAccount(self._run.path, self._session_usd, name)
        with self.lock:
            living = self.custody.attempts()
            mine = self.custody.holds(node.machine, name)
        try:
            more = wanted if mine else None
            held = account.exchange(first, settled, holding if mine else "0", more, living)
        except CallRefusal as refusal:
            return EXHAUSTED, str(refusal)
        if wanted is not None and not mine:
            return AWAY, f"{name} does not belong to {node.machine} any more"
        return (HELD if held else FULL), ""

    def _record(self, name: str, record: str) -> None:
        folder = self._incoming.attempt(name)
        known = read_attempt(folder.path)
        if known is not None and known.is_over:
            raise AttemptUnwanted(f"{name} is over")
        write_text(folder.record, record)


def _without_node(act: Callable[..., Any]) -> Callable[..., Any]:
    """Return what does something to an attempt, whoever asks for it."""

    def call(_node: Any, name: str, **data: Any) -> Any:
        return act(name, **data)

    return call
