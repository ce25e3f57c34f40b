"""How attempts on another machine come home: what they have more while they run, all in the end."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pytest_mlebench._files import write_text
from pytest_mlebench.layout import AttemptFolder
from pytest_mlebench.machines.delivery import LeasedLink, plain, send_attempt, send_tails
from pytest_mlebench.machines.link import AttemptUnwanted, Link, LinkRefused

TEND_SECONDS = 2.0  # between looks at what a running attempt has more
_BROUGHT = ".brought"  # in an attempt's folder: the sha256 of the record that came from elsewhere
_DELIVERED = ".delivered"  # the same of the record that was delivered

Names = Callable[[AttemptFolder], str]


class Homecoming:
    """A worker's way to send attempts to its controller, and to bring what that has of them."""

    def __init__(self, link: Link, name_of: Names, home_of: Callable[[Path], str]) -> None:
        self._link = link
        self._name_of = name_of
        self._home_of = home_of
        self._sent: dict[str, dict[str, int]] = {}  # by attempt: bytes of its growing files
        self._records: dict[str, str] = {}  # by attempt: the record that was sent last
        self._shown = 0.0

    def show(self, folder: AttemptFolder) -> None:
        """Send what a running attempt has more to show, now and then."""
        now = time.monotonic()
        if now - self._shown < TEND_SECONDS:
            return
        self._shown = now
        with contextlib.suppress(LinkRefused):
            self.send_record(folder)
            leased = self._leased(folder, folder.record.read_text(encoding="utf-8"))
            send_tails(leased, folder.path, self._sent.setdefault(self._name_of(folder), {}))

    def send_record(self, folder: AttemptFolder) -> None:
        """Send the record of an attempt that is not over yet; what is over comes as a whole."""
        name, text = self._name_of(folder), folder.record.read_text(encoding="utf-8")
        if self._records.get(name) != text and json.loads(text)["ending"] is None:
            self._leased(folder, text).ask("record", record=text)
            self._records[name] = text

    def is_due(self, attempt: AttemptFolder) -> bool:
        """Tell whether an attempt has to be delivered: it has changed since it was, or came."""
        text = attempt.record.read_text(encoding="utf-8")
        return not any(
            mark.is_file() and mark.read_text() == _sha256(text) for mark in _marks(attempt)
        )

    def deliver(self, attempt: AttemptFolder, *, is_ours: bool) -> None:
        """Send an attempt home as a whole; one that nobody wants there is as good as delivered."""
        text = attempt.record.read_text(encoding="utf-8")
        home = self._home_of(attempt.path)
        record = json.dumps(plain(json.loads(text), home), indent=1) + "\n"
        try:
            send_attempt(self._leased(attempt, text), attempt.path, record.encode())
        except AttemptUnwanted:  # another host has the item, or it is over already
            if not is_ours:
                return  # it may be that other one's
        write_text(attempt.path / _DELIVERED, _sha256(text))

    def bring(self, attempt: AttemptFolder, known: dict[str, Any]) -> None:
        """Bring an attempt that is over: its record, and the files that the controller names."""
        attempt.path.mkdir(mode=0o700, exist_ok=True)
        for file in known["files"]:
            self._fetch(attempt, file)
        write_text(attempt.path / _BROUGHT, _sha256(known["record"]))
        write_text(attempt.record, known["record"])

    def _fetch(self, attempt: AttemptFolder, file: str) -> None:
        path, offset = attempt.path / file, 0
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = self._name_of(attempt)
        with path.open("wb") as out:
            while data := self._link.ask("file", name=name, file=file, offset=offset):
                out.write(data)
                offset += len(data)

    def _leased(self, attempt: AttemptFolder, record: str) -> LeasedLink:
        """Return a link for questions about an attempt, under the lease that its record has."""
        return LeasedLink(self._link, self._name_of(attempt), json.loads(record).get("lease"))


def is_home(attempt: AttemptFolder) -> bool:
    """Tell whether an attempt has come from the controller, or was delivered to it."""
    return any(mark.exists() for mark in _marks(attempt))


def _marks(attempt: AttemptFolder) -> tuple[Path, Path]:
    return attempt.path / _DELIVERED, attempt.path / _BROUGHT


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
