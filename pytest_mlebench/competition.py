"""A competition: facts in TOML, procedures in Python, prose in Markdown.

Nothing heavy is imported before a competition prepares, checks or scores something.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pytest_mlebench._toml import Table, read_toml
from pytest_mlebench.errors import (
    CompetitionFileError,
    GraderError,
    InvalidSubmission,
    MlebenchError,
    PreparationError,
)
from pytest_mlebench.medals import Leaderboard

if TYPE_CHECKING:
    from pytest_mlebench.grading.align import Rules

FILE = "competition.toml"

T = TypeVar("T")

Complexity = Literal["low", "medium", "high", "dev", "demo", "custom"]


@dataclass(frozen=True)
class KnownIssue:
    """Something about a competition that a reader of its medals should know."""

    kind: str
    what: str

    @property
    def is_leak(self) -> bool:
        """Tell whether the answers are to be had without machine learning."""
        return self.kind == "leak"


@dataclass(frozen=True)
class MetricFacts:
    """Which metric grades a competition, with which parameters."""

    name: str
    lower_is_better: bool
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class Checksums:
    """The md5 sums of the original data: the zip as downloaded, the files as prepared."""

    zip: str | None
    public: Mapping[str, str]
    private: Mapping[str, str]


@dataclass(frozen=True)
class Competition:
    """One competition, as its folder describes it."""

    id: str
    folder: Path
    title: str
    complexity: Complexity
    category: str
    type: str
    size_gb: float | None
    source: Literal["kaggle", "generated", "local"]
    answers: str
    sample: str
    gold: str | None
    metric: MetricFacts
    submission: Mapping[str, Any]
    leaderboard: Leaderboard
    checksums: Checksums | None
    known_issues: tuple[KnownIssue, ...]
    forbidden_words: tuple[str, ...] = ()  # what the obfuscated description must not give away

    @property
    def lower_is_better(self) -> bool:
        """Tell whether the smaller of two scores is the better one."""
        return self.metric.lower_is_better

    @property
    def is_leaky(self) -> bool:
        """Tell whether a leak is known."""
        return any(issue.is_leak for issue in self.known_issues)

    @property
    def url(self) -> str:
        """Return the address of the original competition."""
        return f"https://www.kaggle.com/c/{self.id}"

    @cached_property
    def description(self) -> str:
        """Return the text that the agent is given."""
        return self._file("description.md").read_text(encoding="utf-8")

    @cached_property
    def obfuscated_description(self) -> str:
        """Return the same task without the names by which a model would recognise it."""
        path = self._file("description_obfuscated.md", ", use --mle-description=ours")
        return path.read_text(encoding="utf-8")

    @cached_property
    def rules(self) -> Rules:
        """Return what a submission must look like."""
        from pytest_mlebench.grading.align import Rules  # late on purpose: heavy

        return Rules.from_table(self.submission, where=str(self.folder / FILE))

    def prepare(self, raw: Path, public: Path, private: Path) -> None:
        """Make the prepared data from a raw tree: both folders appear whole, or not at all."""
        raw, public, private = Path(raw), Path(public), Path(private)
        if not raw.is_dir():
            raise PreparationError(f"{self.id}: no such raw folder: {raw}")
        procedure: Callable[[Path, Path, Path], None] = self._code("prepare.py").prepare
        with _scratch(public) as new_public, _scratch(private) as new_private:
            try:
                procedure(raw, new_public, new_private)
            except MlebenchError as error:
                raise PreparationError(f"{self.id}: {error}") from error
            except Exception as error:
                raise PreparationError(
                    f"{self.id}: cannot prepare {raw}: {type(error).__name__}: {error}"
                ) from error
            (new_public / "description.md").write_text(self.description, encoding="utf-8")
            _replace_folder(new_public, public)
            _replace_folder(new_private, private)

    def generate(self, raw: Path) -> None:
        """Make the raw tree of a competition whose data are generated."""
        self._code("prepare.py").generate(Path(raw))

    def score(self, submission: Path, private: Path) -> float:
        """Return the unrounded score, or raise InvalidSubmission with one sentence."""
        from pytest_mlebench.grading import score  # late on purpose: heavy

        return score(self, Path(submission), Path(private))

    def check(self, submission: Path, public: Path) -> None:
        """Raise InvalidSubmission if the file's form alone, without answers, rules it out."""
        from pytest_mlebench.grading import check  # late on purpose: heavy

        check(self, Path(submission), Path(public))

    @cached_property
    def grader(self) -> ModuleType | None:
        """Return the competition's own ``grade.py``, if it has one."""
        return self._code("grade.py") if (self.folder / "grade.py").is_file() else None

    def blame(self, error: Exception) -> MlebenchError:
        """Return *error* as a verdict on the submission if it is one, else as our own fault."""
        if isinstance(error, InvalidSubmission):
            return error
        return GraderError(f"{self.id}: the grader failed: {type(error).__name__}: {error}")

    def _file(self, name: str, way_out: str = "") -> Path:
        path = self.folder / name
        if not path.is_file():
            raise CompetitionFileError(f"{path}: no such file{way_out}")
        return path

    def _code(self, name: str) -> ModuleType:
        from importlib.util import module_from_spec, spec_from_file_location

        path = self._file(name)
        spec = spec_from_file_location(f"mlebench_{path.stem}_{self.id.replace('-', '_')}", path)
        if spec is None or spec.loader is None:  # a .py file always has both
            raise CompetitionFileError(f"{path}: not a Python file")
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


def read_competition(folder: Path) -> Competition:
    """Read a competition's folder; a wrong key is an error naming file and key."""
    facts = read_toml(folder / FILE)
    custom = (folder / "grade.py").is_file()
    metric = _metric(facts.table("metric"), custom=custom)
    competition = Competition(
        id=folder.name,
        folder=folder,
        title=facts.text("title"),
        complexity=facts.choice("complexity", ("low", "medium", "high", "dev", "demo", "custom")),
        category=facts.text("category"),
        type=facts.choice("type", ("simple", "code"), "simple"),
        size_gb=facts.number("size_gb", None),
        source=facts.choice("source", ("kaggle", "generated", "local"), "kaggle"),
        answers=facts.text("answers"),
        sample=facts.text("sample"),
        gold=facts.text("gold", None),
        metric=metric,
        submission=facts.table("submission").take_all(),
        leaderboard=_leaderboard(facts.table("leaderboard"), metric.lower_is_better),
        checksums=_checksums(facts.table("checksums", None)),
        known_issues=tuple(
            _finish(KnownIssue(issue.text("kind"), issue.text("what")), issue)
            for issue in facts.tables("known_issues")
        ),
        forbidden_words=facts.texts("forbidden_words", ()),
    )
    return _finish(competition, facts)


def _metric(table: Table, *, custom: bool) -> MetricFacts:
    name = table.text("name")
    if custom:
        lower = table.choice("direction", ("lower", "higher")) == "lower"
    else:
        from pytest_mlebench.grading.metrics import metric_facts

        lower = metric_facts(name, where=table.where).lower_is_better
    return MetricFacts(name, lower, table.take_all())


def _leaderboard(table: Table, lower_is_better: bool) -> Leaderboard:
    percentiles = table.numbers("percentiles")
    if len(percentiles) != 101:
        raise table.error("percentiles", f"must have 101 numbers, given: {len(percentiles)}")
    leaderboard = Leaderboard(
        teams=table.count("teams"),
        lower_is_better=lower_is_better,
        gold=table.number("gold"),
        silver=table.number("silver"),
        bronze=table.number("bronze"),
        median=table.number("median"),
        percentiles=percentiles,
    )
    return _finish(leaderboard, table)


def _checksums(table: Table | None) -> Checksums | None:
    if table is None:
        return None
    checksums = Checksums(
        zip=table.text("zip", None),
        public=table.table("public").take_all(),
        private=table.table("private").take_all(),
    )
    return _finish(checksums, table)


def _finish(value: T, table: Table) -> T:
    table.finish()
    return value


class _scratch:
    """A temporary folder beside *target*, gone when the block ends."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __enter__(self) -> Path:
        self.target.parent.mkdir(parents=True, exist_ok=True)
        prefix = f".{self.target.name}."
        self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=self.target.parent))
        self.path.chmod(0o755)
        return self.path

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def _replace_folder(new: Path, target: Path) -> None:
    if target.exists():
        shutil.rmtree(target)
    new.replace(target)
