"""What a long preparation tells the person who waits for it."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, cast

EVERY = 10.0  # seconds between two lines about one download


class Progress(Protocol):
    """Something that can be told a sentence, and how far a download is."""

    def __call__(self, text: str) -> None:
        """Tell a sentence."""

    def transfer(self, name: str, done: int, total: int | None) -> None:
        """Tell how many bytes of how many have arrived; the end is ``done == total``."""


class Lines:
    """Plain lines, for logs and terminals without cursor."""

    def __init__(self, say: Callable[[str], None], every: float = EVERY) -> None:
        self.say = say
        self.every = every
        self._lock = threading.Lock()
        self._rates: dict[str, TransferRate] = {}

    def __call__(self, text: str) -> None:
        self.say(text)

    def transfer(self, name: str, done: int, total: int | None) -> None:
        """Tell a download's progress, now and then."""
        with self._lock:
            rate = self._rates.setdefault(name, TransferRate(done))
            if done == total:
                del self._rates[name]
                line = f"{name}: {size(done)} downloaded, {size(rate.average(done))}/s"
            elif rate.due(self.every):
                line = f"{name}: {rate.line(done, total)}"
            else:
                return
        self.say(line)


class TransferRate:
    """How fast a download is, from where it began."""

    def __init__(self, done: int) -> None:
        self.began = self.told = time.monotonic()
        self.first = done

    def due(self, every: float) -> bool:
        """Tell whether it is time for another line."""
        now = time.monotonic()
        if now - self.told < every:
            return False
        self.told = now
        return True

    def average(self, done: int) -> float:
        """Return bytes per second."""
        return (done - self.first) / max(time.monotonic() - self.began, 1e-3)

    def line(self, done: int, total: int | None) -> str:
        """Return bytes, share, speed and the time left."""
        speed = self.average(done)
        if not total:
            return f"{size(done)}, {size(speed)}/s"
        left = f", {duration((total - done) / speed)} left" if speed else ""
        return f"{size(done)} of {size(total)} ({done / total:.0%}), {size(speed)}/s{left}"


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


def told(say: Callable[[str], None] | Progress) -> Progress:
    """Return a progress for anything that can be told a sentence."""
    return cast(Progress, say) if hasattr(say, "transfer") else Lines(say)


def silent(text: str) -> None:
    """Take a sentence and tell nobody."""
    del text


def size(count: float) -> str:
    """Return a number of bytes for people."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def duration(seconds: float) -> str:
    """Return a time span for people."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def _write(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
