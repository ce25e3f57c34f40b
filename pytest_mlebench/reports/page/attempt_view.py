"""One attempt as the page shows it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_mlebench._plain_text import one_line
from pytest_mlebench._units import show_duration, show_score, show_size, show_tokens, show_usd
from pytest_mlebench.medals import THRESHOLDS
from pytest_mlebench.reports.over_time import HEAD, milestones
from pytest_mlebench.reports.page import traces
from pytest_mlebench.reports.page.curves import Course, Curve, course, usage_curves
from pytest_mlebench.reports.results import Result, named
from pytest_mlebench.usage import read_usage

# bytes of a page that the texts of all attempts may take together, and of a single one
ALL_TEXTS, LONGEST_TEXT, SHORTEST_TEXT = 280_000, 6_000, 600
PROBLEM_LETTERS = 400


@dataclass(frozen=True)
class AttemptPlace:
    """Where an attempt belongs in the page."""

    anchor: str
    split: str
    category: str
    several: bool  # agents
    folder: Path | None  # of the page, for links
    max_bytes: int  # of its texts


@dataclass(frozen=True)
class AttemptView:
    """What the page shows of one attempt."""

    anchor: str
    competition: str
    name: str  # with the agent before it where there are several
    seed: int
    split: str
    category: str
    outcome: str  # graded, failed, error, skipped, missing
    medal: str  # gold, silver, bronze, none
    word: str  # the medal, or what happened instead
    letter: str
    score: str
    percentile: str
    summary: str
    problem: str
    failure: str
    facts: tuple[tuple[str, str], ...]
    head: tuple[str, ...]
    log: tuple[str, ...]
    course: Course | None
    milestones: tuple[tuple[str, str], ...]
    curves: tuple[Curve, ...]
    files: tuple[tuple[str, str], ...]


def budget(attempts: int) -> int:
    """Return how many bytes the texts of one attempt may take, of so many."""
    return max(SHORTEST_TEXT, min(LONGEST_TEXT, ALL_TEXTS // max(1, attempts)))


def view_attempt(result: Result, place: AttemptPlace, letter: str) -> AttemptView:
    """Return what the page shows of an attempt."""
    folder = traces.folder_of(result)
    samples = [] if folder is None else read_usage(folder.stats)
    score = None if result.grade is None else result.grade.score
    word = str(result.medal) if result.medal else "no medal" if result.valid else result.status
    shown = "" if score is None else show_score(score)
    return AttemptView(
        anchor=place.anchor,
        competition=result.competition,
        name=named(result, result.competition, several=place.several),
        seed=result.seed,
        split=place.split,
        category=place.category,
        outcome=result.status,
        medal=str(result.medal),
        word=word,
        letter=letter,
        score=shown,
        percentile=_percentile(result),
        summary=", ".join(filter(None, (f"seed {result.seed}: {word}", shown))),
        problem=one_line(result.problem or "")[:PROBLEM_LETTERS],
        failure=result.failure or "",
        facts=tuple(_facts(result)),
        head=tuple(traces.first_within(result.attempt.submission_head, place.max_bytes // 4)),
        log=() if folder is None else tuple(traces.log_tail(folder, place.max_bytes)),
        course=course(result.snapshots, result.agent_seconds),
        milestones=tuple(_milestones(result)),
        curves=tuple(usage_curves(samples)),
        files=() if folder is None else tuple(traces.files(folder, place.folder)),
    )


def anchor_of(result: Result, block: int, taken: set[str]) -> str:
    """Return an anchor that is the same in every report of the attempt."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", result.competition)
    agent = f"-agent{block + 1}" if block else ""
    wanted = anchor = f"attempt-{name}-seed{result.seed}{agent}"
    number = 1
    while anchor in taken:
        number += 1
        anchor = f"{wanted}-{number}"
    taken.add(anchor)
    return anchor


def _percentile(result: Result) -> str:
    percentile = None if result.grade is None else result.grade.percentile
    return "" if percentile is None else f"{percentile:.1f}"


def _milestones(result: Result) -> Iterator[tuple[str, str]]:
    if result.snapshots:
        _, *cells = milestones(result)
        yield from ((name, cell) for name, cell in zip(HEAD[1:], cells, strict=True) if cell)


def _facts(result: Result) -> Iterator[tuple[str, str]]:
    """Yield what is known of an attempt, as name and value."""
    yield from _standing(result)
    yield from _use(result)
    facts = result.attempt
    if facts.host:
        yield "host", one_line(facts.host)
    if facts.ending:
        code = "" if facts.exit_code is None else f", exit code {facts.exit_code}"
        yield "ended", facts.ending + code
        yield "format checks", str(result.format_checks)
    if facts.egress:
        text = ", ".join(f"{count} {word}" for word, count in facts.egress.items())
        yield "requests to the outside", text
    if result.fingerprint:
        yield "fingerprint", result.fingerprint[:16]


def _standing(result: Result) -> Iterator[tuple[str, str]]:
    grade = result.grade
    if grade is None:
        return
    if grade.percentile is not None:
        yield "place", f"better than {grade.percentile:.1f} % of {grade.teams} teams"
    for name in THRESHOLDS:
        if (threshold := getattr(grade, name)) is not None:
            yield name, show_score(threshold)
    yield "better is", "lower" if grade.lower_is_better else "higher"


def _use(result: Result) -> Iterator[tuple[str, str]]:
    facts = result.attempt
    if result.agent_seconds is not None:
        limit = "" if facts.time_limit is None else f" of {show_duration(facts.time_limit)}"
        yield "time", show_duration(max(result.agent_seconds, 0.1)) + limit
    if facts.peak_memory is not None:
        limit = "" if facts.memory_limit is None else f" of {show_size(facts.memory_limit)}"
        yield "memory", show_size(facts.peak_memory) + limit
    if facts.cpu_seconds is not None:
        yield "CPU time", show_duration(max(facts.cpu_seconds, 0.1))
    if facts.gpus:
        yield "GPU", ", ".join(map(one_line, facts.gpus))
    if (use := result.model_use) is None:
        return
    if use.tokens is not None:
        yield "tokens", show_tokens(use.tokens)
    if use.calls is not None:
        yield "calls of models", str(use.calls)
    if use.known_usd is not None:
        yield "cost", f"{'at least ' if use.usd is None else ''}{show_usd(use.known_usd)}"
