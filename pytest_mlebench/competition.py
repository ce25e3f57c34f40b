"""A competition: facts in TOML, procedures in Python, prose in Markdown.

Nothing heavy is imported before a competition prepares, checks or scores something.
"""

from __future__ import annotations

import json
import math
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Literal, NamedTuple, get_args

from pytest_mlebench._toml import Table, read_toml
from pytest_mlebench.errors import (
    CompetitionFileError,
    GraderError,
    InvalidSubmission,
    MlebenchError,
    PreparationError,
    near_names,
    suggestion,
)
from pytest_mlebench.grading.metrics import METRICS
from pytest_mlebench.grading.rules import Rules
from pytest_mlebench.medals import Leaderboard

FILE = "competition.toml"
RAW = "raw"  # beside it: the raw files of a competition whose source is local

Complexity = Literal["low", "medium", "high", "dev", "demo", "custom"]
Source = Literal["kaggle", "generated", "local"]
IssueKind = Literal["leak", "broken", "checksum", "crowded", "grader", "leaderboard", "rules"]


@dataclass(frozen=True)
class KnownIssue:
    """Something about a competition that a reader of its medals should know."""

    kind: IssueKind  # what kind of issue it is
    what: str  # one sentence
    certain: bool = True  # False where it is only suspected
    markers: tuple[str, ...] = ()  # words by which code that uses a leak is known

    @property
    def is_leak(self) -> bool:
        """Tell whether the answers are, or may be, to be had without machine learning."""
        return self.kind == "leak"

    @property
    def label(self) -> str:
        """Return the kind for people: ``leak``, or ``suspected leak`` if it is not certain."""
        return self.kind if self.certain else f"suspected {self.kind}"


@dataclass(frozen=True)
class MetricFacts:
    """Which metric grades a competition, with which parameters."""

    name: str  # of the metric, or any text with a grade.py
    lower_is_better: bool  # which of two scores is the better one
    parameters: Mapping[str, Any]  # what the metric takes beside the columns


@dataclass(frozen=True)
class Checksums:
    """The md5 sums of the original data: the zip as downloaded, the files as prepared."""

    zip: str | None  # as downloaded
    public: Mapping[str, str]  # by path in the public folder
    private: Mapping[str, str]  # by path in the private folder


class Validation(NamedTuple):
    """Whether a file has the form of a submission, and what is wrong if it has not."""

    valid: bool  # by its form; a score may still be poor
    problem: str | None = None  # one sentence


@dataclass(frozen=True)
class Competition:
    """One competition, as its folder describes it."""

    id: str  # its name for programs
    folder: Path  # where its files are
    title: str  # its name for people
    complexity: Complexity  # the split of MLE-bench that it belongs to; custom for your own
    category: str  # what kind of task it is
    size_gb: float | None  # of the download
    source: Source  # where the raw files come from
    answers: str  # the file in the private folder
    sample: str  # the sample submission in the public folder
    gold: str | None  # the best submission there is, in the private folder
    metric: MetricFacts  # how it is scored
    rules: Rules  # what a submission must look like
    leaderboard: Leaderboard  # the human scores
    checksums: Checksums | None  # None: nobody has written them down
    known_issues: tuple[KnownIssue, ...]  # what a reader of results should know
    forbidden_words: tuple[str, ...] = ()  # what the obfuscated description must not give away

    @property
    def lower_is_better(self) -> bool:
        """Tell whether the smaller of two scores is the better one."""
        return self.metric.lower_is_better

    @property
    def is_suspected(self) -> bool:
        """Tell whether a leak is suspected at most: some say so, nobody has shown it."""
        return self.is_leaky and not any(i.certain for i in self.known_issues if i.is_leak)

    @property
    def is_leaky(self) -> bool:
        """Tell whether a leak is known or suspected."""
        return any(issue.is_leak for issue in self.known_issues)

    @property
    def own_raw(self) -> Path | None:
        """Return the raw files beside the competition's facts, where its source is local."""
        folder = self.folder / RAW
        return folder if self.source == "local" and folder.is_dir() else None

    @property
    def is_at_hand(self) -> bool:
        """Tell whether its data can be made without a download."""
        return self.source == "generated" or self.own_raw is not None

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
        if packed := _packed_descriptions(self.folder.parent).get(self.id):
            return packed
        path = self._file("description_obfuscated.md", ", use --mle-description=ours")
        return path.read_text(encoding="utf-8")

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

    def validate(self, submission: Path, public: Path | None = None) -> Validation:
        """Tell whether a file has the form of a submission, without looking at any answer.

        *public* is the prepared public folder, by default that of the usual dataset store.
        """
        if public is None:
            # late on purpose: heavy, and above us; a noun offers its verbs
            from pytest_mlebench.store.location import default_store
            from pytest_mlebench.store.store import Store

            public = Store(default_store()).ensure(self, prepare=self.is_at_hand).public
        try:
            self.check(Path(submission), Path(public))
        except InvalidSubmission as problem:
            return Validation(False, str(problem))
        return Validation(True)

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
        from importlib.util import module_from_spec, spec_from_loader

        path = self._file(name)
        loader = _SourceLoader(f"mlebench_{path.stem}_{self.id.replace('-', '_')}", str(path))
        spec = spec_from_loader(loader.name, loader)
        if spec is None:  # a loader with a name always makes one
            raise CompetitionFileError(f"{path}: not a Python file")
        module = module_from_spec(spec)
        sys.modules[spec.name] = module  # where its dataclasses look for their annotations
        loader.exec_module(module)
        return module


class _SourceLoader(SourceFileLoader):
    """Compile a file as it is now, and leave nothing beside it.

    A compiled file counts as one of its source if second and size are the same (PEP 552): a change
    could be marked as prepared by the new code and be made by the old one.
    """

    def get_code(self, fullname: str) -> CodeType:
        code: CodeType = self.source_to_code(self.get_data(self.path), self.path)
        return code


def read_competition(folder: Path) -> Competition:
    """Read a competition's folder; an error names the file and every key that is wrong."""
    facts = read_toml(folder / FILE, collect=True)
    measure = facts.table("metric")
    metric = _metric(measure, custom=(folder / "grade.py").is_file())
    competition = Competition(
        id=folder.name,
        folder=folder,
        title=facts.text("title"),
        complexity=facts.choice("complexity", get_args(Complexity)),
        category=facts.text("category"),
        size_gb=facts.number("size_gb", None),
        source=facts.choice("source", get_args(Source), "kaggle"),
        answers=facts.text("answers"),
        sample=facts.text("sample"),
        gold=facts.text("gold", None),
        metric=metric,
        rules=Rules.from_table(facts.table("submission")),
        leaderboard=_leaderboard(
            facts.table("leaderboard", None),
            folder,
            metric.lower_is_better,
            is_certain=not measure.is_wrong,
        ),
        forbidden_words=facts.texts("forbidden_words", ()),
        checksums=_checksums(facts.table("checksums", None)),
        known_issues=tuple(_known_issue(issue) for issue in facts.tables("known_issues")),
    )
    facts.finish()
    return competition


def _metric(table: Table, *, custom: bool) -> MetricFacts:
    name = table.text("name")
    if custom:
        lower = table.choice("direction", ("lower", "higher")) == "lower"
        return MetricFacts(name, lower, table.take_all())
    entry = METRICS.get(name)
    if entry is None:
        table.refuse(
            "name",
            f"{name!r} is not a known metric{_suggested(name)}; "
            f"a competition of its own kind needs a grade.py",
        )
        return MetricFacts(name, False, table.take_all())
    parameters = table.values(entry.required, entry.optional)
    return MetricFacts(name, entry.lower_is_better, parameters)


def _suggested(metric: str) -> str:
    """Return the metrics that may have been meant, or all there are."""
    near = suggestion(near_names(metric, METRICS))
    return near or f" (known: {', '.join(sorted(METRICS))})"


def _leaderboard(
    table: Table | None, folder: Path, lower_is_better: bool, *, is_certain: bool
) -> Leaderboard:
    """Take the figures; their order tells something only if the direction *is certain*.

    There are four forms: thresholds with 101 percentiles, thresholds alone, a file of scores,
    nothing at all.
    """
    if table is None:
        return Leaderboard.nothing(lower_is_better=lower_is_better)
    if (file := table.text("scores", None)) is not None:
        return _scored(table, folder / file, lower_is_better)
    leaderboard = Leaderboard(
        teams=table.count("teams") if "percentiles" in table else table.count("teams", 0),
        lower_is_better=lower_is_better,
        gold=table.number("gold"),
        silver=table.number("silver"),
        bronze=table.number("bronze"),
        median=table.number("median"),
        percentiles=table.numbers("percentiles", ()),
    )
    given = leaderboard.percentiles
    better = "lower" if lower_is_better else "higher"
    if given and len(given) != 101:
        table.refuse("percentiles", f"must have 101 numbers, given: {len(given)}")
    elif is_certain and list(given) != sorted(given, reverse=not lower_is_better):
        table.refuse("percentiles", f"must go from the best score to the worst; {better} is better")
    return leaderboard


def _scored(table: Table, path: Path, lower_is_better: bool) -> Leaderboard:
    """Return the leaderboard that a csv file of scores makes, by Kaggle's medal rule."""
    import csv  # late on purpose: only for a leaderboard in a file

    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        scores = [float(row["score"]) for row in rows]
        if not all(map(math.isfinite, scores)):
            raise ValueError("a score is not finite")
        return Leaderboard.from_scores(scores, lower_is_better=lower_is_better)
    except (OSError, ValueError, KeyError, TypeError) as error:
        what = error.strerror if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
        table.refuse(
            "scores", f"must name a csv file with a column score of numbers, {path}: {what}"
        )
        return Leaderboard.nothing(lower_is_better=lower_is_better)


def _checksums(table: Table | None) -> Checksums | None:
    if table is None:
        return None
    return Checksums(
        zip=table.text("zip", None),
        public=table.table("public").all_texts(),
        private=table.table("private").all_texts(),
    )


def _known_issue(table: Table) -> KnownIssue:
    return KnownIssue(
        kind=table.choice("kind", get_args(IssueKind)),
        what=table.text("what"),
        certain=table.flag("certain", True),
        markers=table.texts("markers", ()),
    )


@cache
def _packed_descriptions(folder: Path) -> Mapping[str, str]:
    """Return the obfuscated descriptions of an installed wheel, which has them in one file."""
    path = folder / "obfuscated.json.xz"
    if not path.is_file():
        return {}
    import lzma  # late on purpose: nothing else needs it

    texts: dict[str, str] = json.loads(lzma.decompress(path.read_bytes()))
    return texts


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
