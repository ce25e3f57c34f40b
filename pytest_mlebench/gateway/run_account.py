"""What all attempts of a run may spend together: a small file that workers lock in turn.

The file is part of the run: a resumed session goes on with what is left. A worker that was killed
lets go of what it held; what it had spent stays spent. For attempts on other hosts the controller
has the shares (``exchange``); what they have spent comes numbered, so that it is booked once.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from pytest_mlebench._files import write_text
from pytest_mlebench.errors import InfrastructureError
from pytest_mlebench.gateway.refusal import CallRefusal
from pytest_mlebench.host.process_identity import Owner, host_name, this_process

FILE = "spending.json"
STALE_SECONDS = 3_600.0  # after which what a worker of another host holds is not believed any more

_LOCK_SECONDS = 30.0
_SCHEMA = 1


@dataclass
class _Held:
    """What one gateway holds for its calls in flight."""

    owner: Owner
    usd: Decimal
    time: float

    @property
    def counts(self) -> bool:
        """Tell whether it is held still: a process of this host can be seen, others are old."""
        if self.owner.host == host_name():
            return not self.owner.is_dead()
        return time.time() - self.time < STALE_SECONDS


@dataclass
class _Book:
    """What the file says."""

    spent: Decimal
    held: dict[str, _Held]
    booked: dict[str, int]  # by attempt on another host: how many of its calls are in "spent"


class RunAccount:
    """A share of one attempt in the run's account."""

    def __init__(self, folder: Path, limit: float, name: str) -> None:
        self._file = folder / FILE
        self._limit = Decimal(str(limit))
        self._name = name  # of the attempt, unique in the run
        self._owner = this_process()

    async def try_to_hold(self, usd: Decimal) -> bool:
        """Hold some dollars if they are left beside what others hold; refuse if none are left."""
        return await asyncio.to_thread(self._try_to_hold, usd)

    async def settle(self, held: Decimal, usd: Decimal) -> None:
        """Let go of what was held, and book what was spent."""
        await asyncio.to_thread(self._settle, held, usd)

    async def close(self) -> None:
        """Let go of whatever is still held: no call of the attempt is under way any more."""
        await asyncio.to_thread(self._let_go)

    def exchange(
        self,
        first: int,
        settled: Sequence[str],
        holding: str,
        wanted: str | None,
        living: Collection[str],
    ) -> bool:
        """Take in what an attempt on another host has spent and holds; hold more if there is more.

        *settled* are the costs of its calls from number *first* on; those that are booked already
        are passed over. *living* are the attempts on other hosts: what others held is free again.
        """
        with self._opened() as book:
            booked = max(first, book.booked.get(self._name, 0))
            if len(settled) > booked - first:
                book.spent += sum(map(Decimal, settled[booked - first :]), Decimal(0))
                book.booked[self._name] = first + len(settled)
            book.held.pop(self._name, None)
            self._change_hold(book, Decimal(holding))
            for name in [name for name, one in book.held.items() if one.owner == self._owner]:
                if name not in living:
                    del book.held[name]
        return wanted is None or self._try_to_hold(Decimal(wanted))

    def spent(self) -> float:
        """Return what the run has spent so far."""
        with self._opened() as book:
            return float(book.spent)

    def _try_to_hold(self, usd: Decimal) -> bool:
        with self._opened() as book:
            if book.spent >= self._limit:
                raise CallRefusal(
                    "budget",
                    f"the budget of the whole run is exhausted: its {self._limit} dollars are "
                    "used up; no further call will be answered, go on with what you have",
                )
            held = sum((one.usd for one in book.held.values()), Decimal(0))
            if held and book.spent + held >= self._limit:
                return False
            self._change_hold(book, usd)
            return True

    def _settle(self, held: Decimal, usd: Decimal) -> None:
        with self._opened() as book:
            book.spent += usd
            self._change_hold(book, -held)

    def _let_go(self) -> None:
        with self._opened() as book:
            book.held.pop(self._name, None)

    def _change_hold(self, book: _Book, change: Decimal) -> None:
        mine = book.held.pop(self._name, None)
        left = (mine.usd if mine else Decimal(0)) + change
        if left > 0:
            book.held[self._name] = _Held(self._owner, left, time.time())

    @contextmanager
    def _opened(self) -> Iterator[_Book]:
        """Yield what the file says, under its lock, and write it back if it has changed."""
        from filelock import FileLock, Timeout  # late on purpose: only where there is a bound

        try:
            with FileLock(self._file.with_suffix(".lock"), timeout=_LOCK_SECONDS):
                before = self._read()
                book = _decode(before)
                yield book
                if (after := _encode(book)) != before:
                    write_text(self._file, json.dumps(after, indent=1) + "\n")
        except Timeout:
            raise InfrastructureError(
                f"{self._file} has been locked for {_LOCK_SECONDS:.0f} s: is the disk alive?"
            ) from None
        except (ValueError, KeyError, TypeError, InvalidOperation) as problem:
            raise InfrastructureError(
                f"{self._file} is damaged, so that the run's budget cannot be held: {problem}"
            ) from None

    def _read(self) -> dict[str, Any]:
        try:
            content = json.loads(self._file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {"schema": _SCHEMA, "spent_usd": "0", "held": {}, "booked": {}}
        if content["schema"] != _SCHEMA:
            raise ValueError(f"its schema is {content['schema']}, known is {_SCHEMA}")
        return dict(content)


def _decode(content: dict[str, Any]) -> _Book:
    held = {
        name: _Held(Owner(**one["owner"]), Decimal(one["usd"]), float(one["time"]))
        for name, one in content["held"].items()
    }
    alive = {name: one for name, one in held.items() if one.counts}
    return _Book(Decimal(content["spent_usd"]), alive, dict(content.get("booked", {})))


def _encode(book: _Book) -> dict[str, Any]:
    held = {
        name: {"owner": asdict(one.owner), "usd": str(one.usd), "time": one.time}
        for name, one in book.held.items()
    }
    spent = str(book.spent)
    return {"schema": _SCHEMA, "spent_usd": spent, "held": held, "booked": book.booked}
