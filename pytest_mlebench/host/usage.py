"""What an attempt uses, sampled to a small file beside its log: often at first, seldom later.

The sandbox notes memory and CPU time, a thread beside it the GPUs: a line has what its writer
knows.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_mlebench._plain_text import read_end, read_start
from pytest_mlebench._units import show_size

KEYS = ("t", "memory", "cpu", "gpu", "gpu_memory")  # in the order of the fields of UsageSample
LARGEST = 1e18  # of a figure, be it in bytes
STATS_BYTES = 2 * 1024 * 1024  # of samples that are read: those of weeks
LATEST_BYTES = 4096  # of samples that tell how things are now

# seconds between samples: one and more, up to a minute on the first day, then ever more
OFTEN, SELDOM = 1.0, 60.0
_SLOWDOWN, _LATER = 30, 1440  # parts of the time passed: about 1600 samples in 24 hours


@dataclass(frozen=True)
class UsageSample:
    """What an attempt used at one moment."""

    seconds: float  # since the agent started
    memory: float | None = None  # bytes
    cpu_seconds: float | None = None  # since the agent started
    gpu: float | None = None  # percent of the time in which its GPUs were busy, the mean of them
    gpu_memory: float | None = None  # bytes, of all its GPUs


@dataclass(frozen=True)
class LatestUsage:
    """What an attempt uses now, as far as it is known."""

    memory: float | None = None
    cpus: float | None = None
    gpu: float | None = None

    @property
    def texts(self) -> dict[str, str]:
        """Return the figures for people, each empty where it is not known."""
        return {
            "memory": "" if self.memory is None else show_size(self.memory),
            "cpus": "" if self.cpus is None else f"{self.cpus:.1f} CPUs",
            "gpu": "" if self.gpu is None else f"GPU {self.gpu:.0f} %",
        }


class UsageLog:
    """Appends samples to a file, each when it is due."""

    def __init__(self, path: Path, *, first: float = OFTEN) -> None:
        self._path = path
        self._started = time.monotonic()
        self.due = self._started + first

    @property
    def is_due(self) -> bool:
        """Tell whether it is time for a sample."""
        return time.monotonic() >= self.due

    def skip(self) -> float:
        """Let the next sample be due later; return the seconds that have passed."""
        passed = time.monotonic() - self._started
        self.due = self._started + passed + interval(passed)
        return passed

    def note(self, **figures: float | None) -> None:
        """Append one sample; a sample is worth no attempt, so what cannot be written is not."""
        passed = self.skip()
        sample = {"t": round(passed, 1), **figures}
        with contextlib.suppress(OSError), self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(sample) + "\n")


def interval(passed: float) -> float:
    """Return the seconds between two samples of an agent that has run for so long."""
    return max(OFTEN, min(SELDOM, passed / _SLOWDOWN), passed / _LATER)


def read_usage(path: Path) -> list[UsageSample]:
    """Return the samples in a file, those of the first weeks."""
    return list(_samples(read_start(path, STATS_BYTES)))


def latest_usage(path: Path) -> LatestUsage:
    """Return what the last samples in a file tell."""
    samples = list(_samples(read_end(path, LATEST_BYTES)))
    cpus = list(busy_cpus(samples))
    return LatestUsage(
        memory=next((one.memory for one in reversed(samples) if one.memory is not None), None),
        cpus=cpus[-1][1] if cpus else None,
        gpu=next((one.gpu for one in reversed(samples) if one.gpu is not None), None),
    )


def busy_cpus(samples: Sequence[UsageSample]) -> Iterator[tuple[float, float]]:
    """Yield how many CPUs were busy between two samples, with the time of the second."""
    known = [(one.seconds, one.cpu_seconds) for one in samples if one.cpu_seconds is not None]
    for (before, old), (now, new) in itertools.pairwise(known):
        if now > before:
            yield now, max(0.0, (new - old) / (now - before))


def _samples(data: bytes) -> Iterator[UsageSample]:
    for line in data.decode(errors="replace").splitlines():
        try:
            values = json.loads(line)
            moment, *figures = (_number(values.get(key)) for key in KEYS)
        except (ValueError, AttributeError, RecursionError):  # cut off, or written by somebody else
            continue
        if moment is not None:
            yield UsageSample(moment, *figures)


def _number(value: object) -> float | None:
    is_finite = isinstance(value, int | float) and abs(value) < LARGEST
    return float(value) if is_finite else None  # type: ignore[arg-type]  # a number by then
