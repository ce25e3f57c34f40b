"""Small competitions and stores to try the store with."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from kaggle_server import KaggleServer
from store_files import PREPARE, TOML, MakeCompetition

from pytest_mlebench.competition import Competition, read_competition
from pytest_mlebench.kaggle import client


@pytest.fixture
def make_competition(tmp_path: Path) -> MakeCompetition:
    """Return a function that writes a competition's folder and reads it."""

    def make(
        name: str = "tiny", *, source: str = "generated", prepare: str = PREPARE, extra: str = ""
    ) -> Competition:
        folder = tmp_path / "competitions" / name
        folder.mkdir(parents=True, exist_ok=True)
        percentiles = ", ".join(str(1 - p / 100) for p in range(101))
        text = TOML.format(source=source, percentiles=percentiles) + extra
        (folder / "competition.toml").write_text(text)
        (folder / "prepare.py").write_text(prepare)
        (folder / "grade.py").write_text("")
        (folder / "description.md").write_text(f"# {name}\n")
        return read_competition(folder)

    return make


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty home without any credentials."""
    for name in list(os.environ):
        if name.startswith("KAGGLE_") or name.lower() in ("http_proxy", "no_proxy", "all_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def kaggle(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KaggleServer]:
    """Start a Kaggle that the real client finds, with waits too short to notice."""
    del home
    monkeypatch.setattr(client, "FIRST_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(client, "FIRST_RATE_WAIT_SECONDS", 0.01)
    with KaggleServer() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        yield server
