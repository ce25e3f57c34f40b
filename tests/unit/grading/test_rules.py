"""The ``[submission]`` table: every mistake is found when a competition is read."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import pytest
from submission_rules import make_rules

from pytest_mlebench.errors import CompetitionFileError
from pytest_mlebench.grading.rules import KINDS
from pytest_mlebench.grading.values import _CONVERTERS


def test_one_id_and_several_are_both_a_list() -> None:
    assert make_rules(id="id", targets=["x"]).id == ("id",)
    assert make_rules(id=["id", "class"], targets=["x"]).id == ("id", "class")


def test_a_kind_is_that_of_all_targets_but_for_the_special_ones() -> None:
    rules = make_rules(id="id", targets=["x", "y"], kind="text", kinds={"y": "integer"})
    assert rules.kinds == {"x": "text", "y": "integer"}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"kynd": "text"}, "here: kynd is not a known key, did you mean 'kind'?"),
        ({"kind": "numbr"}, "given: 'numbr', did you mean 'number'?"),
        ({"kinds": {"y": "text"}}, "here: quirks: kinds: y is not a known key"),
        ({"kinds": {"x": "txt"}}, "here: quirks: kinds: x must be one of number, unbounded, "),
        ({"other_names": {"y": "z"}}, "here: quirks: other_names: y is not a known key"),
        ({"targets": []}, "here: targets must not be empty"),
        ({"targets": [1]}, "here: targets must be a list of strings, given: 1"),
        ({"id": []}, "here: id must not be empty"),
        ({"id": 7}, "here: id must be a list of strings, given: 7"),
        ({"id": "x"}, "here: targets and id must be different columns, given twice: 'x'"),
        ({"range": [1]}, "here: range must be a lower and a higher number, given: [1]"),
        ({"range": [1, 1]}, "here: range must be a lower and a higher number, given: [1, 1]"),
        ({"range": "0-1"}, "here: range must be a list of numbers, given: '0-1'"),
        ({"as_written": ["z"]}, "as_written must name columns of a submission, given: 'z'"),
        ({"rows": "all"}, "here: quirks: rows must be one of exact, cover, scored, given: 'all'"),
        ({"missing": "drop"}, "here: missing must be one of reject, empty, nan, given: 'drop'"),
        ({"varied": "yes"}, "here: quirks: varied must be true or false, given: 'yes'"),
        ({"row_sum": True}, "here: row_sum must be a number, given: True"),
    ],
)
def test_a_mistake_is_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(CompetitionFileError, match=re.escape(message)):
        make_rules(**({"id": "id", "targets": ["x"]} | wrong))


def test_all_mistakes_are_named_at_once() -> None:
    with pytest.raises(CompetitionFileError) as caught:
        make_rules(targets=[], kind="numbr", rows="all", colour="red")
    lines = str(caught.value).splitlines()
    assert lines[0] == "here: 5 problems:"
    assert [line.split()[0] for line in lines[1:]] == ["targets", "kind", "quirks:", "id", "colour"]


def test_every_kind_has_its_conversion() -> None:
    assert set(KINDS) == set(_CONVERTERS)


def test_reading_rules_and_the_table_of_metrics_imports_nothing_heavy() -> None:
    program = (
        "import sys; import pytest_mlebench.competition, pytest_mlebench.grading.metrics;"
        "print({'numpy', 'pandas', 'scipy', 'sklearn'} & set(sys.modules))"
    )
    assert subprocess.check_output([sys.executable, "-c", program]) == b"set()\n"
