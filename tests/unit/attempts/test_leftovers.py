"""What killed sessions left in the folder of a run is removed, and nothing else."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from attempt_folders import write_attempt, write_run

from pytest_mlebench.attempts.leftovers import remove_workspaces
from pytest_mlebench.layout import AttemptFolder


def test_workspaces_and_sockets_go_and_evidence_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_run(tmp_path, ("a", 0))
    attempt = AttemptFolder(write_attempt(folder, "a", 0, "running").folder)
    attempt.home.mkdir()
    attempt.sockets.mkdir()
    (attempt.path / "calls.jsonl").write_text("")
    monkeypatch.chdir(attempt.sockets)  # a path to a socket must be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("gateway.sock")
    assert remove_workspaces(folder) == [attempt.home, attempt.sockets]
    assert {path.name for path in attempt.path.iterdir()} == {"record.json", "calls.jsonl"}
