"""One attempt as the page shows it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

from pytest_mlebench._plain_text import one_line
from pytest_mlebench._units import show_duration, show_score, show_size, show_tokens, show_usd
from pytest_mlebench.host.usage import read_usage
from pytest_mlebench.medals import THRESHOLDS
from pytest_mlebench.reports.findings import AttemptFindings, Finding
from pytest_mlebench.reports.over_time import HEAD, milestones
from pytest_mlebench.reports.page import traces
from pytest_mlebench.reports.page.usage_curves import POINTS, Course, Curve, course, usage_curves
from pytest_mlebench.reports.results import ItemKey, Result, extra_facts, named

# bytes of a page that the texts of all attempts may take together, and of a single one
ALL_TEXTS, LONGEST_TEXT, SHORTEST_TEXT = 200_000, 6_000, 600
ALL_POINTS, FEWEST_POINTS = 2_700, 8  # of a curve: of all attempts together, of a single one
MANY_ATTEMPTS, FEWEST_LINKS = 60, 4  # of more attempts so many files are linked
PROBLEM_LETTERS = 400
MAX_DETAILED = 600  # attempts that have everything on the page; of the others the figures
AUDIT_MARKS = {"violation": "‡", "suspicious": "†"}


@dataclass(frozen=True)
class AttemptPlace:
    """Where an attempt belongs in the page."""

    anchor: str
    split: str
    category: str
    several: bool  # agents
    folder: Path | None  # of the page, for links
    max_bytes: int  # of its texts
    points: int  # of its curves
    max_links: int  # to its files
    findings: AttemptFindings | None = None
    is_brief: bool = False  # of so many attempts that nothing of this one is read


@dataclass(frozen=True)
class AttemptView:
    """What the page shows of one attempt."""

    anchor: str
    key: ItemKey
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
    findings: tuple[Finding, ...] = ()
    flag: str = ""  # violation, suspicious, or nothing that is more than a note

    @property
    def mark(self) -> str:
        """Return the mark of what an audit has found."""
        return AUDIT_MARKS.get(self.flag, "")


def budget(attempts: int) -> int:
    """Return how many bytes the texts of one attempt may take, of so many."""
    return max(SHORTEST_TEXT, min(LONGEST_TEXT, ALL_TEXTS // max(1, attempts)))


def links(attempts: int) -> int:
    """Return how many files of an attempt are linked beside its folder, of so many attempts."""
    return FEWEST_LINKS if attempts > MANY_ATTEMPTS else len(traces.LINKED)


def bounded(findings: Iterable[Finding], max_bytes: int) -> Iterator[Finding]:
    """Yield findings whose evidence takes at most so many bytes together."""
    for one in findings:
        evidence = traces.first_within(one.evidence, max_bytes)
        max_bytes -= sum(map(_size, evidence))
        excerpts = []
        for excerpt in one.excerpts[: len(evidence)]:
            max_bytes -= _size(excerpt.here) + _size(excerpt.there)
            if max_bytes < 0:
                break
            excerpts.append(excerpt)
        what = one.what[:PROBLEM_LETTERS]
        yield replace(one, what=what, evidence=tuple(evidence), excerpts=tuple(excerpts))


def _size(text: str) -> int:
    return len(escape(text).encode())


def curve_points(attempts: int) -> int:
    """Return how many points a curve of one attempt may have, of so many attempts."""
    return max(FEWEST_POINTS, min(POINTS, ALL_POINTS // max(1, attempts)))


def view_attempt(result: Result, place: AttemptPlace, letter: str) -> AttemptView:
    """Return what the page shows of an attempt."""
    folder = None if place.is_brief else traces.folder_of(result)
    samples = [] if folder is None else read_usage(folder.stats)
    score = None if result.grade is None else result.grade.score
    word = str(result.medal) if result.medal else "no medal" if result.valid else result.status
    shown = "" if score is None else show_score(score)
    found = place.findings
    flag = "" if found is None or found.level == "info" else found.level
    return AttemptView(
        anchor=place.anchor,
        key=result.key,
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
        summary=_summary(result, word, shown, flag),
        problem=one_line(result.problem or "")[:PROBLEM_LETTERS],
        failure=result.failure or "",
        facts=() if place.is_brief else tuple(_facts(result)),
        head=()
        if place.is_brief
        else tuple(traces.first_within(result.attempt.submission_head, place.max_bytes // 4)),
        log=() if folder is None else tuple(traces.log_tail(folder, place.max_bytes)),
        course=None if place.is_brief else course(result.snapshots, result.agent_seconds),
        milestones=() if place.is_brief else tuple(_milestones(result)),
        curves=tuple(usage_curves(samples, place.points)),
        files=() if folder is None else tuple(traces.files(folder, place.folder, place.max_links)),
        findings=() if found is None else tuple(bounded(found.findings, place.max_bytes)),
        flag=flag,
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


def _summary(result: Result, word: str, score: str, flag: str) -> str:
    """Return an attempt in a line: what hover and focus show."""
    percentile, seconds = _percentile(result), result.agent_seconds
    parts = (
        f"seed {result.seed}: {word}",
        score,
        f"better than {percentile} % of the teams" if percentile else "",
        result.failure or "",
        "" if seconds is None else f"in {show_duration(_about(seconds))}",
        f"audit: {flag}" if flag else "",
    )
    return ", ".join(filter(None, parts))


def _about(seconds: float) -> float:
    return max(0.1, seconds if seconds < 60 else 60 * round(seconds / 60))


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
    if facts.refused_hosts:
        hosts = (f"{host} ({count})" for host, count in facts.refused_hosts.items())
        yield "hosts refused", one_line(", ".join(hosts))[:PROBLEM_LETTERS]
    if result.fingerprint:
        yield "fingerprint", result.fingerprint[:16]
    yield from extra_facts(result)


def _standing(result: Result) -> Iterator[tuple[str, str]]:
    grade = result.grade
    if grade is None:
        return
    if grade.percentile is not None:
        yield "place", f"better than {grade.percentile:.1f} % of {grade.teams} teams"
    found = ((name, getattr(grade, name)) for name in THRESHOLDS)
    lines = ", ".join(f"{name} {show_score(score)}" for name, score in found if score is not None)
    better = f"{'lower' if grade.lower_is_better else 'higher'} is better"
    yield "thresholds", f"{lines} ({better})" if lines else better


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
    if use.metered is not None:
        yield "cached and reasoning", f"{use.cached_tokens} and {use.reasoning_tokens} tokens"
    if use.calls is not None:
        yield "calls of models", str(use.calls)
    if use.known_usd is not None:
        yield "cost", f"{'at least ' if use.usd is None else ''}{show_usd(use.known_usd)}"
