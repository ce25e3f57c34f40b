"""Samples of what attempts use: few, small, and read whatever is in the file."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.host.usage import (
    LatestUsage,
    UsageLog,
    UsageSample,
    busy_cpus,
    interval,
    latest_usage,
    read_usage,
)

DAY = 86_400


def samples_in(seconds: float) -> int:
    passed, count = 0.0, 0
    while passed < seconds:
        passed += interval(passed)
        count += 1
    return count


def test_samples_are_seldom_enough_for_days_and_often_enough_for_minutes() -> None:
    assert samples_in(60) > 40
    assert samples_in(DAY) < 1700
    assert samples_in(30 * DAY) < 8000


def test_what_was_noted_is_read(tmp_path: Path) -> None:
    log = UsageLog(tmp_path / "stats.jsonl", first=0)
    assert log.is_due
    log.note(memory=5, cpu=1.5, pids=3)
    assert not log.is_due
    log.note(gpu=12.5, gpu_memory=7)
    assert read_usage(tmp_path / "stats.jsonl") == [
        UsageSample(0.0, 5.0, 1.5),
        UsageSample(0.0, gpu=12.5, gpu_memory=7.0),
    ]


def test_a_sample_that_cannot_be_written_is_no_harm(tmp_path: Path) -> None:
    UsageLog(tmp_path / "gone" / "stats.jsonl").note(memory=5)
    assert read_usage(tmp_path / "gone" / "stats.jsonl") == []


def test_lines_that_are_no_samples_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "stats.jsonl"
    path.write_text(
        '[1]\n{"t": NaN, "memory": 1}\n{"t": "1"}\n{"memory": 1}\n{"t": 2, "memory": 1e999}\n'
        '{"t": 3, "memory": 7}\n{"t": 4, "mem'
    )
    assert read_usage(path) == [UsageSample(2.0), UsageSample(3.0, 7.0)]
    assert latest_usage(path) == LatestUsage(memory=7.0)


def test_busy_cpus_are_those_between_two_samples() -> None:
    used = [
        UsageSample(0, 1, 0.0),
        UsageSample(1, gpu=5),
        UsageSample(2, 1, 3.0),
        UsageSample(2, 1, 4.0),
        UsageSample(4, 1, 3.0),
    ]
    assert list(busy_cpus(used)) == [(2, 1.5), (4, 0.0)]
