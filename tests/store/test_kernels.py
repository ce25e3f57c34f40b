"""Notebooks come from Kaggle, each once; one that is gone is passed over."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from kaggle_server import Fault, KaggleServer
from store_files import MakeCompetition

from pytest_mlebench import list_competitions, load_competition
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.kaggle.kernels import fetch_kernels, fetched_kernels, listed_kernels


def test_notebooks_are_fetched_once(
    kaggle: KaggleServer, tmp_path: Path, make_competition: MakeCompetition
) -> None:
    competition = make_competition()
    kaggle.kernels = {
        "ann/best": {"source": '{"cells": []}', "kernelType": "notebook", "language": "python"},
        "bob/script": {"source": "x = 1\n", "kernelType": "script", "language": "python"},
    }
    names = ("ann/best", "gone/away", "bob/script")
    count, problems = fetch_kernels(competition, tmp_path, names)
    assert count == 2
    assert problems == ["gone/away: Kaggle has no such notebook, or it is not public"]
    assert [path.name for path in fetched_kernels(tmp_path)] == [
        "ann__best.ipynb",
        "bob__script.py",
    ]
    asked = kaggle.count("GetKernel")
    assert fetch_kernels(competition, tmp_path, ("ann/best",)) == (0, [])
    assert kaggle.count("GetKernel") == asked


def test_kaggle_asking_for_patience_is_waited_for(
    kaggle: KaggleServer, tmp_path: Path, make_competition: MakeCompetition
) -> None:
    kaggle.kernels = {"a/b": {"source": "x", "kernelType": "script", "language": "python"}}
    kaggle.faults["GetKernel"].append(Fault(status=429, headers={"Retry-After": "0"}))
    assert fetch_kernels(make_competition(), tmp_path, ("a/b",)) == (1, [])


def test_the_lists_are_there_and_well_formed() -> None:
    lists = {name: listed_kernels(load_competition(name)) for name in list_competitions()}
    assert sum(map(len, lists.values())) == 3636
    assert all(len(set(names)) == len(names) for names in lists.values())


def test_a_line_that_is_no_reference_is_named(tmp_path: Path) -> None:
    competition = load_competition("demo-digits")
    (tmp_path / "kernels.txt").write_text("a/b\n\nhttps://x\n")
    with pytest.raises(ConfigError, match=r"kernels\.txt line 3: must be USER/NAME, given: 'http"):
        listed_kernels(replace(competition, folder=tmp_path / "demo-digits"))
