"""The live area on a real pseudo-terminal: there while agents run, gone without a trace."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest
from plugin_session import Session
from pseudo_terminal import WAITING, Terminal

DIGITS, WINE = "demo-digits", "demo-wine-cultivars"
ONE = (f"--mle-competition={DIGITS}", "--mle-run=r")
BAR = "░"

Start = Callable[..., Terminal]


@pytest.fixture
def start(session: Session) -> Start:
    """Start a session with an agent that waits until it is released."""
    command = session.agent("waiting", WAITING)

    def started(*arguments: str, **options: Any) -> Terminal:
        return Terminal(session.path, f"--mle-agent={command}", *ONE, *arguments, **options)

    return started


def running(terminal: Terminal) -> list[str]:
    """Return the competitions that have a row."""
    return [line.split()[0] for line in terminal.text.splitlines() if BAR in line]


def test_a_row_shows_what_runs_and_nothing_stays(start: Start) -> None:
    terminal = start(columns=160)
    terminal.until(lambda: BAR in terminal.text and "training fold 3" in terminal.text)
    assert "0 of 1 over, no medal yet" in terminal.text
    terminal.until(lambda: "no file" in terminal.text)
    row = next(line for line in terminal.text.splitlines() if BAR in line)
    assert row.startswith(f"{DIGITS} seed0")
    terminal.release(DIGITS)
    assert terminal.finish() == 0
    assert BAR not in terminal.everything
    assert "training" not in terminal.everything
    line = next(line for line in terminal.everything.splitlines() if line.startswith("mlebench"))
    assert line.split()[1:] == [".", "[100%]"]


@pytest.mark.parametrize("columns", [40, 80, 250])
def test_no_line_is_wider_than_the_terminal(start: Start, columns: int) -> None:
    terminal = start(columns=columns)
    terminal.until(lambda: "1 running" in terminal.text and DIGITS in terminal.text)
    (below,) = [k for k, line in enumerate(terminal.text.splitlines()) if "1 running" in line]
    rest = terminal.text.splitlines()[below + 1 :]
    assert [line for line in rest if line] == []
    terminal.release(DIGITS)
    assert terminal.finish() == 0
    assert "1 running" not in terminal.everything


@pytest.mark.parametrize("option", ["-v", "-s", "-n2", "-x", "--tb=short"])
def test_other_options_of_pytest_leave_it_whole(start: Start, option: str) -> None:
    terminal = start(option, f"--mle-competition={WINE}", columns=100)
    terminal.until(lambda: BAR in terminal.text)
    first, second = (DIGITS, WINE) if DIGITS in running(terminal) else (WINE, DIGITS)
    terminal.release(first)
    terminal.until(lambda: second in running(terminal))
    terminal.release(second)
    assert terminal.finish() == 0
    assert BAR not in terminal.everything
    assert "2 passed" in terminal.everything


def test_it_follows_a_terminal_that_changes_its_size(start: Start) -> None:
    terminal = start(columns=160)
    terminal.until(lambda: BAR in terminal.text)
    terminal.resize(50, 20)
    terminal.until(lambda: "1 running" in terminal.text and BAR in terminal.text)
    terminal.resize(200, 50)
    terminal.until(lambda: "training fold 3" in terminal.text)
    terminal.release(DIGITS)
    assert terminal.finish() == 0


def test_an_interrupt_leaves_the_terminal_clean(start: Start) -> None:
    terminal = start(columns=100)
    terminal.until(lambda: BAR in terminal.text)
    terminal.child.kill(signal.SIGINT)
    assert terminal.finish() == 2
    assert BAR not in terminal.everything
    assert "missing" in terminal.everything


@pytest.mark.parametrize(
    ("arguments", "env"),
    [(("-q",), {}), (("-p", "no:terminal"), {}), ((), {"TERM": "dumb"})],
    ids=["quiet", "no-terminal", "dumb"],
)
def test_nothing_is_drawn_where_nobody_wants_it(
    start: Start, session: Session, arguments: tuple[str, ...], env: dict[str, str]
) -> None:
    terminal = start(*arguments, env=env)
    home = f"mle-runs/r/{DIGITS}/seed0/attempt1/home/code"
    terminal.until(lambda: terminal.read() and any(session.path.glob(home)))
    for _ in range(15):  # a few refreshes
        terminal.read()
    terminal.release(DIGITS)
    assert terminal.finish() == 0
    assert b"\x1b[J" not in terminal.raw
    assert "1 running" not in terminal.everything
