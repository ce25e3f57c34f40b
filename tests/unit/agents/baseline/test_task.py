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


@pytest.mark.parametrize("sample", ["0 0", "0.5 0.5"])
def test_figures_cannot_stand_for_more_than_two_words(task: ModuleType, sample: str) -> None:
    assert infer(task, {"y": ["a", "b", "c"] * 40}, {"y": sample}) == ()


def test_categories_are_labels_however_many_there_are(task: ModuleType) -> None:
    numbers = pd.Series([*range(60)] * 2)
    (quantity,) = infer(task, {"y": numbers}, {"y": "0 0"})
    (goal,) = infer(task, {"y": numbers.astype("category")}, {"y": "0 0"})
    assert (quantity.form, goal.form, len(goal.classes)) == ("number", "label", 60)
    assert list(goal.known_targets(pd.DataFrame({"y": [5, 99]}))[0]) == [True, False]


def cells(*values: str) -> dict[str, Any]:
    """Return a column of the sample whose cells have blanks in them."""
    return {"y": Cells(values)}


class Cells(tuple[str, ...]):
    """A column that is split already."""

    def split(self) -> list[str]:
        return list(self)


def test_a_sample_of_several_labels_asks_for_a_ranking(task: ModuleType) -> None:
    (goal,) = infer(task, {"y": [7, 8, 9] * 40}, cells("7 8", "7 8"))
    assert (goal.form, goal.size, goal.classes) == ("ranking", 2, (7, 8, 9))


def test_cells_of_several_labels_ask_for_a_set(task: ModuleType) -> None:
    random = np.random.default_rng(0)
    lists = [" ".join(random.permutation([*"abcdefgh"])[: 1 + i % 4]) for i in range(120)]
    (goal,) = infer(task, {"y": lists}, cells("a", "a b"))
    assert (goal.form, goal.classes) == ("set", tuple("abcdefgh"))
    known, target = goal.known_targets(pd.DataFrame({"y": ["b d", None]}))
    assert (list(known), target.tolist()) == ([True, False], [[0, 1, 0, 1, 0, 0, 0, 0]])


def test_words_that_mostly_repeat_are_labels(
    task: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = {"y": [f"a{i % 5} of b{i % 4}" for i in range(120)]}
    monkeypatch.setattr(task, "MAX_LABELS", 10)
    (goal,) = infer(task, words, cells("a1 of b2", "of"))
    assert (goal.form, len(goal.classes)) == ("label", 20)
    monkeypatch.setattr(task, "MIN_VARIETY", 0.1)
    assert infer(task, words, cells("a1 of b2", "of"))[0].form == "set"


def test_few_combinations_of_labels_are_labels_themselves(task: ModuleType) -> None:
    (goal,) = infer(task, {"y": ["a", "a b", "b c"] * 40}, cells("a", "a"))
    assert (goal.form, goal.classes) == ("label", ("a", "a b", "b c"))


@pytest.mark.parametrize("example", ["1 1 5 2", "x y", ""])
def test_other_lists_are_no_labels(task: ModuleType, example: str) -> None:
    random = np.random.default_rng(0)
    lists = [" ".join(random.permutation([*"abcdefgh"])[:3]) for _ in range(120)]
    assert infer(task, {"y": lists}, cells(example, example)) == ()


def test_words_that_are_columns_may_all_be_right(task: ModuleType) -> None:
    columns = dict.fromkeys(("cat", "dog", "owl"), "0 0")
    (goal,) = infer(task, {"pets": ["dog,cat", "owl"] * 60, "note": "n"}, columns)
    assert (goal.form, goal.classes, goal.separator) == ("members", ("cat", "dog", "owl"), ",")
    assert goal.known_targets(pd.DataFrame({"pets": ["dog,cat"]}))[1].tolist() == [[1, 1, 0]]


def test_quantities_become_shares_where_the_sample_adds_up_to_one(task: ModuleType) -> None:
    train = {"cat": [0, 3] * 60, "dog": [1, 1] * 60}
    (goal,) = infer(task, train, {"cat": "0.5 0.5", "dog": "0.5 0.5"})
    assert (goal.form, goal.columns) == ("shares", ("cat", "dog"))
    assert goal.known_targets(pd.DataFrame(train))[1][:2].tolist() == [[0, 1], [0.75, 0.25]]
    flags = {"cat": [0, 1] * 60, "dog": [0, 1] * 60}
    goals = infer(task, flags, {"cat": "0.5 0.5", "dog": "0.5 0.5"})
    assert [goal.form for goal in goals] == ["probability", "probability"]


def test_lists_of_numbers_are_no_targets(task: ModuleType) -> None:
    assert infer(task, {"y": [[1, 2]] * 120}, {"y": "0 0"}) == ()


def test_rare_classes_are_left_out_where_there_are_too_many(
    task: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task, "MAX_CELLS", 2 * 122)
    labels = ["a"] * 50 + ["b"] * 40 + ["c", "d"] * 15
    (goal,) = infer(task, {"y": labels}, {"y": "a a"})
    assert goal.classes == ("a", "b")


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
