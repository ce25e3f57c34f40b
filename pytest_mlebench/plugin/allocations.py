"""The allocations that Slurm gives a session: long enough, enforced or not, and when too old."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pytest_mlebench._units import show_duration
from pytest_mlebench.machines.hosts_file import Machine
from pytest_mlebench.machines.slurm import SPARE_SECONDS, not_enforced, time_of, usual_time
from pytest_mlebench.machines.slurm_jobs import refusal
from pytest_mlebench.machines.ssh import HostLook
from pytest_mlebench.plugin.checks import distinct_limits
from pytest_mlebench.plugin.session import MleSession
from pytest_mlebench.reports.results import ItemKey

NEEDED_SECONDS = 600.0  # of an allocation, beside an item's time limit, when the item begins


class Allocations:
    """What is known of the time that workers have left."""

    def __init__(self, session: MleSession) -> None:
        self._session = session
        self._ends: dict[Any, float] = {}  # by worker; of the monotonic clock

    def problems(self, look: HostLook) -> list[str]:
        """Return why allocations would not be given, or not be long enough."""
        machine = look.machine
        if machine.srun is None or look.problems:
            return []
        refused = refusal(machine)
        return [refused] if refused is not None else self._too_short(machine)

    def _too_short(self, machine: Machine) -> list[str]:
        """Refuse allocations that end before an agent may have ended."""
        words = machine.srun or ()
        asked, word = time_of(words), "--time"
        if asked is None:
            asked, word = usual_time(words), "the partition's usual time"
        if asked is None:
            self._session.notes.append(
                f"{machine}: nobody knows how long its allocations last: give srun a --time"
            )
            return []
        needed = max(limits.time_seconds for limits in distinct_limits(self._session))
        if asked >= needed + SPARE_SECONDS:
            return []
        return [
            f"{word} of {show_duration(asked)} is shorter than the time limit of "
            f"{show_duration(needed)} and {show_duration(SPARE_SECONDS)} for what comes beside it"
        ]

    def disclose(self, pools: Iterable[Machine]) -> None:
        """Note what Slurm does not keep attempts from exceeding."""
        names = ", ".join(machine.name for machine in pools)
        lacking = not_enforced() if names else []
        if lacking is None:
            self._session.notes.append(f"{names}: whether Slurm enforces its limits is not known")
        elif lacking:
            what = " and ".join(lacking)
            self._session.notes.append(f"{names}: Slurm does not enforce the allocation's {what}")

    def note(self, worker: Any, seconds_left: float | None) -> None:
        """Take note how long the allocation of a worker will last."""
        if seconds_left is not None:
            self._ends[worker] = time.monotonic() + seconds_left

    def last_for(self, worker: Any, key: ItemKey) -> bool:
        """Tell whether a worker's allocation is long enough for an item that would begin now."""
        ends = self._ends.get(worker)
        if ends is None:
            return True
        session = self._session
        limits = session.limits(session.registry.load(key.competition), session.agent)
        return ends - time.monotonic() >= limits.time_seconds + NEEDED_SECONDS

    def spent(self, keys: Sequence[ItemKey | None]) -> Iterator[Any]:
        """Yield the workers whose allocations are too old for every one of some items."""
        for worker in list(self._ends) if keys else ():
            if worker.mle_slot.worker is not worker:
                del self._ends[worker]
            elif not any(key is None or self.last_for(worker, key) for key in keys):
                yield worker
