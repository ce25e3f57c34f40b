"""The tutorial and the first page of the documentation work, command by command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
COMPETITIONS = (ROOT / "docs" / "competitions.md").read_text(encoding="utf-8")
INDEX = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")


def commands(text: str) -> list[str]:
    """Return the lines of a page that are to be typed."""
    return re.findall(r"^    (\S.*)$", re.sub(r"```.*?```", "", text, flags=re.S), re.MULTILINE)


@pytest.fixture
def shell(tmp_path: Path) -> Path:
    """A folder whose shell finds this project's commands, and a store of its own."""
    programs = tmp_path / "bin"
    programs.mkdir()
    code = "from pytest_mlebench.cli import main; raise SystemExit(main())"
    known = {"pytest": "-m pytest", "pytest-mlebench": f"-c '{code}'", "python": ""}
    for name, words in known.items():
        script = programs / name
        script.write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
        script.chmod(0o755)
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def run_all(lines: list[str], folder: Path) -> str:
    """Type the commands one after the other, and stop at the first that fails."""
    script = "\n".join(["set -eu", *(f"echo '$' {_quoted(line)}\n{line}" for line in lines)])
    path = f"{folder.parent / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=os.environ | {"PATH": path, "MLEBENCH_DATA_DIR": str(folder.parent / "store")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return done.stdout


def _quoted(line: str) -> str:
    return "'" + line.replace("'", "'\\''") + "'"


@pytest.mark.slow
def test_every_command_of_the_tutorial_works(shell: Path) -> None:
    lines = [line for line in commands(TUTORIAL) if not line.startswith("pip ")]
    assert len(lines) > 12
    out = run_all(lines, shell)
    assert "harbour" in out
    assert (shell / "my-agent" / "report.html").is_file()


@pytest.mark.slow
def test_the_first_page_leads_to_a_gated_release_without_an_error(shell: Path) -> None:
    before, _, _ = INDEX.partition("## The real benchmark")
    lines = [line for line in commands(before) if not line.startswith("pip ")]
    lines = [line for line in lines if "myagent" not in line]  # the one that shows what it is about
    rows = "".join(f"{n % 9},{n % 9 * 2 + n % 2}\\n" for n in range(60))
    lines.insert(lines.index("pytest") + 1, f"printf 'moon,level\\n{rows}' > levels.csv")
    run_all(lines, shell)
    workflow = shell / "my-agent/.github/workflows/release-gate.yml"
    assert "--mle-fail-under=$BAR" in workflow.read_text()


@pytest.mark.slow
def test_a_competition_is_made_from_a_csv_file_in_three_commands(shell: Path) -> None:
    toml = re.search(r"```toml\n(\[tool\.pytest.*?)```", COMPETITIONS, re.S)
    assert toml is not None
    (shell / "pyproject.toml").write_text(toml[1])
    rows = "".join(f"{n % 9},{n % 9 * 2 + n % 2}\n" for n in range(80))
    (shell / "levels.csv").write_text("moon,level\n" + rows)
    block = COMPETITIONS[COMPETITIONS.index("in three commands") :].split("\n\n")[1]
    assert "harbour" in run_all(commands(block), shell)
