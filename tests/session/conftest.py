"""What the tests of the plugin share: sessions in a folder of their own, with tiny agents."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas  # noqa: F401  # loaded once here: a session in this process forgets its imports,
import pytest
import requests  # noqa: F401
import scipy.stats  # noqa: F401  # and numpy refuses to be loaded again
import sklearn.metrics  # noqa: F401
from filelock import FileLock
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


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from this checkout, once for all workers of a session."""
    shared = tmp_path_factory.getbasetemp()
    folder = (shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared) / "wheel"
    with FileLock(f"{folder}.lock"):
        if not list(folder.glob("*.whl")):
            pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet")
            root = Path(__file__).parents[2]
            subprocess.run([*pip, "--no-deps", "--wheel-dir", folder, root], check=True)
    (built,) = folder.glob("*.whl")
    return built
