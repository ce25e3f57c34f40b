"""The part of a worker on another machine, beside running items: it looks around and reports."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any

import pytest

from pytest_mlebench import allocation
from pytest_mlebench.errors import MlebenchError
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

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Look whether the session can run here, and tell the controller either way."""
        link = link_of(self.session.config)
        try:
            facts = _look_around(self.session)
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
                self.keeping.tidy()

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
    store, agent = session.store, session.agent
    image = getattr(session.sandbox(agent), "image_digest", None)
    competitions = [session.registry.load(each) for each in session.settings.ids]
    return {
        "slots": slots_of(session),
        "seconds_left": allocation.seconds_left(),
        "notes": notes,
        "hardware": host_hardware(),
        "image": None if image is None else image(agent),
        "prepared": [each.id for each in competitions if store.find(each) is not None],
    }
