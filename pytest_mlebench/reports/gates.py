"""Gates: bars that the any-medal rate of a split must reach, or the session fails."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytest_mlebench.errors import ConfigError, UnknownName
from pytest_mlebench.registry import ALIASES
from pytest_mlebench.reports.membership import Membership
from pytest_mlebench.reports.rates import SplitRates, rates_of, selection
from pytest_mlebench.reports.results import Result, block_name, blocks_of

OPTION = "--mle-fail-under"
PREPARED = (
    "prepared"  # the name of a bar for what is left where --mle-missing=skip passes over some
)


@dataclass(frozen=True)
class Gate:
    """A bar for the any-medal rate of a split, of all that was selected, or of what ran of it."""

    split: str | None
    percent: float
    given: str  # the option with its value as the user wrote it

    @property
    def value(self) -> str:
        """Return the value of the option."""
        percent = f"{self.percent:.12g}"
        return percent if self.split is None else f"{self.split}:{percent}"

    def judge(self, results: Sequence[Result], membership: Membership) -> str | None:
        """Return a sentence if an agent misses the bar or cannot be judged by it, else None."""
        row = self._rates(results, membership)
        if row is None:
            return f"no competition of {self.split or 'any split'} was selected ({self.given})"
        if row.skipped and self.split != PREPARED:
            return (
                f"any-medal rate of {self._name} cannot be judged: {row.skipped} of {row.runs} "
                f"runs were skipped ({self.given}); to judge what is left by a bar of its own "
                f"give {OPTION}={PREPARED}:{self.percent:g}"
            )
        if not row.is_whole:
            return (
                f"any-medal rate of {self.split} cannot be judged: only {row.competitions} of its "
                f"{row.of} competitions were selected ({self.given})"
            )
        mean = row.rates["any_medal"].mean
        if mean >= self.percent - 1e-9:  # 3 of 5 is 60 %, whatever the floats say
            return None
        bar = f"below the bar of {self.percent:g} %"
        return f"any-medal rate of {self._name} is {mean:.2f} %, {bar} ({self.given})"

    @property
    def _name(self) -> str:
        if self.split is None:
            return "the selected competitions"
        return "the prepared competitions" if self.split == PREPARED else self.split

    def _rates(self, results: Sequence[Result], membership: Membership) -> SplitRates | None:
        inside, size = self._inside(results, membership)
        return rates_of(self.split or "", inside, size, membership.leaky) if inside else None

    def _inside(
        self, results: Sequence[Result], membership: Membership
    ) -> tuple[list[Result], int]:
        """Return the results that the bar is about, and how many competitions it is about."""
        if self.split is None or self.split == PREPARED:
            if self.split == PREPARED:
                results = [result for result in results if result.status != "skipped"]
            inside = selection(results, membership)
            return inside, len({result.competition for result in inside})
        ids = set(membership.splits.get(ALIASES.get(self.split, self.split), ()))
        return [result for result in results if result.competition in ids], len(ids)

    def concerns(self, results: Sequence[Result], membership: Membership) -> bool:
        """Tell whether some of the results are what the bar is about."""
        return bool(self._inside(results, membership)[0])


def parse_fail_under(value: str, splits: Iterable[str] | None = None, option: str = OPTION) -> Gate:
    """Return the gate in ``60`` or ``low:60``; *splits* are the names that exist."""
    name, colon, number = value.rpartition(":")
    try:
        percent = float(number)
    except ValueError:
        percent = -1.0
    if not 0 <= percent <= 100 or bool(name) != bool(colon):
        raise ConfigError(
            f"{option} must be [SPLIT:]PERCENT such as low:60, with a percentage from 0 to 100, "
            f"given: {value}"
        )
    known = None if splits is None else {*splits, PREPARED}
    if name and known is not None and name not in known:
        raise UnknownName(f"split in {option}={value}:", name, known)
    return Gate(name or None, percent, f"{option}={value}")


def check_gates(
    gates: Iterable[Gate], results: Sequence[Result], membership: Membership
) -> list[str]:
    """Return a sentence for every bar that one of the agents misses.

    An agent that has nothing of a bar's split is passed over if another one has.
    """
    blocks = blocks_of(results)
    sentences = []
    for gate in gates:
        concerned = [block for block in blocks if gate.concerns(block, membership)]
        for block in concerned or [list(results)]:
            if (sentence := gate.judge(block, membership)) is not None:
                who = f"{block_name(block[0])}: " if len(blocks) > 1 and concerned else ""
                sentences.append(who + sentence)
    return sentences
