"""Ten thousand attempts: what does not change is not read again, whoever watches."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from attempt_folders import AGENT, write_attempt, write_run

from pytest_mlebench.attempts import run_progress
from pytest_mlebench.grade import Grade
from pytest_mlebench.layout import RunFolder, SeedFolder
from pytest_mlebench.medals import Medal
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.page import attempt_view, competition_rows, page, traces
from pytest_mlebench.reports.report import Report
from pytest_mlebench.viewer import state
from pytest_mlebench.viewer.state import Runs

SEEDS, MANY = 100, 10_000
GOLD = Grade("c", 0.97, Medal.GOLD, True, 99.0, True, None, 0.9, 0.8, 0.7, 0.5, False, 240)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run of ten thousand attempts, all graded but the last."""
    root = tmp_path_factory.mktemp("runs")
    keys = [(f"c{number:03}", seed) for number in range(MANY // SEEDS) for seed in range(SEEDS)]
    folder = write_run(root / "many", *keys)
    model = write_attempt(folder, "model", 0, "graded", grade=GOLD)
    text = (model.folder / "record.json").read_text()
    for name, seed in keys[:-1]:
        attempt = folder.seed(name, seed).attempt(1)
        attempt.path.mkdir(parents=True)
        record = text.replace('"model"', f'"{name}"').replace('"seed": 0', f'"seed": {seed}')
        attempt.record.write_text(record)
    write_attempt(folder, *keys[-1], "running", ending=None)
    return folder


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often records are read and folders of attempts are listed."""
    counted: Counter[str] = Counter()
    read, listed, planned = run_progress.read_attempt, SeedFolder.attempts, state.read_plan

    def counting(name: str, function: object) -> object:
        def call(*arguments: object) -> object:
            counted[name] += 1
            return function(*arguments)  # type: ignore[operator]  # one of three

        return call

    monkeypatch.setattr(run_progress, "read_attempt", counting("records", read))
    monkeypatch.setattr(SeedFolder, "attempts", counting("folders", listed))
    monkeypatch.setattr(state, "read_plan", counting("plans", planned))
    return counted


@pytest.mark.slow
def test_ten_thousand_attempts_are_read_once(
    many: RunFolder, reads: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = Runs(many.path.parent, Registry())
    monkeypatch.setattr(state, "LOOK_SECONDS", 0.0)
    first = runs.live("many")
    assert reads == {"records": MANY + 1, "folders": MANY + 1, "plans": 1}
    assert first["status"].startswith(f"1 running, {MANY - 1} of {MANY} over")
    assert (len(first["rows"]), first["pages"]) == (state.SHOWN_ROWS, MANY // state.SHOWN_ROWS)
    reads.clear()
    last = runs.live("many", page=first["pages"])
    assert reads == {"folders": 1}  # of the one that runs; its record has not changed
    assert last["rows"][-1]["state"] == "running"
    reads.clear()
    write_attempt(many, "c000", 0, "running", number=2, ending=None)
    assert runs.live("many")["rows"][0]["state"] == "running"  # a seed that is tried again
    assert reads == {"folders": 2, "records": 1}
    monkeypatch.setattr(state, "LOOK_SECONDS", 3600.0)
    reads.clear()
    for _ in range(5):  # watchers
        runs.live("many")
    assert reads == {}


def test_a_report_is_laid_out_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_run(tmp_path / "runs" / "r", ("demo-digits", 0))
    write_attempt(folder, "demo-digits", 0, "graded", grade=GOLD)
    drawn: list[Report] = []
    monkeypatch.setattr(
        state, "render", lambda report, folder: drawn.append(report) or str(len(drawn))
    )
    runs = Runs(tmp_path / "runs", Registry())
    assert [runs.page("r") for _ in range(3)] == ["1", "1", "1"]
    folder.audit.write_text('{"format": "pytest-mlebench audit"}')
    folder.audit.unlink()
    write_run(tmp_path / "runs" / "r", ("demo-digits", 0), ("demo-digits", 1))
    assert runs.page("r") == "2"


def test_of_more_attempts_than_a_page_holds_the_others_have_figures_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (attempt_view, competition_rows, page):
        monkeypatch.setattr(module, "MAX_DETAILED", 3)
    folder = write_run(tmp_path / "runs" / "r", *(("demo-digits", seed) for seed in range(5)))
    for seed in range(5):
        run = write_attempt(folder, "demo-digits", seed, "graded", grade=GOLD)
        (run.folder / "run.log").write_text("epoch 7\n")
    looked: list[Path] = []
    tail = traces.log_tail
    monkeypatch.setattr(
        traces, "log_tail", lambda one, size: looked.append(one.path) or tail(one, size)
    )
    text = Runs(tmp_path / "runs", Registry()).page("r")
    assert len(looked) == text.count("epoch 7") == 3
    assert text.count('<details class="attempt"') == 5
    assert "The first 3 of 5 attempts" in text
    assert AGENT in text
