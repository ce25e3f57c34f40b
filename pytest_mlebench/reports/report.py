"""Reports: results with the conditions they came about under; written, read, aggregated.

Light to import: a format's own module is loaded when a file of that format is read or written.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from pytest_mlebench.errors import ConfigError
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.disclosure import Disclosure
from pytest_mlebench.reports.membership import Membership
from pytest_mlebench.reports.rates import SplitRates, rates_by_split
from pytest_mlebench.reports.results import Result, complete

# suffix: the module whose render(report) gives the text
WRITERS = {
    ".json": "pytest_mlebench.reports.formats.json_file",
    ".html": "pytest_mlebench.reports.formats.html_page",
    ".csv": "pytest_mlebench.reports.formats.csv_file",
    ".md": "pytest_mlebench.reports.formats.markdown",
}


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


@dataclass(frozen=True)
class Report:
    """The results of a run, one per competition and seed, and the disclosure."""

    results: tuple[Result, ...]
    disclosure: Disclosure = field(default_factory=Disclosure)
    membership: Membership = field(default_factory=Membership)
    created: str = field(default_factory=_now)

    @classmethod
    def of(
        cls,
        results: Iterable[Result],
        *,
        registry: Registry,
        disclosure: Disclosure | None = None,
        expected: Iterable[tuple[str, int]] = (),
    ) -> Report:
        """Return a report of *results* in which nothing that is *expected* goes unmentioned."""
        disclosure = Disclosure() if disclosure is None else disclosure
        whole = complete(results, expected)
        ids = [result.competition for result in whole]
        return cls(whole, disclosure, Membership.of(registry, ids, disclosure.splits))

    @classmethod
    def read(cls, path: Path | str, registry: Registry | None = None) -> Report:
        """Read a report of our own, or one grading report of the reference implementation."""
        from pytest_mlebench.reports.formats import json_file, reference_report  # late on purpose

        path = Path(path)
        data = json_file.load(path)
        if reference_report.is_reference(data):
            return cls.from_reference([path], registry=registry)
        return json_file.parse(data, str(path))

    @classmethod
    def from_reference(
        cls, paths: Sequence[Path | str], registry: Registry | None = None
    ) -> Report:
        """Read grading reports of the reference implementation, one file per seed."""
        from pytest_mlebench.reports.formats import reference_report  # late on purpose

        return reference_report.read([Path(path) for path in paths], registry or Registry())

    @classmethod
    def from_run(cls, folder: Path | str, registry: Registry | None = None) -> Report:
        """Read the folder of a run, finished or not."""
        from pytest_mlebench.attempts import plan  # late on purpose

        return plan.read(Path(folder), registry or Registry())

    @classmethod
    def load(cls, paths: Sequence[Path | str], registry: Registry | None = None) -> Report:
        """Read whatever *paths* are: a run's folder, a report, grading reports of the reference."""
        from pytest_mlebench.attempts import plan  # late on purpose

        files = [Path(path) for path in paths]
        if len(files) == 1 and files[0].is_dir():
            if (files[0] / plan.PLAN).is_file():
                return cls.from_run(files[0], registry)
            files = sorted(files[0].glob("*.json"))
            if not files:
                raise ConfigError(
                    f"{paths[0]}: neither the folder of a run (it has no {plan.PLAN}) "
                    "nor a folder of grading reports (it has no .json file)"
                )
        return cls.read(files[0], registry) if len(files) == 1 else cls._seeds(files, registry)

    @classmethod
    def _seeds(cls, files: Sequence[Path], registry: Registry | None) -> Report:
        from pytest_mlebench.reports.formats import json_file, reference_report  # late on purpose

        for path in files:
            if not reference_report.is_reference(json_file.load(path)):
                raise ConfigError(
                    f"{path}: several files are read as the seeds of one agent, which takes "
                    "grading reports of the reference implementation; this is none"
                )
        return cls.from_reference(files, registry)

    def write(self, path: Path | str) -> None:
        """Write the report in the format that the suffix names, all of it or nothing."""
        from pytest_mlebench._files import write_text

        path = check_suffix(path)
        text = import_module(WRITERS[path.suffix.lower()]).render(self)
        try:
            write_text(path, text)
        except OSError as error:
            raise ConfigError(f"cannot write the report {path}: {error.strerror}") from None

    def to_reference(self, seed: int) -> dict[str, Any]:
        """Return the results of one seed as a grading report of the reference implementation."""
        from pytest_mlebench.reports.formats import reference_report  # late on purpose

        return reference_report.to_reference(
            [result for result in self.results if result.seed == seed], self.created
        )

    def only(self, competitions: Iterable[str], registry: Registry) -> Report:
        """Return the report of exactly *competitions*; what it does not have is missing."""
        wanted = tuple(dict.fromkeys(competitions))
        inside = [result for result in self.results if result.competition in wanted]
        expected = [(i, seed) for i in wanted for seed in self.seeds or (0,)]
        report = Report.of(inside, registry=registry, disclosure=self.disclosure, expected=expected)
        return replace(report, created=self.created)

    @property
    def seeds(self) -> tuple[int, ...]:
        """Return the seeds that occur."""
        return tuple(sorted({result.seed for result in self.results}))

    @property
    def rates(self) -> tuple[SplitRates, ...]:
        """Return the rates of every split that the report concerns."""
        return rates_by_split(self.results, self.membership)

    @property
    def agent_hours(self) -> float:
        """Return how long the agent ran in total."""
        return sum(result.agent_seconds or 0.0 for result in self.results) / 3600

    @property
    def format_checks(self) -> int:
        """Return how often the agent had its submissions' format checked."""
        return sum(result.format_checks for result in self.results)


def check_suffix(path: Path | str, option: str = "a report") -> Path:
    """Return the path of a report whose suffix names a known format."""
    path = Path(path)
    if path.suffix.lower() not in WRITERS:
        raise ConfigError(f"{option} must end in {' '.join(WRITERS)}, given: {path}")
    return path
