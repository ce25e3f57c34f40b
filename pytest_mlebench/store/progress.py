"""How a long preparation is shown to the person who waits for it."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from pytest_mlebench._messages import Log, Progress
from pytest_mlebench._units import show_duration, show_size

SECONDS_BETWEEN_LINES = 10.0  # about one download
SECONDS_BETWEEN_PULSES = 30.0  # about one competition that is unpacked or prepared


class Lines:
    """Plain lines, for logs and terminals without cursor."""

    def __init__(self, log: Log, every: float = SECONDS_BETWEEN_LINES) -> None:
        self.log = log
        self.every = every
        self._lock = threading.Lock()
        self._rates: dict[str, TransferRate] = {}

    def __call__(self, text: str) -> None:
        self.log(text)

    def transfer(self, name: str, done: int, total: int | None) -> None:
        """Show a download's progress, now and then."""
        with self._lock:
            rate = self._rates.setdefault(name, TransferRate(done))
            if done == total:
                del self._rates[name]
                line = f"{name}: {show_size(done)} downloaded, {show_size(rate.average(done))}/s"
            elif rate.due(self.every):
                line = f"{name}: {rate.line(done, total)}"
            else:
                return
        self.log(line)


class TransferRate:
    """How fast a download is, from where it began."""

    def __init__(self, done: int) -> None:
        self.began = self.shown = time.monotonic()
        self.first = done

    def due(self, every: float) -> bool:
        """Return whether it is time for another line."""
        now = time.monotonic()
        if now - self.shown < every:
            return False
        self.shown = now
        return True

    def average(self, done: int) -> float:
        """Return bytes per second."""
        return (done - self.first) / max(time.monotonic() - self.began, 1e-3)

    def line(self, done: int, total: int | None) -> str:
        """Return bytes, share, speed and the time left."""
        speed = self.average(done)
        if not total:
            return f"{show_size(done)}, {show_size(speed)}/s"
        far = f"{show_size(done)} of {show_size(total)} ({done / total:.0%})"
        left = f", {show_time_left((total - done) / speed)} left" if speed else ""
        return f"{far}, {show_size(speed)}/s{left}"


class Pulse:
    """Lines about other work than downloads, now and then: how far it is."""

    def __init__(self, log: Log, name: str) -> None:
        self.log = log
        self.name = name
        self._every = SECONDS_BETWEEN_PULSES
        self._rate = TransferRate(0)

    def bytes_done(self, done: int, total: int) -> None:
        """Show how many bytes of how many are done, if it is time for a line."""
        if total and self._rate.due(self._every):
            share = f"{done / total:.0%}"
            self.log(f"{self.name}, {show_size(done)} of {show_size(total)} ({share})")

    @contextmanager
    def watching(self, written: Callable[[], int | None]) -> Iterator[None]:
        """Show how many bytes have been written as long as the block lasts."""
        over = threading.Event()

        def watch() -> None:
            while not over.wait(self._every):
                size = written()
                if size is None:
                    return
                try:
                    self.log(f"{self.name}, {show_size(size)} written so far")
                except BaseException:  # the session is being interrupted, which others see to
                    return

        thread = threading.Thread(target=watch, daemon=True, name="mle-pulse")
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


class Bars:
    """A bar per download, for terminals."""

    def __init__(self, bars: Any) -> None:
        self.bars = bars
        self._tasks: dict[str, Any] = {}
        self._lock = threading.Lock()

    def __call__(self, text: str) -> None:
        self.bars.console.print(text, highlight=False, markup=False)

    def transfer(self, name: str, done: int, total: int | None) -> None:
        """Move a download's bar."""
        with self._lock:
            if name not in self._tasks:
                self._tasks[name] = self.bars.add_task(name, total=total, completed=done)
            self.bars.update(self._tasks[name], completed=done, total=total)
            if done == total:
                self.bars.remove_task(self._tasks.pop(name))


@contextmanager
def on_terminal() -> Iterator[Progress]:
    """Yield bars where the standard error is a terminal, else lines."""
    if not sys.stderr.isatty():
        yield Lines(_write)
        return
    from rich import progress  # late on purpose: heavy
    from rich.console import Console

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.DownloadColumn(),
        progress.TransferSpeedColumn(),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=Console(stderr=True)) as bars:
        yield Bars(bars)


def as_progress(log: Log | Progress) -> Progress:
    """Return a progress for anything that receives messages."""
    return cast(Progress, log) if hasattr(log, "transfer") else Lines(log)


def show_time_left(seconds: float) -> str:
    """Return a time span as exactly as it can be foretold: in seconds, above that in minutes."""
    return show_duration(round(seconds) if seconds < 60 else 60 * round(seconds / 60))


def _write(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
