"""Small curves of one attempt: memory, CPU and GPU over time, the percentile of its submissions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pytest_mlebench._units import show_duration, show_score, show_size
from pytest_mlebench.grade import Snapshot
from pytest_mlebench.host.usage import UsageSample, busy_cpus
from pytest_mlebench.reports.over_time import after

WIDTH, HEIGHT, MARGIN = 260, 60, 5
POINTS = 40  # of a curve at most, each the highest of its stretch of time
SHOWN_SNAPSHOTS = 12  # dots of a course


@dataclass(frozen=True)
class Curve:
    """A line from left to right, and what it shows in words."""

    name: str
    points: str
    label: str


@dataclass(frozen=True)
class Mark:
    """A submission that was kept: where it is on the course, what it would have earned."""

    x: float
    y: float
    kind: str  # a medal, "none" or "invalid"
    label: str


@dataclass(frozen=True)
class Course:
    """The percentile of an attempt's submissions over time, as steps."""

    path: str
    marks: tuple[Mark, ...]


def usage_curves(samples: Sequence[UsageSample], points: int = POINTS) -> list[Curve]:
    """Return the curves of what was sampled often enough."""
    memory = [(one.seconds, one.memory) for one in samples if one.memory is not None]
    gpu = [(one.seconds, one.gpu) for one in samples if one.gpu is not None]
    gpu_memory = [(one.seconds, one.gpu_memory) for one in samples if one.gpu_memory is not None]
    sampled: tuple[tuple[str, Sequence[tuple[float, float]], Callable[[float], str]], ...] = (
        ("memory", memory, show_size),
        ("CPUs", list(busy_cpus(samples)), lambda number: f"{number:.1f}"),
        ("GPU", gpu, lambda percent: f"{percent:.0f} %"),
        ("GPU memory", gpu_memory, show_size),
    )
    return [_curve(name, values, show, points) for name, values, show in sampled if len(values) > 1]


def course(kept: Sequence[Snapshot], seconds: float | None) -> Course | None:
    """Return the percentile over time as steps, with a mark for what changed it."""
    if not kept:
        return None
    end = max(seconds or 0, kept[-1].seconds) or 1

    def at(moment: float, percentile: float) -> tuple[float, float]:
        x = MARGIN + (WIDTH - 2 * MARGIN) * moment / end
        y = HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * percentile / 100
        return round(x, 1), round(y, 1)

    start, level = at(0, 0)
    steps = [f"M{start:.0f} {level:.0f}"]
    for one in kept:
        x, y = at(one.seconds, one.percentile or 0.0)
        if y != level:
            steps.append(f"H{x:.0f}V{y:.0f}")
        level = y
    steps.append(f"H{at(end, 0)[0]:.0f}")
    marks = tuple(_mark(one, at(one.seconds, one.percentile or 0)) for one in telling(kept))
    return Course("".join(steps), marks)


def telling(kept: Sequence[Snapshot]) -> list[Snapshot]:
    """Return the snapshots that differ from the one before, the last of them where many do."""
    changed = [
        one
        for before, one in zip((None, *kept), kept, strict=False)
        if before is None or (one.score, one.problem) != (before.score, before.problem)
    ]
    return changed[-SHOWN_SNAPSHOTS:]


def _mark(one: Snapshot, where: tuple[float, float]) -> Mark:
    if one.score is None:
        return Mark(*where, "invalid", f"after {after(one)}: {one.problem or 'not graded'}")
    medal = str(one.medal) if one.medal else "no medal"
    return Mark(*where, str(one.medal), f"after {after(one)}: {show_score(one.score)}, {medal}")


def _curve(
    name: str, values: Sequence[tuple[float, float]], show: Callable[[float], str], count: int
) -> Curve:
    end, peak = values[-1][0] or 1, max(value for _, value in values)
    highest: dict[int, float] = {}
    for moment, value in values:
        place = min(count - 1, max(0, int(count * moment / end)))
        highest[place] = max(value, highest.get(place, 0.0))
    points = " ".join(
        f"{MARGIN + (WIDTH - 2 * MARGIN) * place / max(1, count - 1):.0f},"
        f"{HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * value / (peak or 1):.0f}"
        for place, value in sorted(highest.items())
    )
    return Curve(name, points, f"{name} up to {show(peak)} in {show_duration(max(end, 0.1))}")
