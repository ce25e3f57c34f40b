"""The command line, as a user runs it: in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def cli(
    *arguments: str | Path, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from pytest_mlebench.cli import main; raise SystemExit(main())"]
        + [str(argument) for argument in arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        cwd=cwd,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **environment},
    )


def complaint(*arguments: str | Path, status: int = 4) -> str:
    """Run what must fail and return the one line it says."""
    done = cli(*arguments)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    line, *more = done.stderr.splitlines()
    assert not more or (len(more) == 1 and more[0].startswith("see https://")), more
    assert line.startswith("pytest-mlebench: error: ")
    return line.removeprefix("pytest-mlebench: error: ")
