"""A report: results with the conditions they came about under.

Light to import: what reads or writes a format is loaded when a file of that format is.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_mlebench.competition import Competition
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.comparability import Comparability, comparability
from pytest_mlebench.reports.costs import Costs, costs_of
from pytest_mlebench.reports.disclosure import Disclosure
from pytest_mlebench.reports.findings import Audit, without_flagged
from pytest_mlebench.reports.membership import Membership
from pytest_mlebench.reports.rates import Rate, SplitRates, rates_by_split
from pytest_mlebench.reports.results import ItemKey, Result, block_name, blocks_of, complete, named

if TYPE_CHECKING:
    from pytest_mlebench.reports.plots import Plot
    from pytest_mlebench.reports.report_content import Content

# suffix: the module whose render(report, folder) gives the text of a file for that folder
WRITERS = {
    ".json": "pytest_mlebench.reports.formats.json_file",
    ".html": "pytest_mlebench.reports.page.page",
    ".csv": "pytest_mlebench.reports.formats.csv_file",
    ".md": "pytest_mlebench.reports.formats.markdown",
}


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


@dataclass(frozen=True)
class Report:
    """The results of a run, one per agent, competition and seed, and the disclosure."""

    results: tuple[Result, ...]  # one for each agent, competition and seed
    disclosure: Disclosure = field(
        default_factory=Disclosure
    )  # the conditions that they came about under
    membership: Membership = field(
        default_factory=Membership
    )  # which competitions are in which split
    # those that are installed; they do not travel with a report
    competitions: Mapping[str, Competition] = field(default_factory=dict, repr=False)
    created: str = field(default_factory=_now)  # when, in ISO 8601
    audit: Audit | None = None  # what was found suspicious, if anybody has looked

    @classmethod
    def of(
        cls,
        results: Iterable[Result],
        *,
        registry: Registry,
        disclosure: Disclosure | None = None,
        expected: Iterable[ItemKey] = (),
    ) -> Report:
        """Return a report of *results* in which nothing that is *expected* goes unmentioned."""
        disclosure = Disclosure() if disclosure is None else disclosure
        whole = complete(results, expected)
        ids = [result.competition for result in whole]
        known = set(registry.ids())
        return cls(
            whole,
            disclosure,
            Membership.of(registry, ids, disclosure.splits),
            {i: registry.load(i) for i in ids if i in known},
        )

    @classmethod
    def read(cls, path: Path | str, registry: Registry | None = None) -> Report:
        """Read a report of our own, or one grading report of the reference implementation."""
        from pytest_mlebench.reports import load  # late on purpose: only where one is read

        return cls._of_content(load.read_file(Path(path), registry or Registry()), registry)

    @classmethod
    def from_reference(
        cls, paths: Sequence[Path | str], registry: Registry | None = None
    ) -> Report:
        """Read grading reports of the reference implementation, whatever part each file holds."""
        from pytest_mlebench.reports import load  # late on purpose: only where one is read

        files = [Path(path) for path in paths]
        return cls._of_content(load.read_reference(files, registry or Registry()), registry)

    @classmethod
    def from_run(cls, folder: Path | str, registry: Registry | None = None) -> Report:
        """Read the folder of a run, finished or not."""
        from pytest_mlebench.reports import load  # late on purpose: only where one is read

        return cls._of_content(load.read_run(Path(folder)), registry)

    @classmethod
    def load(cls, paths: Sequence[Path | str], registry: Registry | None = None) -> Report:
        """Read whatever *paths* are: a run's folder, a report, grading reports of the reference."""
        from pytest_mlebench.reports import load  # late on purpose: only where one is read

        files = [Path(path) for path in paths]
        return cls._of_content(load.read_any(files, registry or Registry()), registry)

    @classmethod
    def _of_content(cls, content: Content, registry: Registry | None) -> Report:
        report = cls.of(
            content.results,
            registry=registry or Registry(),
            disclosure=content.disclosure,
            expected=content.expected,
        )
        return replace(
            report,
            membership=content.membership or report.membership,
            created=content.created or report.created,
            audit=content.audit,
        )

    def write(self, path: Path | str) -> None:
        """Write the report in the format that the suffix names, all of it or nothing."""
        from pytest_mlebench._files import write_text

        path = check_suffix(path)
        text = import_module(WRITERS[path.suffix.lower()]).render(self, path.absolute().parent)
        try:
            write_text(path, text)
        except OSError as error:
            reason = error.strerror or error
            raise ConfigError(f"cannot write the report {path}: {reason}") from None

    def to_reference(self, seed: int) -> dict[str, Any]:
        """Return the results of one seed as a grading report of the reference implementation."""
        from pytest_mlebench.reports.formats import reference_report  # late on purpose

        self.require_one_agent("a grading report of the reference implementation")
        return reference_report.to_reference(
            [result for result in self.results if result.seed == seed], self.created
        )

    def only(self, competitions: Iterable[str], registry: Registry) -> Report:
        """Return the report of exactly *competitions*; what it does not have is missing."""
        wanted = tuple(dict.fromkeys(competitions))
        inside = [result for result in self.results if result.competition in wanted]
        expected = [
            ItemKey(i, seed, agent, conditions)
            for agent, conditions in dict.fromkeys((r.agent, r.conditions) for r in self.results)
            or [("", "")]
            for i in wanted
            for seed in self.seeds or (0,)
        ]
        report = Report.of(inside, registry=registry, disclosure=self.disclosure, expected=expected)
        return replace(report, created=self.created)

    def of_agent(self, name: str) -> Report:
        """Return the report of one agent's results under its usual conditions."""
        inside = [r for r in self.results if r.agent == name and not r.conditions]
        return replace(self, results=tuple(inside))

    def require_one_agent(self, what: str) -> None:
        """Refuse a report of several agents where their results would be added up."""
        names = [block_name(block[0]) for block in self.blocks]
        if len(names) > 1:
            raise ConfigError(f"{what} is of one agent, this report has {', '.join(names)}")

    @cached_property
    def blocks(self) -> list[list[Result]]:
        """Return the results of each agent by themselves."""
        return blocks_of(self.results)

    @property
    def seeds(self) -> tuple[int, ...]:
        """Return the seeds that occur."""
        return tuple(sorted({result.seed for result in self.results}))

    @cached_property
    def plots(self) -> list[Plot]:
        """Return what more attempts and less time give, as curves."""
        from pytest_mlebench.reports.curves import plots_of  # late on purpose: it reads reports

        return plots_of(self)

    @cached_property
    def rates(self) -> tuple[SplitRates, ...]:
        """Return the rates of every split that the report concerns, agent by agent."""
        return tuple(row for block in self.blocks for row in rates_by_split(block, self.membership))

    @cached_property
    def comparability(self) -> Comparability:
        """Return what the numbers are comparable with, computed anew."""
        return comparability(self)

    @cached_property
    def costs(self) -> Costs:
        """Return what all attempts used of models and machines."""
        return costs_of(self.results)

    @property
    def gpu_usd(self) -> float | None:
        """Return what the GPUs cost, if their price is known."""
        price = self.disclosure.gpu_hour_usd
        return None if price is None else price * self.costs.gpu_hours

    @property
    def without_flagged(self) -> dict[str, Rate]:
        """Return the any-medal rate of each split, flagged attempts counted as no medal."""
        if self.audit is None or not self.audit.flagged:
            return {}
        cleaned = replace(self, results=without_flagged(self.results, self.audit), audit=None)
        several = len(self.blocks) > 1
        return {
            named(row, row.name, several=several): row.rates["any_medal"] for row in cleaned.rates
        }

    @property
    def agent_hours(self) -> float:
        """Return how long the agents ran in total."""
        return self.costs.agent_hours

    @property
    def format_checks(self) -> int:
        """Return how often the agents had their submissions' format checked."""
        return sum(result.format_checks for result in self.results)


def check_suffix(path: Path | str, option: str = "a report") -> Path:
    """Return the path of a report whose suffix names a known format."""
    path = Path(path)
    if path.suffix.lower() not in WRITERS:
        raise ConfigError(f"{option} must end in {' '.join(WRITERS)}, given: {path}")
    return path
