"""Breaths are split at random, all steps of one together; steps are renumbered in each part."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing import open_rows, split_group_indices, write_csv

TYPES = {
    "id": "int32",
    "breath_id": "int32",
    "R": "int8",
    "C": "int8",
    "time_step": "float64",
    "u_in": "float64",
    "u_out": "int8",
    "pressure": "float64",
}
DIGITS = "%.10g"


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the breaths."""
    group = "breath_id"
    with open_rows(
        raw / "train.csv", needs=TYPES, keep=[group], dtype=TYPES, copied=False
    ) as steps:
        train, held_out = split_group_indices(steps.column(group), 0.1)
        numbers = {"id": range(1, len(train) + 1)}
        steps.write(train, public / "train.csv", assign=numbers, float_format=DIGITS)
        test = steps.table(held_out).assign(id=range(1, len(held_out) + 1))
    write_csv(test.drop(columns="pressure"), public / "test.csv", float_format=DIGITS)
    write_csv(test, private / "test.csv", float_format=DIGITS)
    write_csv(test[["id"]].assign(pressure=0), public / "sample_submission.csv")
