"""Progress is told in lines or shown in bars."""

from __future__ import annotations

import io
import sys
import time

import pytest
from rich.console import Console
from rich.progress import Progress

from pytest_mlebench.store.progress import Bars, Lines, duration, on_terminal, size, told


def test_lines_come_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    said: list[str] = []
    lines = Lines(said.append)
    for done in range(0, 30_000_001, 1_000_000):
        lines.transfer("it", done, 60_000_000)
        clock[0] += 1
    assert said == [
        "it: 10.0 MB of 60.0 MB (17%), 1.0 MB/s, 50 s left",
        "it: 20.0 MB of 60.0 MB (33%), 1.0 MB/s, 40 s left",
        "it: 30.0 MB of 60.0 MB (50%), 1.0 MB/s, 30 s left",
    ]
    lines.transfer("it", 60_000_000, 60_000_000)
    assert said[-1] == "it: 60.0 MB downloaded, 1.9 MB/s"


def test_a_download_of_unknown_size_tells_what_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    said: list[str] = []
    lines = Lines(said.append)
    lines.transfer("it", 0, None)
    clock[0] += 10
    lines.transfer("it", 5_000, None)
    assert said == ["it: 5.0 kB, 500 B/s"]


def test_the_speed_of_a_continued_download_is_that_of_this_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    said: list[str] = []
    lines = Lines(said.append)
    lines.transfer("it", 50_000_000, 60_000_000)
    clock[0] += 10
    lines.transfer("it", 51_000_000, 60_000_000)
    assert said == ["it: 51.0 MB of 60.0 MB (85%), 100.0 kB/s, 2 min left"]


def test_bars_show_speed_and_end() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100)
    with Progress(console=console, auto_refresh=False) as shown:
        bars = Bars(shown)
        bars("[a] plain text")
        bars.transfer("it", 10, 100)
        shown.refresh()
        assert [task.completed for task in shown.tasks] == [10]
        bars.transfer("it", 100, 100)
        assert shown.tasks == []
    assert "[a] plain text" in screen.getvalue()
    assert "it" in screen.getvalue()


def test_without_a_terminal_there_are_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with on_terminal() as progress:
        progress("hello")
    assert capsys.readouterr().err == "hello\n"


def test_on_a_terminal_there_are_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with on_terminal() as progress:
        assert isinstance(progress, Bars)


def test_anything_that_can_be_told_a_sentence_will_do() -> None:
    said: list[str] = []
    told(said.append)("hello")
    assert said == ["hello"]
    lines = Lines(said.append)
    assert told(lines) is lines


@pytest.mark.parametrize(
    ("count", "text"),
    [(999, "999 B"), (1_000, "1.0 kB"), (12_345_678, "12.3 MB"), (3.3e12, "3.3 TB")],
)
def test_sizes_are_for_people(count: float, text: str) -> None:
    assert size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59, "59 s"), (150, "2 min"), (4000, "1 h 07 min")]
)
def test_durations_are_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text
