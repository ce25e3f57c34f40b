"""The terminal summary, as plain lines computed from results.

Lines are at most 80 columns wide and carry no control characters: markup is a hint beside the
text, in the words of pytest's terminal writer.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pytest_mlebench._plain_text import one_line
from pytest_mlebench.medals import Medal
from pytest_mlebench.reports.attempts_curve import attempts_texts
from pytest_mlebench.reports.breakdown import failures_text
from pytest_mlebench.reports.cost_text import cost_lines
from pytest_mlebench.reports.costs import costs_of
from pytest_mlebench.reports.membership import ALL, DEMO, Membership
from pytest_mlebench.reports.rates import MEASURES, SplitRates, rates_by_split, selection
from pytest_mlebench.reports.results import Result, block_name, blocks_of
from pytest_mlebench.reports.time_curve import UPPER_BOUND, time_text

WIDTH = 80
LABEL, COLUMN = 15, 16  # four splits side by side fill 79 columns
LETTERS = {Medal.GOLD: "G", Medal.SILVER: "S", Medal.BRONZE: "B", Medal.NONE: "."}
BLAME = {"failed": "F", "error": "E", "skipped": "s", "missing": "?"}
LEAK_MARKS = {"known": "*", "suspected": "*?", "": ""}
LEGEND = "G gold, S silver, B bronze, . no medal, F failed, E error, s skipped, ? missing"
DEMO_NOTE = "demo: a medal proves the plumbing, nothing else; scikit-learn has the data"
MARKUP: dict[str, dict[str, bool]] = {
    "gold": {"yellow": True, "bold": True},
    "silver": {"bold": True},
    "bronze": {"yellow": True},
    "failed": {"red": True},
    "error": {"red": True, "bold": True},
    "skipped": {"yellow": True},
    "missing": {"red": True},
}


@dataclass(frozen=True)
class Line:
    """A line of text, and how a terminal that can may set it off."""

    text: str
    markup: Mapping[str, bool] = field(default_factory=dict)


def summary_lines(
    results: Sequence[Result],
    membership: Membership,
    *,
    ascii_only: bool = False,
    gpu_hour_usd: float | None = None,
) -> list[Line]:
    """Return the whole summary: each agent's rates, competitions, and what its attempts cost."""
    if not results:
        return [Line("nothing was run")]
    blocks = blocks_of(results)
    lines: list[Line] = []
    for block in blocks:
        if len(blocks) > 1:
            lines += [Line(f"agent {block_name(block[0])}", {"bold": True, "cyan": True}), Line("")]
        rates = rates_by_split(block, membership)
        lines += [*rate_lines(rates, ascii_only=ascii_only), Line("")]
        lines += [*competition_lines(block, membership), *_failures(block)]
        lines += [*_passes(block, membership), Line("")]
        if costs := cost_lines(costs_of(block), gpu_hour_usd):
            lines += [*(Line(part) for text in costs for part in wrapped(text)), Line("")]
    return lines[:-1]


def rate_lines(rates: Sequence[SplitRates], *, ascii_only: bool = False) -> list[Line]:
    """Return the rates, a column for each split, and what they rest on."""
    lines: list[Line] = []
    per_block = (WIDTH - LABEL) // COLUMN
    for start in range(0, len(rates), per_block):
        lines += _block(rates[start : start + per_block], ascii_only)
        lines.append(Line(""))
    return [*lines, *_notes(rates, ascii_only)]


def competition_lines(results: Sequence[Result], membership: Membership) -> list[Line]:
    """Return a line for each competition, its seeds side by side."""
    grouped: dict[str, list[Result]] = {}
    for result in sorted(results, key=lambda result: _place(result, membership)):
        grouped.setdefault(result.competition, []).append(result)
    seeds = max(len(group) for group in grouped.values())
    medals = min(max(8, seeds), 24)
    score = "score" if seeds == 1 else "mean score"
    medal = "medal" if seeds == 1 else "medals"
    lines = [Line(_columns("competition", score, medal, "percentile", medals), {"bold": True})]
    for name, group in grouped.items():
        cells = (_mean_score(group), cut(_medals(group), medals), mean_percentile(group))
        text = _columns(name, *cells, medals, mark=LEAK_MARKS[membership.leak(name)])
        lines.append(Line(text, _markup(group)))
    if seeds > 1:
        lines.append(Line(LEGEND))
    leaks = sorted({membership.leak(name) for name in grouped} - {""})
    lines += (Line(f"{LEAK_MARKS[leak]} a leak of the answers is {leak}") for leak in leaks)
    return lines


def _passes(results: Sequence[Result], membership: Membership) -> list[Line]:
    """Return what more attempts give, and what less time would have given."""
    chosen = selection(results, membership)
    texts = attempts_texts(chosen)
    if quotes := time_text(chosen):
        texts.append(f"any medal had there been less time: {quotes}; {UPPER_BOUND}")
    return [Line(part) for text in texts for part in wrapped(text)]


def _failures(results: Sequence[Result]) -> list[Line]:
    text = failures_text(results)
    parts = wrapped(f"without a score, by kind: {text}") if text else []
    return [Line(part, MARKUP["failed"]) for part in parts]


def problem_lines(results: Iterable[Result], width: int = WIDTH) -> list[Line]:
    """Return a line for every result that has no score, saying why."""
    return [
        Line(
            cut(f"{result.competition} seed{result.seed}: {one_line(result.problem)}", width),
            MARKUP[result.status],
        )
        for result in results
        if result.status != "graded" and result.problem
    ]


def result_letters(results: Iterable[Result]) -> str:
    """Return a letter for each result, in the order of the seeds."""
    ordered = sorted(results, key=lambda result: result.seed)
    return "".join(BLAME.get(result.status, LETTERS[result.medal]) for result in ordered)


def mean_percentile(group: Sequence[Result]) -> str:
    """Return the mean percentile of the results that have one."""
    places = [r.grade.percentile for r in group if r.grade and r.grade.percentile is not None]
    return f"{sum(places) / len(places):.1f}" if places else "-"


def cut(text: str, width: int) -> str:
    """Return *text* in at most *width* columns."""
    return text if len(text) <= width else f"{text[: width - 2]}.."


def _block(rates: Sequence[SplitRates], ascii_only: bool) -> Iterator[Line]:
    def row(label: str, cells: Iterable[str]) -> str:
        return (f"{label:<{LABEL}}" + "".join(f"{cell:>{COLUMN}}" for cell in cells)).rstrip()

    yield Line(row("", (cut(r.name, COLUMN - 2) for r in rates)), {"bold": True})
    yield Line(row("competitions", (_share(r) for r in rates)))
    yield Line(row("seeds", (str(len(r.seeds)) for r in rates)))
    if any(r.not_run for r in rates):
        cells = (f"{r.not_run} of {r.runs}" for r in rates)
        yield Line(row("missing runs", cells), MARKUP["missing"])
    for name in MEASURES:
        cells = (r.rates[name].text(ascii_only=ascii_only) for r in rates)
        yield Line(row(name.replace("_", " "), cells), {"bold": name == "any_medal"})
    yield Line(
        row(
            "  95 % interval",
            (r.rates["any_medal"].interval_text(ascii_only=ascii_only) for r in rates),
        )
    )
    if any(r.without_leaks for r in rates):
        cells = (
            r.without_leaks.text(ascii_only=ascii_only) if r.without_leaks else "" for r in rates
        )
        yield Line(row("  without leaks", cells))


def _notes(rates: Sequence[SplitRates], ascii_only: bool) -> Iterator[Line]:
    if any(len(row.seeds) > 1 for row in rates):
        sign = "+/-" if ascii_only else "±"
        yield Line(f"rates in percent: mean {sign} standard error over the seeds")
    else:
        yield Line("rates in percent; one seed has no standard error")
    for row in rates:
        if row.leaky and row.name != ALL:
            left_out = f"{row.leaky} competition{'' if row.leaky == 1 else 's'}"
            yield Line(f"{cut(row.name, 30)}: a leak is known or suspected in {left_out}")
    if any(row.name == DEMO for row in rates):
        yield Line(DEMO_NOTE)
    widest = max(rates, key=lambda row: row.runs)
    if widest.not_run:
        yield Line(
            f"{widest.not_run} of {widest.runs} runs are missing ({_reasons(widest)}): "
            "counted as no medal",
            MARKUP["missing"],
        )


def _reasons(row: SplitRates) -> str:
    counts = {"by error": row.errors, "skipped": row.skipped, "not run to the end": row.missing}
    return ", ".join(f"{count} {how}" for how, count in counts.items() if count)


def _share(row: SplitRates) -> str:
    return str(row.competitions) if row.is_whole else f"{row.competitions} of {row.of}"


def _columns(
    name: str, score: str, medal: str, percentile: str, medals: int, *, mark: str = ""
) -> str:
    width = WIDTH - 13 - (medals + 2) - 12
    label = f"{cut(name, width - 1 - len(mark))} {mark}" if mark else cut(name, width)
    return f"{label:<{width}}{score:>13}  {medal:<{medals}}{percentile:>12}".rstrip()


def _place(result: Result, membership: Membership) -> tuple[int, str, int]:
    order = ("low", "medium", "high", *membership.splits)
    split = membership.benchmark_split(result.competition)
    return order.index(split) if split in order else len(order), result.competition, result.seed


def _mean_score(group: Sequence[Result]) -> str:
    scores = [r.grade.score for r in group if r.grade and r.grade.score is not None]
    if not scores:
        return "-"
    mean = sum(scores) / len(scores)
    return f"{mean:.5f}" if abs(mean) < 1e6 else f"{mean:.0f}"


def _medals(group: Sequence[Result]) -> str:
    if len(group) > 1:
        return result_letters(group)
    only = group[0]
    if only.status != "graded":
        return only.status
    return str(only.medal) if only.medal else "-"


def _markup(group: Sequence[Result]) -> Mapping[str, bool]:
    best = max(group, key=lambda result: result.medal)
    if best.medal:
        return MARKUP[str(best.medal)]
    bad = [result.status for result in group if result.status != "graded"]
    return MARKUP[bad[0]] if len(bad) == len(group) else {}


def wrapped(text: str) -> list[str]:
    """Return *text* in lines of at most 80 columns."""
    return textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
