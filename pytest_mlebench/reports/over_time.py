"""How a score came about: milestones among the submissions kept while an agent ran."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pytest_mlebench._units import show_duration
from pytest_mlebench.grade import Snapshot
from pytest_mlebench.reports.results import Result

HEAD = ("attempt", "kept", "valid after", "first medal", "best percentile")


def followed(results: Iterable[Result]) -> list[Result]:
    """Return the results of attempts whose submissions were kept as they changed."""
    return [result for result in results if result.snapshots]


def milestones(result: Result) -> Iterator[str]:
    """Yield the cells of a row below ``HEAD``."""
    kept = result.snapshots
    yield f"{result.competition} seed {result.seed}"
    yield str(len(kept))
    valid = _first(kept, lambda one: one.score is not None)
    yield "" if valid is None else after(valid)
    medal = _first(kept, lambda one: bool(one.medal))
    yield "" if medal is None else f"{medal.medal!s} after {after(medal)}"
    placed = [one for one in kept if one.percentile is not None]
    best = max(placed, key=lambda one: one.percentile or 0, default=None)
    yield "" if best is None else f"{best.percentile:.1f} after {after(best)}"


def after(snapshot: Snapshot) -> str:
    """Return when a submission was kept, since the attempt began."""
    return show_duration(max(snapshot.seconds, 0.1))


def _first(kept: Iterable[Snapshot], wanted: Callable[[Snapshot], bool]) -> Snapshot | None:
    return next(filter(wanted, kept), None)
