"""What hosts tell of themselves, for the disclosure: which they are, and what is special there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_mlebench.plugin.results_log import ResultsLog
from pytest_mlebench.reports.disclosure import host_name, host_text


class HostDisclosure:
    """The hosts that have taken part, or could not."""

    def __init__(self, log: ResultsLog) -> None:
        self._log = log
        self._hosts: dict[str, str] = {}  # what each is made of
        self._notes: dict[str, list[str]] = {}  # the hosts, by what is to be said of them

    def greet(self, machine: str, facts: Mapping[str, Any]) -> None:
        """Take in what a host tells when it comes."""
        name, hardware = host_name(machine, facts["host"]), facts["hardware"]
        self._hosts[name] = host_text(hardware, ())
        for note in facts["notes"]:
            self._add(note, name)
        self._tell()

    def refuse(self, machine: str, problems: list[str]) -> None:
        """Take in why a host cannot take part."""
        for problem in problems:
            self._add(problem, machine)
        self._tell()

    def _add(self, note: str, name: str) -> None:
        names = self._notes.setdefault(note, [])
        if name not in names:
            names.append(name)

    def _tell(self) -> None:
        notes = [
            f"{'host' if len(names) == 1 else 'hosts'} {', '.join(sorted(names))}: {note}"
            for note, names in self._notes.items()
        ]
        self._log.disclose_hosts(self._hosts, notes)
