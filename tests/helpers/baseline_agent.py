"""The baseline agent in tests: run as a process in a workspace, or imported from its folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pandas as pd

from pytest_mlebench.agents.find import find_agent

FOLDER = find_agent("baseline", rootdir=Path()).folder


@dataclass(frozen=True)
class Home:
    """A workspace as a sandbox lays it out."""

    path: Path

    @classmethod
    def make(cls, path: Path) -> Home:
        for name in ("data", "submission", "logs"):
            (path / name).mkdir()
        return cls(path)

    @property
    def data(self) -> Path:
        return self.path / "data"

    def write(self, name: str, table: pd.DataFrame) -> None:
        table.to_csv(self.data / name, index=False)

    def run(self, **environment: str) -> str:
        folders = {
            f"{name.upper()}_DIR": str(self.path / name) for name in ("data", "submission", "logs")
        }
        result = subprocess.run(
            find_agent("baseline", rootdir=self.path).command,
            env=os.environ
            | {"MLE_TIME_LIMIT_SECS": "600", "MLE_SEED": "1"}
            | folders
            | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        assert (self.path / "logs" / "baseline.log").read_text() == result.stdout
        (self.path / "logs" / "baseline.log").unlink()
        return result.stdout

    def submission(self) -> pd.DataFrame:
        table = pd.read_csv(self.path / "submission" / "submission.csv", dtype={"id": str})
        return table.set_index("id")


@contextmanager
def imported(*names: str) -> Iterator[tuple[ModuleType, ...]]:
    """Import scripts as the agent does, from its own folder, and forget them afterwards."""
    before = set(sys.modules)
    sys.path.insert(0, str(FOLDER))
    try:
        yield tuple(import_module(name) for name in names)
    finally:
        sys.path.remove(str(FOLDER))
        for name in set(sys.modules) - before:
            if Path(getattr(sys.modules[name], "__file__", None) or "/").parent == FOLDER:
                del sys.modules[name]
