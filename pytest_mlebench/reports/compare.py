"""Two reports compared: competition by competition, and whether the difference is chance.

The runs of two agents are paired by competition, never by seed: seed 1 of one agent has nothing
to do with seed 1 of another. If the agents are equally good at a competition, its runs could have
come from either; so the test permutes the runs of each competition between the two sides, in every
way there is, and asks how often the difference of the rates comes out as it did. With one seed
this is the exact sign test.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pytest_mlebench._units import show_usd
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.reports.attempts_curve import attempts_texts
from pytest_mlebench.reports.comparability import class_warning
from pytest_mlebench.reports.cost_comparison import CostDifference, compare_costs, show_change
from pytest_mlebench.reports.rates import MEASURES, selection
from pytest_mlebench.reports.report import Report
from pytest_mlebench.reports.resampling import bootstrap_interval
from pytest_mlebench.reports.results import Result
from pytest_mlebench.reports.summary import (
    LEGEND,
    Line,
    cut,
    mean_percentile,
    result_letters,
    wrapped,
)

SIGNIFICANT = 0.05

Pair = tuple[tuple[Result, ...], tuple[Result, ...]]


@dataclass(frozen=True)
class Difference:
    """A rate before and after, in percent, and how likely chance alone would do that."""

    before: float
    after: float
    interval: tuple[float, float]  # 95 %, by bootstrap over competitions
    p_two_sided: float
    p_worse: float  # that it would fall at least so far by chance

    @property
    def change(self) -> float:
        """Return how many points the rate gained."""
        return self.after - self.before


@dataclass(frozen=True)
class Comparison:
    """What two reports have in common, and how they differ in it."""

    pairs: dict[str, Pair]
    differences: dict[str, Difference]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    conditions: tuple[str, ...]  # the conditions that are not alike
    warning: str | None  # where the two are not of one class
    cost: CostDifference | None  # None: not known of any competition
    names: str | None  # what the names were worth, where one side's descriptions had none
    everything: dict[str, tuple[float, float]]  # rates on all competitions, what is missing: none

    def regression(self) -> str | None:
        """Return a sentence if the any-medal rate has fallen by more than chance explains."""
        medal = self.differences["any_medal"]
        if medal.change >= 0 or medal.p_worse >= SIGNIFICANT:
            return None
        return (
            f"any-medal rate fell from {medal.before:.2f} % to {medal.after:.2f} % on "
            f"{len(self.pairs)} competitions: a significant regression "
            f"(p = {show_p(medal.p_worse)}, under {SIGNIFICANT})"
        )


def compare(before: Report, after: Report) -> Comparison:
    """Compare two reports, each of one agent, on the competitions that both have."""
    for report in (before, after):
        report.require_one_agent("a comparison")
    old, new = by_competition(before), by_competition(after)
    common, both = [name for name in old if name in new], {**old, **new}
    if not common:
        raise ConfigError("the two reports have no competition in common")
    pairs = {name: (old[name], new[name]) for name in common}
    differences = {
        measure: _difference(list(pairs.values()), hit) for measure, hit in MEASURES.items()
    }
    return Comparison(
        pairs=pairs,
        differences=differences,
        only_before=tuple(name for name in old if name not in new),
        only_after=tuple(name for name in new if name not in old),
        conditions=(*_conditions(before, after), *_data_conditions(pairs)),
        warning=class_warning(before.comparability, after.comparability),
        cost=compare_costs(pairs),
        names=_worth_of_names(before, after, differences["any_medal"]),
        everything={
            measure: (_rate_on(both, old, hit), _rate_on(both, new, hit))
            for measure, hit in MEASURES.items()
        },
    )


def comparison_lines(comparison: Comparison) -> list[Line]:
    """Return the comparison for a person: the rates, then every competition, at 80 columns."""
    medal = comparison.differences["any_medal"]
    low, high = medal.interval
    count = len(comparison.pairs)
    lines = [
        Line(f"{'':<15}{'A':>16}{'B':>16}{'B - A':>16}{'p':>12}", {"bold": True}),
        *(_rate_line(name, difference) for name, difference in comparison.differences.items()),
        *_cost_lines(comparison.cost),
        Line(""),
        Line(f"rates in percent on the {count} competitions that both have"),
        *_everything_lines(comparison),
        Line(f"95 % interval of the change in any medal: {low:+.2f} to {high:+.2f}"),
        Line("p: exact permutation test within competitions, two-sided"),
        *_warning_lines(comparison),
        *([] if comparison.cost is None else map(Line, comparison.cost.notes)),
        *(Line(part) for text in comparison.conditions for part in wrapped(f"not alike: {text}")),
        *_only("A", comparison.only_before),
        *_only("B", comparison.only_after),
        Line(""),
        Line(f"{'competition':<44}{'A':<9}{'B':<9}{'percentile A':>12}{'B':>6}", {"bold": True}),
        *(_pair_line(name, *pair) for name, pair in comparison.pairs.items()),
        Line(LEGEND),
        *_attempts_lines(comparison),
    ]
    if comparison.names is not None:
        lines += [Line(""), *_names_lines(comparison.names, comparison)]
    if sentence := comparison.regression():
        lines += [Line(""), Line(sentence, {"red": True, "bold": True})]
    return lines


def _attempts_lines(comparison: Comparison) -> list[Line]:
    """Return what more attempts give on either side, where there are several."""
    lines = []
    for side, name in enumerate(("A", "B")):
        results = [result for pair in comparison.pairs.values() for result in pair[side]]
        lines += [f"{name}: {text}" for text in attempts_texts(results)]
    parts = [Line(part) for text in lines for part in wrapped(text)]
    return [Line(""), *parts] if parts else []


def show_p(p: float) -> str:
    """Return a probability with three decimals, never as zero."""
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def permutation_test(pairs: Sequence[tuple[int, int, int, int]]) -> tuple[float, float]:
    """Return the exact two-sided p-value, and the one for a fall, of a difference of rates.

    Each pair is ``(hits before, runs before, hits after, runs after)`` of one competition.
    """
    scale = math.lcm(*(runs for _, a, _, b in pairs for runs in (a, b)))
    observed = 0
    chances = {0: 1.0}  # scaled difference: probability, over all permutations
    for x, a, y, b in pairs:
        observed += y * scale // b - x * scale // a
        chances = _convolve(chances, _permuted(x + y, a, b, scale))
    two_sided = sum(p for value, p in chances.items() if abs(value) >= abs(observed))
    worse = sum(p for value, p in chances.items() if value <= observed)
    return min(1.0, two_sided), min(1.0, worse)


def _permuted(hits: int, a: int, b: int, scale: int) -> dict[int, float]:
    """Return the chances of each scaled difference when *hits* fall among a + b runs at random."""
    ways = math.comb(a + b, hits)
    chances: dict[int, float] = {}
    for y in range(max(0, hits - a), min(hits, b) + 1):
        value = y * scale // b - (hits - y) * scale // a
        chances[value] = math.comb(b, y) * math.comb(a, hits - y) / ways
    return chances


def _convolve(left: dict[int, float], right: dict[int, float]) -> dict[int, float]:
    total: dict[int, float] = {}
    for i, p in left.items():
        for j, q in right.items():
            total[i + j] = total.get(i + j, 0.0) + p * q
    return total


def _difference(pairs: Sequence[Pair], hit: Callable[[Result], bool]) -> Difference:
    counts = [(sum(map(hit, old)), len(old), sum(map(hit, new)), len(new)) for old, new in pairs]
    before = 100 * math.fsum(x / a for x, a, _, _ in counts) / len(counts)
    after = 100 * math.fsum(y / b for _, _, y, b in counts) / len(counts)
    two_sided, worse = permutation_test(counts)
    interval = bootstrap_interval([100 * (y / b - x / a) for x, a, y, b in counts])
    return Difference(before, after, interval, two_sided, worse)


def _rate_line(name: str, difference: Difference) -> Line:
    before, after = difference.before, difference.after
    p = show_p(difference.p_two_sided)
    text = f"{name.replace('_', ' '):<15}{before:>16.2f}{after:>16.2f}{difference.change:>+16.2f}"
    return Line(f"{text}{p:>12}", {"bold": name == "any_medal"})


def _rate_on(
    names: Iterable[str], side: Mapping[str, tuple[Result, ...]], hit: Callable[[Result], bool]
) -> float:
    """Return a side's rate on some competitions; one that it does not have is no hit."""
    shares = [sum(map(hit, side[name])) / len(side[name]) if name in side else 0 for name in names]
    return 100 * math.fsum(shares) / len(shares)


def _warning_lines(comparison: Comparison) -> list[Line]:
    if comparison.warning is None:
        return []
    text = f"warning: {comparison.warning}"
    wrapped = textwrap.wrap(text, 80, subsequent_indent="  ", break_on_hyphens=False)
    return [Line(line, {"yellow": True}) for line in wrapped]


def _worth_of_names(before: Report, after: Report, medal: Difference) -> str | None:
    """Return what it was worth to know the names of competitions, if only one side did."""
    kinds = [report.disclosure.description for report in (before, after)]
    if kinds.count("obfuscated") != 1:
        return None
    side = 1 if kinds[0] == "obfuscated" else -1  # from names to none, or the other way round
    low, high = sorted(side * bound for bound in medal.interval)
    return (
        f"what the names were worth: {side * medal.change:+.2f} points of any medal "
        f"(95 % interval {low:+.2f} to {high:+.2f}, p = {show_p(medal.p_two_sided)})"
    )


def _names_lines(sentence: str, comparison: Comparison) -> list[Line]:
    """Return the worth of the names, overall and for each competition that it changed."""
    lines = [Line(sentence, {"bold": True})]
    hit = MEASURES["any_medal"]
    for name, (old, new) in comparison.pairs.items():
        counts = (sum(map(hit, old)), len(old), sum(map(hit, new)), len(new))
        if counts[0] * counts[3] != counts[2] * counts[1]:
            p = show_p(permutation_test([counts])[0])
            medals = f"{counts[0]} of {counts[1]} -> {counts[2]} of {counts[3]}"
            lines.append(Line(f"  {cut(name, 44):<44}{medals:>20}{f'p = {p}':>12}"))
    return lines


def _everything_lines(comparison: Comparison) -> list[Line]:
    """Return the rates with what a side lacks counted as no medal, if a side lacks anything."""
    lacking = len(comparison.only_before) + len(comparison.only_after)
    if not lacking:
        return []
    before, after = comparison.everything["any_medal"]
    count = len(comparison.pairs) + lacking
    text = f"{'any medal':<15}{before:>16.2f}{after:>16.2f}{after - before:>+16.2f}"
    return [Line(f"and on all {count}, what one side lacks counted as no medal:"), Line(text)]


def _cost_lines(cost: CostDifference | None) -> list[Line]:
    if cost is None:
        return []
    cells = (show_usd(cost.before), show_usd(cost.after), show_change(cost.change))
    text = "".join(f"{cell:>16}" for cell in cells)
    return [Line(f"{'$ per attempt':<15}{text}{show_p(cost.p_two_sided):>12}")]


def _pair_line(name: str, old: Sequence[Result], new: Sequence[Result]) -> Line:
    medal = MEASURES["any_medal"]
    change = sum(map(medal, new)) / len(new) - sum(map(medal, old)) / len(old)
    letters = (cut(result_letters(group), 8) for group in (old, new))
    text = f"{cut(name, 42):<42}{'+' if change > 0 else '-' if change < 0 else ' '} "
    text += "".join(f"{cell:<9}" for cell in letters)
    text += f"{mean_percentile(old):>12}{mean_percentile(new):>6}"
    return Line(text, {"green": change > 0, "red": change < 0})


def _only(side: str, names: Sequence[str]) -> list[Line]:
    text = f"only in {side} ({len(names)}): {', '.join(names)}"
    return [Line(part) for part in wrapped(text)] if names else []


def by_competition(report: Report) -> dict[str, tuple[Result, ...]]:
    groups: dict[str, list[Result]] = {}
    for result in selection(report.results, report.membership):
        groups.setdefault(result.competition, []).append(result)
    return {name: tuple(group) for name, group in groups.items()}


def _data_conditions(pairs: Mapping[str, Pair]) -> list[str]:
    """Return which competitions were prepared in another way, as far as both sides know."""
    others = []
    for name, sides in pairs.items():
        sums = [{result.attempt.data_sum for result in side} - {None} for side in sides]
        if all(sums) and sums[0] != sums[1]:
            others.append(name)
    return [f"prepared data: another version of {', '.join(others)}"] if others else []


def _conditions(before: Report, after: Report) -> list[str]:
    old, new = before.disclosure, after.disclosure
    plain = ("agent", "agent_version", "image", "sandbox", "network", "models", "budget")
    facts = [(name.replace("_", " "), getattr(old, name), getattr(new, name)) for name in plain]
    for kind in ("limits", "hardware"):
        first, second = getattr(old, kind), getattr(new, kind)
        for key in dict.fromkeys((*first, *second)):
            facts.append((f"{kind}: {key}", first.get(key), second.get(key)))
    return [
        f"{name}: {'unknown' if a is None else a} -> {'unknown' if b is None else b}"
        for name, a, b in facts
        if a != b
    ]
