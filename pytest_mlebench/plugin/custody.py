"""Which machine has an item's attempt, so that no other one begins it at the same time.

An attempt goes on for its grace when its connection is lost. Until that is certainly over, or the
machine itself says that it has ended, the item belongs to that machine alone. The grace is counted
here from when the machine's last question arrived, and there from when that question was asked and
only if it was answered: whatever the network does, it is over there before it is over here.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace

from pytest_mlebench._files import write_text
from pytest_mlebench.attempts.record import Run, read_attempts
from pytest_mlebench.attempts.run_results import item_of
from pytest_mlebench.layout import RunFolder
from pytest_mlebench.machines.posting import place_name
from pytest_mlebench.reports.results import ItemKey

MARGIN_SECONDS = 5.0  # beyond the grace, with which attempts have ended: clocks run differently
HEAD_START_SECONDS = 15.0  # for a machine to say that it has an attempt, when a run is resumed
_NOT_OVER = ("created", "waiting", "running")


@dataclass(frozen=True)
class Held:
    """An attempt that a machine has."""

    machine: str
    attempt: str  # COMPETITION/seedK/attemptN
    until: float | None  # of the monotonic clock; None while the machine is there
    lease: str | None = None  # the token under which it has the attempt


class Custody:
    """The attempts that machines have, by item."""

    def __init__(self, run: RunFolder, grace: float) -> None:
        self._run = run
        self._grace = grace
        self._held: dict[ItemKey, Held] = {}
        self._renewed: dict[str, float] = {}  # by machine: when it was last heard of

    def machine_of(self, key: ItemKey) -> str | None:
        """Return the machine that an item belongs to, if it belongs to one."""
        held = self._held.get(key)
        return None if held is None else held.machine

    def may_have(self, key: ItemKey, machine: str) -> bool:
        """Tell whether a machine may run an item: it belongs to nobody else."""
        held = self._held.get(key)
        return held is None or held.machine == machine

    def attempts(self) -> set[str]:
        """Return the attempts that machines have."""
        return {held.attempt for held in list(self._held.values())}

    def holds(self, machine: str, attempt: str) -> bool:
        """Tell whether a machine has an attempt, under whichever lease."""
        wanted = (machine, attempt)
        return wanted in ((held.machine, held.attempt) for held in list(self._held.values()))

    def allows(self, machine: str, attempt: str, lease: str | None) -> bool:
        """Tell whether a machine may write into the folder of an attempt under its lease."""
        wanted = (machine, attempt, lease)
        found = ((held.machine, held.attempt, held.lease) for held in list(self._held.values()))
        return wanted in found

    def renew(self, machine: str) -> None:
        """Take note that a machine has asked for more time."""
        self._renewed[machine] = time.monotonic()

    def beat(self, every: float) -> None:
        """Write down that machines may renew their leases until the next beat."""
        state = {"grace": self._grace, "every": every}
        write_text(self._run.path / ".beat", json.dumps(state))

    def take(self, key: ItemKey, machine: str, attempt: str, lease: str | None = None) -> None:
        """Give an item to a machine that is connected."""
        self._held[key] = Held(machine, attempt, None, lease)

    def release(self, key: ItemKey) -> None:
        """Let an item belong to nobody any more."""
        self._held.pop(key, None)

    def lose(self, machine: str) -> None:
        """Start the grace of everything that a machine has."""
        until = self._last_word(machine) + self._grace + MARGIN_SECONDS
        for key, held in self._held.items():
            if held.machine == machine and held.until is None:
                self._held[key] = replace(held, until=until)

    def gone(self, machine: str) -> list[ItemKey]:
        """Let go of all that a machine had: Slurm says that it has ended; return those items."""
        lost = [key for key, held in self._held.items() if held.machine == machine]
        for key in lost:
            self.give_up(key, f"the allocation of {machine} has ended, and the attempt with it")
        return lost

    def _last_word(self, machine: str) -> float:
        return self._renewed.get(machine, time.monotonic())

    def absent_machines(self) -> set[str]:
        """Return the machines that have attempts and are not there."""
        return {held.machine for held in list(self._held.values()) if held.until is not None}

    def found(self, machine: str, there: set[str]) -> list[ItemKey]:
        """Take in what attempts a machine says that it has; return the items that it has lost."""
        lost = [
            key
            for key, held in self._held.items()
            if held.machine == machine and held.until is not None and held.attempt not in there
        ]
        for key, held in list(self._held.items()):
            if key in lost:
                self.give_up(key, f"{machine} was lost, and the attempt with it")
            elif held.machine == machine and held.attempt in there:
                self._held[key] = replace(held, until=None)
        return lost

    def expire(self) -> list[ItemKey]:
        """Let go of what has outlived its grace, and return those items."""
        now = time.monotonic()
        over = [
            key for key, held in self._held.items() if held.until is not None and held.until < now
        ]
        for key in over:
            held = self._held[key]
            self.give_up(key, f"{held.machine} was lost for longer than the grace")
        return over

    def resume(self) -> None:
        """Read which machines may still have attempts of an earlier session of the run."""
        try:
            beat = self._run.path / ".beat"
            state = json.loads(beat.read_text())
            grace = float(state["grace"]) + float(state.get("every", 0.0))
            passed = time.time() - beat.stat().st_mtime
        except (OSError, ValueError, KeyError, TypeError):
            return
        now = time.monotonic()
        until = max(now + grace + MARGIN_SECONDS - max(0.0, passed), now + HEAD_START_SECONDS)
        for run in self._unfinished():
            name = run.folder.relative_to(self._run.path).as_posix()
            where = run.record.conditions
            machine = place_name(where.machine or "", where.job)
            self._held[item_of(run.record)] = Held(machine, name, until, run.record.lease)

    def _unfinished(self) -> list[Run]:
        runs = [run for seed in self._run.seeds() for run in read_attempts(seed)]
        return [run for run in runs if run.phase in _NOT_OVER and run.record.conditions.machine]

    def give_up(self, key: ItemKey, why: str) -> None:
        """Write down that an attempt has ended without a result."""
        held = self._held.pop(key)
        for run in read_attempts(self._run.seed(key.competition, key.seed)):
            if run.folder == self._run.path / held.attempt and run.phase in _NOT_OVER:
                run.enter("error", error=why)
