"""What all tests of this repository share; it does nothing for any test outside ``tests``.

The store, the leases and the credentials of whoever runs the tests are kept away from them, and so
are pytest's own settings: the tests start sessions of their own.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

TESTS = Path(__file__).parent / "tests"

# what pytest, a terminal or a CI would tell the sessions that the tests start
_SETTINGS = (
    *("PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "CI", "GITHUB_ACTIONS"),
    *("FORCE_COLOR", "NO_COLOR", "PY_COLORS"),
)

collect_ignore = ["benchmarks", "competitions", "examples", "pytest_mlebench", "scripts"]


def pytest_configure() -> None:
    """Take interrupts, whoever started us: a shell starts what runs in its background with SIGINT
    ignored, whatever the tests start would inherit that, and Ctrl-C is one of the things they try.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset store that the tests of one process share."""
    return tmp_path_factory.getbasetemp() / "store"


@pytest.fixture(autouse=True)
def nothing_of_the_developers_own(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Keep the tests away from what is the developer's own."""
    if TESTS not in request.path.parents:
        return
    base = tmp_path_factory.getbasetemp()
    monkeypatch.setenv("MLEBENCH_DATA_DIR", str(base / "store"))
    monkeypatch.setenv("MLEBENCH_LEASES_DIR", str(base / "leases"))
    monkeypatch.setenv("COLUMNS", "80")
    for name in list(os.environ):
        if name.startswith("KAGGLE_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("KAGGLE_CONFIG_DIR", str(base / "no-kaggle"))
    for name in _SETTINGS:
        monkeypatch.delenv(name, raising=False)
