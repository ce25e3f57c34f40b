"""What a submission of a competition must look like: its ``[submission]`` table, read strictly.

Light on purpose: reading a competition needs the rules, only grading needs what applies them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_mlebench._toml import Table

KINDS = (  # of values in a column; ``values`` says what they are and how a column becomes one
    "number",
    "unbounded",
    "probability",
    "integer",
    "truncated",
    "first",
    "boolean",
    "label",
    "name",
    "text",
    "words",
    "any",
)


@dataclass(frozen=True)
class Rules:
    """What a submission of a competition must look like."""

    id: tuple[str, ...]  # columns that name a row
    targets: tuple[str, ...]  # columns that are scored
    kinds: Mapping[str, str]  # what values a target holds, by target
    range: tuple[float, float] | None = None  # the lowest and the highest number
    row_sum: float | None = None  # how far the sum of a row may be from one
    missing: str = "reject"  # a missing text: reject, empty (""), nan ("nan")
    extra_columns: str = "ignore"  # or reject them, or accept them if they hold zeros
    # quirks: each is there for one or two competitions of MLE-bench
    booleans: bool = True  # True and False are numbers
    true: float = 1  # the number that True counts as in a column of booleans
    only_booleans: bool = True  # also where all targets hold nothing else
    varied: bool = False  # no target may have one value in all rows
    same_names: str = "reject"  # two columns of one name: reject them, or take the first
    # exact: every id once; cover: further ids are ignored, also repeated ones;
    # scored: the sample has more ids than are scored, only these are needed, further ones ignored
    rows: str = "exact"
    as_written: tuple[str, ...] = ()  # columns that are not to be parsed as numbers
    other_names: Mapping[str, str] = field(default_factory=dict)  # further names of targets

    @classmethod
    def from_table(cls, table: Table) -> Rules:
        """Read a ``[submission]`` table; what is wrong with it is for the table to report."""
        targets = table.one_or_more("targets")
        quirks = table.table("quirks", None) or Table({}, f"{table.where}: quirks")
        rules = cls(
            id=table.one_or_more("id"),
            targets=targets,
            kinds=_kinds(table, quirks, targets),
            range=_range(table),
            row_sum=table.number("row_sum", None),
            missing=table.choice("missing", ("reject", "empty", "nan"), "reject"),
            extra_columns=table.choice("extra_columns", ("ignore", "reject", "zeros"), "ignore"),
            booleans=quirks.flag("booleans", True),
            true=quirks.number("true", 1),
            only_booleans=quirks.flag("only_booleans", True),
            varied=quirks.flag("varied", False),
            same_names=quirks.choice("same_names", ("reject", "first"), "reject"),
            rows=quirks.choice("rows", ("exact", "cover", "scored"), "exact"),
            as_written=quirks.texts("as_written", ()),
            other_names=_other_names(quirks, targets),
        )
        _refuse_contradictions(table, quirks, rules)
        return rules


def _kinds(table: Table, quirks: Table, targets: tuple[str, ...]) -> dict[str, str]:
    kind = table.choice("kind", KINDS, "number")
    special = quirks.table("kinds", None)
    if special is None:
        return dict.fromkeys(targets, kind)
    return {target: special.choice(target, KINDS, kind) for target in targets}


def _other_names(table: Table, targets: tuple[str, ...]) -> dict[str, str]:
    other = table.table("other_names", None)
    if other is None:
        return {}
    return {name: target for target in targets if (name := other.text(target, ""))}


def _range(table: Table) -> tuple[float, float] | None:
    bounds = table.numbers("range", None)
    if bounds is None:
        return None
    if len(bounds) != 2 or bounds[0] >= bounds[1]:
        table.refuse("range", f"must be a lower and a higher number, given: {list(bounds)}")
        return None
    return bounds[0], bounds[1]


def _refuse_contradictions(table: Table, quirks: Table, rules: Rules) -> None:
    columns = (*rules.id, *rules.targets)
    repeated = sorted({column for column in columns if columns.count(column) > 1})
    if repeated:
        table.refuse("targets", f"and id must be different columns, given twice: {repeated[0]!r}")
    for column in rules.as_written:
        if column not in columns:
            quirks.refuse("as_written", f"must name columns of a submission, given: {column!r}")
