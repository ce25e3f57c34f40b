"""Progress is shown in lines or in bars."""

from __future__ import annotations

import io
import sys
import threading
import time

import pytest
from rich.console import Console
from rich.progress import Progress

from pytest_mlebench.store import progress
from pytest_mlebench.store.progress import (
    Bars,
    Lines,
    Pulse,
    as_progress,
    on_terminal,
    show_time_left,
)


def test_lines_come_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    said: list[str] = []
    lines = Lines(said.append)
    for done in range(0, 30_000_001, 1_000_000):
        lines.transfer("it", done, 60_000_000)
        clock[0] += 1
    assert said == [
        "it: 10MB of 60MB (17%), 1MB/s, 50s left",
        "it: 20MB of 60MB (33%), 1MB/s, 40s left",
        "it: 30MB of 60MB (50%), 1MB/s, 30s left",
    ]
    lines.transfer("it", 60_000_000, 60_000_000)
    assert said[-1] == "it: 60MB downloaded, 1.935MB/s"


def test_a_download_of_unknown_size_shows_what_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    said: list[str] = []
    lines = Lines(said.append)
    lines.transfer("it", 0, None)
    clock[0] += 10
    lines.transfer("it", 5_000, None)
    assert said == ["it: 5kB, 500B/s"]


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
    assert said == ["it: 51MB of 60MB (85%), 100kB/s, 2m left"]


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


def test_anything_that_takes_a_message_will_do() -> None:
    said: list[str] = []
    as_progress(said.append)("hello")
    assert said == ["hello"]
    lines = Lines(said.append)
    assert as_progress(lines) is lines


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0s"), (59.2, "59s"), (150, "2m"), (3500, "58m"), (4000, "1h7m")]
)
def test_the_time_left_is_no_more_exact_than_it_can_be(seconds: float, text: str) -> None:
    assert show_time_left(seconds) == text


def test_bytes_that_are_done_are_shown_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    said: list[str] = []
    pulse = Pulse(said.append, "it: unpacking")
    for done in range(0, 61_000_000, 1_000_000):
        pulse.bytes_done(done, 60_000_000)
        clock[0] += 1
    assert said == [
        "it: unpacking, 30MB of 60MB (50%)",
        "it: unpacking, 60MB of 60MB (100%)",
    ]


def test_what_is_written_is_shown_while_something_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_PULSES", 0.001)
    said: list[str] = []
    shown = threading.Event()

    def log(text: str) -> None:
        said.append(text)
        if len(said) == 3:
            shown.set()
            raise KeyboardInterrupt  # ends the lines, and nothing else

    with Pulse(log, "it: preparing").watching(lambda: 1000 * len(said)):
        assert shown.wait(60)
    assert said == [f"it: preparing, {size} written so far" for size in ("0B", "1kB", "2kB")]


def test_where_nothing_is_known_of_what_is_written_nothing_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_PULSES", 0.001)
    asked = threading.Event()
    said: list[str] = []

    def unknown() -> None:
        asked.set()

    with Pulse(said.append, "it").watching(unknown):
        assert asked.wait(60)
    assert said == []
