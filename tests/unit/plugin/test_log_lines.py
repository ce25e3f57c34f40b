"""Progress in a log: silence is broken by a line on the whole."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from attempt_folders import write_attempt, write_run

from pytest_mlebench.attempts.run_progress import RunProgress
from pytest_mlebench.plugin import log_lines
from pytest_mlebench.plugin.log_lines import LogLines
from pytest_mlebench.reports.results import ItemKey


def test_a_silence_is_broken_by_a_line_on_the_run_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_lines, "SILENCE_SECONDS", 0.1)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    folder = write_run(tmp_path / "r", ("demo-digits", 0), ("demo-digits", 1))
    write_attempt(folder, "demo-digits", 0, "running", ending=None)
    expected = [ItemKey("demo-digits", seed, "mine") for seed in (0, 1)]
    writer = SimpleNamespace(width_of_current_line=7, _current_line="mlebench")
    reporter: Any = SimpleNamespace(_tw=writer, currentfspath="suite.py")
    ours, theirs = os.pipe()
    lines = LogLines(reporter, RunProgress(folder, expected), os.fdopen(theirs, "w"))
    with os.fdopen(ours) as log:
        lines.start()
        assert log.readline() == "\n"  # the line that pytest had begun is ended
        line = "mle-bench: 1 running, 0 of 2 over, no medal yet\n"
        writer.width_of_current_line = 0
        assert line in (log.readline(), log.readline())
        lines.stop()
