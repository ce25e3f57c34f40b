"""The table of metrics agrees with the functions it names."""

from __future__ import annotations

import inspect

import pytest

from pytest_mlebench.grading.metrics import METRICS, load_metric


@pytest.mark.parametrize("name", METRICS)
def test_the_table_knows_the_parameters_of_a_metric(name: str) -> None:
    truth, prediction, *others = inspect.signature(load_metric(name)).parameters.values()
    assert (truth.name, prediction.name) == ("truth", "prediction")
    optional = {each.name for each in others if each.default is not each.empty}
    assert set(METRICS[name].optional) == optional
    assert set(METRICS[name].required) == {each.name for each in others} - optional
