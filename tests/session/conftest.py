"""What the tests of the plugin share: sessions in a folder of their own, with tiny agents."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pandas  # noqa: F401  # loaded once here: a session in this process forgets its imports,
import pytest
import requests  # noqa: F401
import scipy.stats  # noqa: F401  # and numpy refuses to be loaded again
import sklearn.metrics  # noqa: F401
from plugin_session import Session


@pytest.fixture(autouse=True)
def own_leases(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let the sessions of one test share this host with nobody else's."""
    monkeypatch.setenv("MLEBENCH_LEASES_DIR", str(tmp_path / "leases"))


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
