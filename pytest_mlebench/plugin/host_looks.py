"""The first look at all machines of a session: what cannot work is refused before anything runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_mlebench.machines.hosts_file import Machines
from pytest_mlebench.machines.ssh import (
    HostLook,
    at_once,
    disk_note,
    disk_problems,
    look_at,
    own_versions,
)
from pytest_mlebench.plugin.allocations import Allocations
from pytest_mlebench.plugin.checks import distinct_limits
from pytest_mlebench.plugin.session import MleSession


class HostLooks:
    """What a look at each of the machines has found."""

    def __init__(self, session: MleSession, machines: Machines, allocations: Allocations) -> None:
        self._session = session
        self._machines = machines
        self._allocations = allocations
        self._looks: list[HostLook] = []

    @property
    def reachable(self) -> set[str]:
        """Return the machines with which nothing is wrong."""
        return {each.machine.name for each in self._looks if not each.problems}

    def take(self) -> None:
        """Look at all machines at once; refuse them, or note who is missing, as the user wants."""
        versions, keepalive = own_versions(), self._machines.keepalive
        looks = at_once(
            self._machines.machines, lambda machine: look_at(machine, keepalive, versions)
        )
        self._looks = [self._with_more(look) for look in looks]
        problems = [f"{each.machine}: {text}" for each in self._looks for text in each.problems]
        if problems and (self._session.settings.hosts_missing == "fail" or not self.reachable):
            count = len(looks) - len(self.reachable)
            head = f"{self._machines.path}: {count} of {len(looks)} hosts cannot take part:"
            raise pytest.UsageError("\n  ".join((head, *problems)))
        self._session.notes += [f"host {problem}" for problem in problems]

    def disclose_disks(self) -> None:
        """Note which machines have less left on their disks than an attempt may write."""
        wanted = max(limits.disk_bytes for limits in distinct_limits(self._session))
        notes = (disk_note(look, wanted) for look in self._looks)
        self._session.notes += [note for note in notes if note]

    def _with_more(self, look: HostLook) -> HostLook:
        more = (*self._allocations.problems(look), *disk_problems(look))
        return replace(look, problems=(*look.problems, *more))
