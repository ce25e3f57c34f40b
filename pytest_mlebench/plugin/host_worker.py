"""The part of a worker on another machine, beside running items: it looks around and reports."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Generator
from typing import Any

import pytest

from pytest_mlebench.errors import MlebenchError
from pytest_mlebench.host import allocation
from pytest_mlebench.host.hardware import host_hardware
from pytest_mlebench.machines.posting import Posting
from pytest_mlebench.machines.slurm import note_allocation
from pytest_mlebench.plugin.distribution import slots_of
from pytest_mlebench.plugin.preflight import refuse_what_cannot_work
from pytest_mlebench.plugin.session import MleSession
from pytest_mlebench.plugin.worker_link import keeping_of, link_of


class HostWorker:
    """What a worker on another machine does beside running items."""

    def __init__(self, session: MleSession, posting: Posting) -> None:
        self.session = session
        self.posting = posting
        self.keeping = keeping_of(session, posting)
        note_allocation()
        self._prepared: set[str] = set()  # what the controller knows of

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Look whether the session can run here, and tell the controller either way."""
        link = link_of(self.session.config)
        try:
            facts = _look_around(self.session)
            self._prepared = set(facts["prepared"])
        except MlebenchError as problem:
            link.ask("refuse", problems=[str(problem)])
            raise pytest.UsageError(str(problem)) from None
        dropped = link.ask("greet", facts=facts, left=self.keeping.left())
        self.keeping.drop(dropped)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        """Send home whatever an item has left here."""
        try:
            return (yield)
        finally:
            with contextlib.suppress(MlebenchError):  # it is lost, or comes with the next worker
                self._tell_what_is_new()
                self.keeping.tidy()

    def _tell_what_is_new(self) -> None:
        """Let the controller know which datasets have been prepared here meanwhile."""
        new = set(_prepared(self.session)) - self._prepared
        if new:
            link_of(self.session.config).ask("prepared", competitions=sorted(new))
            self._prepared |= new

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Say that nothing runs here any more."""
        link = link_of(self.session.config)
        with contextlib.suppress(MlebenchError):
            self.keeping.tidy()
            link.ask("ended")
        link.close()


def _look_around(session: MleSession) -> dict[str, Any]:
    """Return what the controller needs to know of this machine, or refuse what cannot work."""
    notes = refuse_what_cannot_work(session)
    image = getattr(session.sandbox(session.agent), "image_digest", None)
    return {
        "slots": slots_of(session),
        "seconds_left": allocation.seconds_left(),
        "notes": notes,
        "host": socket.gethostname(),
        "hardware": host_hardware(),
        "image": None if image is None else image(session.agent),
        "prepared": _prepared(session),
    }


def _prepared(session: MleSession) -> list[str]:
    """Return the competitions of the session that have their data here."""
    competitions = [session.registry.load(each) for each in session.settings.ids]
    return [each.id for each in competitions if session.store.find(each) is not None]
