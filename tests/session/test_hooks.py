"""Hooks are asked as often as they promise, and records are read no more often than needed."""

from __future__ import annotations

import collections
from pathlib import Path

import pytest
from plugin_session import Session

from pytest_mlebench.attempts import record

CONFTEST = """
from pathlib import Path

def note(name):
    with Path("asked").open("a") as file:
        print(name, file=file)

def pytest_mle_limits(competition, limits):
    note(f"limits {competition}")

def pytest_mle_report():
    note("report")
    return {"asked": True}

def pytest_mle_graded(run, grade):
    note(f"graded {run.competition} {run.seed}")
"""

DIGITS, WINE = "demo-digits", "demo-wine-cultivars"


def test_each_hook_is_asked_once_for_what_it_is_about(session: Session) -> None:
    session.pytester.makeconftest(CONFTEST)
    chosen = (f"--mle-competition={DIGITS}", f"--mle-competition={WINE}", "--mle-seeds=2")
    session.run("--mle-agent=dummy", *chosen).assert_outcomes(passed=4)
    asked = collections.Counter((session.path / "asked").read_text().splitlines())
    assert asked == dict.fromkeys(
        [
            f"limits {DIGITS}",
            f"limits {WINE}",
            "report",
            *(f"graded {name} {seed}" for name in (DIGITS, WINE) for seed in (0, 1)),
        ],
        1,
    )


def test_no_record_is_read_twice_to_make_a_report(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("--mle-agent=dummy", f"--mle-competition={DIGITS}", "--mle-run=r")
    session.run(*arguments).assert_outcomes(passed=1)
    read: list[Path] = []
    original = record.read_attempt

    def noting(folder: Path) -> record.Run | None:
        read.append(folder)
        return original(folder)

    monkeypatch.setattr(record, "read_attempt", noting)
    session.run(*arguments).assert_outcomes(passed=1)
    # what is done already; the attempt of the item; the report with its disclosure
    assert len(read) <= 3
