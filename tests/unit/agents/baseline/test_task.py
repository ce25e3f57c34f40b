"""The baseline agent tells from tables alone what is to be predicted."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from baseline_agent import imported

NUMBERS = np.linspace(0, 1, 120)


@pytest.fixture
def task() -> Iterator[ModuleType]:
    with imported("task") as (module,):
        yield module


def infer(task: ModuleType, train: dict[str, Any], sample: dict[str, str]) -> Any:
    tables = sys.modules["tables"]
    return task.infer_goals(
        tables.Tables(
            sample=pd.DataFrame({"id": ["1", "2"], **{k: v.split() for k, v in sample.items()}}),
            train=pd.DataFrame({"id": range(120), "x": NUMBERS, **train}),
            test=pd.DataFrame({"id": range(2), "x": [0.0, 1.0]}),
            ids=("id",),
        )
    )


@pytest.mark.parametrize(
    ("values", "sample", "form"),
    [
        (NUMBERS, "0 0", "number"),
        (range(120), "0 0", "number"),
        ([0, 1] * 60, "0.5 0.5", "probability"),
        ([0, 1] * 60, "0 0", "probability"),
        ([0, 1] * 60, "0 1", "label"),
        ([False, True] * 60, "False False", "label"),
        (["no", "yes"] * 60, "0.5 0.5", "probability"),
        (["no", "yes"] * 60, "no no", "label"),
        ([1, 2, 3] * 40, "1 1", "label"),
        ([1, 2, 3] * 40, "2.0 2.0", "number"),
        (["a", "b", "c"] * 40, "a a", "label"),
    ],
)
def test_one_column(task: ModuleType, values: Any, sample: str, form: str) -> None:
    (goal,) = infer(task, {"y": values}, {"y": sample})
    assert (goal.form, goal.sources, goal.columns) == (form, ("y",), ("y",))


def test_only_a_sample_full_of_whole_zeros_leaves_a_doubt(task: ModuleType) -> None:
    assert not infer(task, {"y": [0, 1] * 60}, {"y": "0 0"})[0].sure
    assert infer(task, {"y": [0, 1] * 60}, {"y": "0.0 0.0"})[0].sure


def test_texts_that_hardly_repeat_are_no_labels(task: ModuleType) -> None:
    assert infer(task, {"y": [f"{i} 1" for i in range(120)]}, {"y": "1 1"}) == ()


@pytest.mark.parametrize("prefix", ["", "p_"])
def test_one_column_for_each_class(task: ModuleType, prefix: str) -> None:
    columns = {f"{prefix}{name}": "0.5 0.5" for name in ("cat", "dog")}
    (goal,) = infer(task, {"pet": ["dog", "cat"] * 60, "note": "n"}, columns)
    assert (goal.form, goal.sources, goal.classes) == ("classes", ("pet",), ("cat", "dog"))
    known, target = goal.known_targets(pd.DataFrame({"pet": ["dog", None, "cat"]}))
    assert (list(known), list(target)) == ([True, False, True], [1, 0])


def test_columns_of_which_just_one_is_set_are_classes(task: ModuleType) -> None:
    train = {"cat": [0, 1] * 60, "dog": [1, 0] * 60}
    (goal,) = infer(task, train, {"cat": "0.5 0.5", "dog": "0.5 0.5"})
    assert (goal.form, goal.columns) == ("classes", ("cat", "dog"))
    assert list(goal.known_targets(pd.DataFrame(train))[1][:2]) == [1, 0]


def test_columns_that_are_set_freely_are_goals_of_their_own(task: ModuleType) -> None:
    train = {"loud": [0, 1] * 60, "late": [0, 0, 1] * 40, "cost": NUMBERS}
    goals = infer(task, train, {"loud": "0.5 0.5", "late": "0.5 0.5", "cost": "1 1"})
    assert [goal.form for goal in goals] == ["probability", "probability", "number"]


def test_a_target_may_be_spelt_otherwise(task: ModuleType) -> None:
    (goal,) = infer(task, {"label": [1, 2, 3] * 40, "note": "n"}, {"Label": "1 1"})
    assert (goal.sources, goal.columns) == (("label",), ("Label",))


def test_a_target_that_cannot_be_told_is_none(task: ModuleType) -> None:
    assert infer(task, {"a": NUMBERS, "b": NUMBERS}, {"y": "1 1"}) == ()
