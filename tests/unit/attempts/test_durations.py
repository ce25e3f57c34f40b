"""What earlier runs tell about how long an agent's attempts take."""

from __future__ import annotations

from pathlib import Path

from attempt_folders import write_attempt, write_run

from pytest_mlebench.attempts.durations import earlier_seconds


def test_the_median_of_earlier_attempts_counts(tmp_path: Path) -> None:
    for number, seconds in enumerate((10.0, 30.0, 20.0)):
        folder = write_run(tmp_path / f"run{number}", ("demo-digits", 0))
        timings = {"running": 100.0, "collected": 100.0 + seconds}
        write_attempt(folder, "demo-digits", 0, "graded", timings=timings)
    assert earlier_seconds(tmp_path, "mine") == {"demo-digits": 20.0}


def test_other_agents_and_what_cannot_be_read_say_nothing(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", ("demo-digits", 0), ("demo-digits", 1))
    write_attempt(folder, "demo-digits", 0, "running", timings={"running": 1.0})
    broken = write_attempt(folder, "demo-digits", 1, "graded", timings={"running": 1.0})
    (broken.folder / "record.json").write_text("{")
    assert earlier_seconds(tmp_path, "mine") == {}
    assert earlier_seconds(tmp_path / "nowhere", "mine") == {}
