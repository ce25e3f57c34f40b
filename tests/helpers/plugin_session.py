"""A folder from which pytest is started as users start it."""

from __future__ import annotations

import json
import textwrap
from typing import Any

import pytest


class Session:
    """A folder from which pytest is started as users start it."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path

    def run(self, *arguments: str) -> pytest.RunResult:
        """Run pytest: in this process, which saves its imports, unless it has workers."""
        if any(argument.startswith("-n") for argument in arguments):
            return self.alone(*arguments)
        return self.pytester.runpytest_inprocess(*arguments)

    def alone(self, *arguments: str) -> pytest.RunResult:
        """Run pytest in a process of its own."""
        return self.pytester.runpytest_subprocess(*arguments, timeout=300)

    def collected(self, *arguments: str) -> list[str]:
        """Return the node ids that a session would run."""
        result = self.run("--collect-only", "-q", *arguments)
        assert result.ret in (0, 5), result.stdout.str() + result.stderr.str()
        return [line for line in result.outlines if "::" in line]

    def agent(self, name: str, code: str) -> str:
        """Write an agent in Python and return the command that starts it."""
        path = self.path / f"{name}.py"
        path.write_text(textwrap.dedent(code))
        return f"python {path.name}"

    def report(self, name: str = "report.json") -> dict[str, Any]:
        """Return a report that a session has written."""
        data: dict[str, Any] = json.loads((self.path / name).read_text())
        return data

    def records(self, run: str) -> dict[str, dict[str, Any]]:
        """Return the records of a run by their folders."""
        root = self.path / "mle-runs" / run
        return {
            str(path.parent.relative_to(root)): json.loads(path.read_text())
            for path in sorted(root.rglob("record.json"))
        }
