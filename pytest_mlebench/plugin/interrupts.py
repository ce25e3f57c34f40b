"""SIGTERM and SIGHUP end a session as Ctrl-C does: agents, containers and workers end, the summary
and the reports are written, the exit status is 2."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

import pytest

SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Handle the signals by which a session is told to end, as long as it lives."""

    def __init__(self) -> None:
        self._before: dict[signal.Signals, Any] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Begin to handle them; what somebody else handles, or wants ignored, stays his."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in SIGNALS:
            if signal.getsignal(number) is signal.SIG_DFL:
                self._before[number] = signal.signal(number, _interrupt)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """Put things back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)


def _interrupt(number: int, _frame: FrameType | None) -> None:
    for other in SIGNALS:  # once is enough: what is being taken down must not be interrupted
        signal.signal(other, signal.SIG_IGN)
    raise KeyboardInterrupt(signal.Signals(number).name)
