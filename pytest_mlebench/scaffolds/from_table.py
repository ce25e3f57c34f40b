"""A competition made of one table: what its columns are, and the files that follow from them."""

from __future__ import annotations

import json
import math
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pytest_mlebench.errors import ConfigError, UnknownName, page_address
from pytest_mlebench.grading.metrics import METRICS
from pytest_mlebench.scaffolds.write import TEMPLATES, fill

if TYPE_CHECKING:
    import pandas as pd

Family = Literal["number", "label", "probability", "classes"]

FAMILIES: dict[str, Family] = {  # the metrics that one table is enough for
    **dict.fromkeys(("rmse", "mae", "rmsle", "pearson", "spearman"), "number"),
    **dict.fromkeys(("accuracy", "error_rate", "f1", "matthews", "quadratic_kappa"), "label"),
    **dict.fromkeys(("roc_auc", "binary_log_loss"), "probability"),
    "log_loss": "classes",
}
CORRELATIONS = ("pearson", "spearman")  # of a constant there is none
MAX_CLASSES = 1000
MIN_ROWS = 10
USUAL_IDS = ("id", "Id", "ID")


@dataclass(frozen=True)
class TableCompetition:
    """A competition that predicts columns of a table."""

    title: str
    file: str  # the name of the table among the raw files
    id: str
    has_ids: bool  # whether the table has that column, or rows are to be numbered
    targets: tuple[str, ...]
    columns: tuple[str, ...]
    metric: str
    held_out: float
    classes: tuple[str, ...]  # of the target, where it has some
    source: str  # where the raw files come from
    leaderboard: str | None  # a csv file of scores
    train_rows: int
    test_rows: int
    introduction: str

    @property
    def family(self) -> Family:
        """Return what a submission holds."""
        return FAMILIES[self.metric]

    @property
    def submitted(self) -> tuple[str, ...]:
        """Return the columns of a submission beside the id."""
        return self.classes if self.family == "classes" else self.targets

    def files(self) -> dict[str, str]:
        """Return the files of the competition but for data and checksums."""
        return {
            "competition.toml": self._toml(),
            "description.md": self._description(),
            "prepare.py": self._prepare(),
        }

    def _toml(self) -> str:
        kind = {"number": "number", "label": "label"}.get(self.family, "probability")
        lines = [
            f"title = {json.dumps(self.title)}",
            'complexity = "custom"',
            'category = "Tabular"',
            f"source = {json.dumps(self.source)}",
            'answers = "answers.csv"',
            'sample = "sample_submission.csv"',
            "",
            "[submission]",
            f"id = {json.dumps(self.id)}",
            f"targets = {json.dumps(list(self.submitted), ensure_ascii=False)}",
            f'kind = "{kind}"',
            *(["row_sum = 1e-5"] if self.family == "classes" else []),
            "",
            "[metric]",
            f'name = "{self.metric}"',
        ]
        if self.leaderboard is not None:
            lines += ["", "[leaderboard]", f"scores = {json.dumps(self.leaderboard)}"]
        return "\n".join(lines) + "\n"

    def _description(self) -> str:
        words = " and ".join(f"`{name}`" for name in self.targets)
        predict = {
            "number": f"For each row of the test set, a number for {words}.",
            "label": f"For each row of the test set, {words}: one of the values in `train.csv`.",
            "probability": f"For each row of the test set, the probability that {words} is "
            f"`{self.classes[-1] if self.classes else 1}`.",
            "classes": f"For each row of the test set, one probability for each value of {words}; "
            "those of a row sum to one within 0.00001.",
        }[self.family]
        header = ",".join((self.id, *self.submitted))
        value = {"number": "0.0", "label": self.classes[0] if self.classes else "?"}
        cell = value.get(self.family, f"{1 / max(2, len(self.submitted)):.3g}")
        values = {
            "TITLE": self.title,
            "INTRODUCTION": self.introduction,
            "PREDICT": predict,
            "TRAIN_ROWS": f"{self.train_rows:,}",
            "TEST_ROWS": f"{self.test_rows:,}",
            "TARGET_WORDS": words,
            "COLUMNS": ", ".join(f"`{name}`" for name in self.columns),
            "METRIC": self.metric,
            "DIRECTION": "lower" if METRICS[self.metric].lower_is_better else "higher",
            "EXAMPLE": f"    {header}\n    1,{','.join([cell] * len(self.submitted))}",
        }
        return fill(_template("description.md"), values)

    def _prepare(self) -> str:
        read = "return read_csv(path, needs=[ID, *TARGETS])"
        if not self.has_ids:
            read = (
                "table = read_csv(path, needs=TARGETS)\n"
                "table.insert(0, ID, range(1, len(table) + 1))\n"
                "return table"
            )
        helpers = ["one_hot"] if self.family == "classes" else []
        values = {
            "TITLE": self.title.replace('"', "'"),
            "HELPERS": ", ".join((*helpers, "read_csv", "split_rows", "write_csv")),
            "TABLE": _python(self.file),
            "ID": _python(self.id),
            "TARGETS": _python(list(self.targets)),
            "HELD_OUT": str(self.held_out),
            "READ": _indent(read),
            "ANSWERS": _indent(self._answers()),
            "SAMPLE": _indent(self._sample()),
        }
        return fill(_template("prepare_table.py"), values)

    def _answers(self) -> str:
        if self.family == "classes":
            return (
                f"classes = {_python(list(self.classes))}\n"
                "names = test[TARGETS[0]].astype(str)\n"
                "return test[[ID]].join(one_hot(names, classes))"
            )
        if self.family == "probability":
            return (
                f"positive = {_python(self.classes[-1])}\n"
                "hits = (test[TARGETS[0]].astype(str) == positive).astype(int)\n"
                "return test[[ID]].assign(**{TARGETS[0]: hits})"
            )
        return "return test[[ID, *TARGETS]]"

    def _sample(self) -> str:
        values: dict[Family, str] = {
            "number": "range(len(answers))" if self.metric in CORRELATIONS else "0.0",
            "label": _python(self.classes[0] if self.classes else ""),
            "probability": "0.5",
            "classes": f"1 / {max(1, len(self.classes))}",
        }
        return (
            "names = [name for name in answers if name != ID]\n"
            f"return answers.assign(**dict.fromkeys(names, {values[self.family]}))"
        )


def examine_table(
    path: Path,
    *,
    title: str,
    id_column: str | None,
    targets: tuple[str, ...],
    metric: str | None,
    held_out: float,
    introduction: str,
    file: str | None = None,
    source: str = "local",
    leaderboard: str | None = None,
) -> TableCompetition:
    """Look at a csv file and return the competition that it makes, or say what is in the way."""
    from pytest_mlebench.preparing import read_csv  # late on purpose: heavy

    table = read_csv(path)
    columns = [str(name) for name in table.columns]
    if not targets:
        raise ConfigError(f"--target is missing: name a column of {path}: {_some(columns)}")
    for name in targets:
        if name not in columns:
            raise UnknownName(f"column in {path} (--target):", name, columns)
    if id_column is not None and id_column not in columns:
        raise UnknownName(f"column in {path} (--id):", id_column, columns)
    key = id_column or next((name for name in USUAL_IDS if name in columns), None)
    if key is not None and not (table[key].is_unique and table[key].notna().all()):
        if id_column is not None:
            raise ConfigError(f"--id must name a column without repetitions, given: {key}")
        key = None
    if key in targets:
        raise ConfigError(f"--id and --target must be different columns, given twice: {key}")
    test = math.ceil(held_out * len(table))  # as ``split_rows`` has it
    if len(table) < MIN_ROWS:
        raise ConfigError(f"{path} has {len(table)} rows: a split needs {MIN_ROWS} at least")
    missing = [name for name in targets if table[name].isna().any()]
    if missing:
        count = int(table[missing[0]].isna().sum())
        raise ConfigError(
            f"column {missing[0]!r} of {path} lacks a value in {count} rows: a target must have "
            "one in every row, so fill or remove them"
        )
    chosen = metric or _usual_metric(table, targets)
    classes = _classes(table, targets, chosen, path)
    return TableCompetition(
        title=title,
        file=file or path.name,
        id=key or "id",
        has_ids=key is not None,
        targets=targets,
        columns=tuple(columns if key else ["id", *columns]),
        metric=chosen,
        held_out=held_out,
        classes=classes,
        train_rows=len(table) - test,
        test_rows=test,
        introduction=introduction,
        source=source,
        leaderboard=leaderboard,
    )


def _usual_metric(table: pd.DataFrame, targets: tuple[str, ...]) -> str:
    numeric = all(table[name].dtype.kind in "if" for name in targets)
    few = all(table[name].nunique() <= 20 and table[name].dtype.kind != "f" for name in targets)
    return "rmse" if numeric and not few else "accuracy"


def _classes(
    table: pd.DataFrame, targets: tuple[str, ...], metric: str, path: Path
) -> tuple[str, ...]:
    """Return the values of a target that is a class, or refuse it for this metric."""
    if metric not in METRICS:
        raise UnknownName("metric", metric, METRICS)
    if metric not in FAMILIES:
        raise ConfigError(
            f"--metric {metric} needs more than a table: start with one of "
            f"{', '.join(FAMILIES)}, and change competition.toml by hand "
            f"({page_address('competitions')})"
        )
    family = FAMILIES[metric]
    if family == "number":
        wrong = [name for name in targets if table[name].dtype.kind not in "iuf"]
        if wrong:
            raise ConfigError(f"--metric {metric} needs numbers, column {wrong[0]!r} has others")
        return ()
    if len(targets) > 1:
        raise ConfigError(f"--metric {metric} takes one --target, given: {len(targets)}")
    values = tuple(sorted(table[targets[0]].astype(str).unique()))
    if family == "probability" and len(values) != 2:
        raise ConfigError(
            f"--metric {metric} needs a target of two values, {targets[0]!r} of {path} has "
            f"{len(values)}: use log_loss or accuracy"
        )
    if len(values) > MAX_CLASSES and family == "classes":
        raise ConfigError(f"column {targets[0]!r} of {path} has {len(values)} different values")
    return values


def _template(name: str) -> str:
    return (TEMPLATES / "competition" / f"{name}.txt").read_text(encoding="utf-8")


def _python(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _indent(code: str) -> str:
    return textwrap.indent(code, "    ")


def _some(names: list[str]) -> str:
    return ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
