"""The published board, and the place of a run on it."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import cli, complaint
from reporting import REAL_REPORTS, graded

from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.board import (
    board_lines,
    board_svg,
    entry_of,
    places,
    ranking,
    read_board,
)
from pytest_mlebench.reports.disclosure import Disclosure
from pytest_mlebench.reports.report import Report


@pytest.fixture(scope="module")
def famou() -> Report:
    """Return the real reports of an agent that is on the board."""
    return Report.from_reference(REAL_REPORTS)


def test_a_published_agent_finds_itself(famou: Report) -> None:
    (published,) = (e for e in read_board() if (e.agent, e.date) == ("Famou-Agent", "2025-10-10"))
    own = entry_of(famou)
    assert list(own.rates) == list(published.rates)
    for split, rate in own.rates.items():
        expected = published.rates[split]
        assert (round(rate.mean, 2), round(rate.sem or 0, 2)) == (expected.mean, expected.sem)
    rank = {entry.date: rank for rank, entry in ranking(read_board(), "all")}["2025-10-10"]
    place = places(own, read_board())[-1]
    assert (place.split, place.rank, place.of) == ("all", rank, 29)


def test_results_with_feedback_from_the_test_set_have_no_rank() -> None:
    ranks = [(rank, entry.agent) for rank, entry in ranking(read_board(), "all")]
    assert ranks[:2] == [(None, "Disarray"), (1, "Famou-Agent 2.0")]


def test_conditions_that_are_not_standard_are_marked(famou: Report) -> None:
    lines = [line.text for line in board_lines([*read_board(), entry_of(famou)])]
    text = " ".join(" ".join(lines).split())
    assert "12 hours instead of 24; incomplete seeds padded" in text
    assert "undisclosed; 36 hours instead of 24; models undisclosed" in text
    assert "not stated; not known: time, cpus" in text
    assert max(map(len, lines)) <= 80


def test_a_run_has_a_place_in_the_splits_that_it_has_whole() -> None:
    registry = Registry()
    low = [graded(name, seed) for name in registry.split("low") for seed in range(3)]
    part = [graded(registry.split("high")[0], seed) for seed in range(3)]
    report = Report.of([*low, *part], registry=registry, disclosure=Disclosure(agent="<mine>"))
    own = entry_of(report)
    assert [place.split for place in places(own, read_board())] == ["low"]
    assert "&lt;mine&gt;" in board_svg(own, read_board())


def test_the_picture_is_whole_and_has_a_dot_for_each(famou: Report) -> None:
    svg = board_svg(entry_of(famou), read_board())
    assert sum(each.tag == "circle" for each in ET.fromstring(svg).iter()) == 31
    assert board_svg(replace(entry_of(famou), rates={}), read_board()) == ""


def test_the_page_shows_the_picture(famou: Report, tmp_path: Path) -> None:
    famou.write(tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    assert "Among the published results" in text
    assert "<title>any-medal rate on all, in percent, among the published results</title>" in text
    odd = replace(famou, disclosure=Disclosure(limits={"time": "24h, 12h"}))
    assert entry_of(odd).hours is None


def test_the_command_shows_the_board_and_a_place() -> None:
    done = cli("board", *REAL_REPORTS)
    assert (done.returncode, done.stderr) == (0, "")
    assert "all: 43.56 ±0.89 (95 % interval 39.73-47.38), place 13 of 29" in done.stdout
    assert "read 3 grading reports as 3 seeds of 75 competitions" in done.stdout
    data = json.loads(cli("board", "--json", "--split", "low").stdout)
    assert (data["split"], len(data["entries"])) == ("low", 30)


def test_what_has_no_whole_split_is_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("r") / "r.json"
    Report.of([graded("leaf-classification")], registry=Registry()).write(path)
    assert complaint("board", path) == (
        f"{path}: has no whole split of the benchmark to be placed by, it has: none"
    )
