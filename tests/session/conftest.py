"""What the tests of the plugin share: sessions in a folder of their own, with tiny agents."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pandas  # noqa: F401  # loaded once here: a session in this process forgets its imports,
import pytest
import scipy.stats  # noqa: F401  # and numpy refuses to be loaded again
import sklearn.metrics  # noqa: F401
from plugin_session import Session


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset store that the tests of one process share."""
    return tmp_path_factory.getbasetemp() / "store"


@pytest.fixture(autouse=True)
def own_store(monkeypatch: pytest.MonkeyPatch, store: Path, tmp_path: Path) -> None:
    """Keep the tests out of the user's own store, and pytest's settings out of the tests."""
    monkeypatch.setenv("MLEBENCH_DATA_DIR", str(store))
    monkeypatch.setenv("MLEBENCH_LEASES_DIR", str(tmp_path / "leases"))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("CI", "GITHUB_ACTIONS", "FORCE_COLOR", "PY_COLORS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def session(pytester: pytest.Pytester) -> Session:
    """A folder from which pytest is started."""
    return Session(pytester)


@pytest.fixture(params=[(), ("-n2",)], ids=["plain", "xdist"])
def workers(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Both ways to run a session: alone, and with two workers."""
    arguments: tuple[str, ...] = request.param
    return arguments


@pytest.fixture
def processes() -> Callable[[str], list[int]]:
    """Return the processes whose command line or environment has a word."""

    def find(word: str) -> list[int]:
        found = []
        for folder in Path("/proc").iterdir():
            if folder.name.isdecimal() and int(folder.name) != os.getpid():
                try:
                    text = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
                except OSError:
                    continue
                if word.encode() in text:
                    found.append(int(folder.name))
        return found

    return find
