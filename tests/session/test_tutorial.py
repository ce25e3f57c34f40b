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
def shell(tmp_path: Path, wheel: Path) -> Path:
    """A folder whose shell has Python and pip, which installs the wheel, and a store of its own."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "work").mkdir()
    site = tmp_path / "site"
    _program(tmp_path, "python", f'exec {sys.executable} "$@"')
    # the environment's own packages serve as dependencies; only ours is installed anew
    install = f"-m pip --disable-pip-version-check install --quiet --no-deps --target {site}"
    made = "\n".join(
        f"cp {tmp_path}/bin/.{name} {tmp_path}/bin/{name}" for name in ("pytest", "pytest-mlebench")
    )
    known = 'test "$*" = "install pytest-mlebench"'
    _program(tmp_path, "pip", f"set -e\n{known}\n{sys.executable} {install} {wheel}\n{made}")
    ours = f"PYTHONPATH={site} exec {sys.executable} -m"
    for name, module in (("pytest", "pytest"), ("pytest-mlebench", "pytest_mlebench")):
        _program(tmp_path, f".{name}", f'{ours} {module} "$@"')
        _program(tmp_path, name, "echo not installed yet >&2; exit 1")
    return tmp_path / "work"


def _program(folder: Path, name: str, script: str) -> None:
    path = folder / "bin" / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


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
    lines = commands(TUTORIAL)
    assert len(lines) > 13
    out = run_all(lines, shell)
    assert "harbour" in out
    assert (shell / "my-agent" / "report.html").is_file()


@pytest.mark.slow
def test_the_first_page_leads_to_a_gated_release_without_an_error(shell: Path) -> None:
    before, _, _ = INDEX.partition("## The real benchmark")
    # all but the line that shows what it is about
    lines = [line for line in commands(before) if "myagent" not in line]
    assert lines[0] == "pip install pytest-mlebench"
    out = run_all(lines, shell)
    assert "harbour" in out.rpartition("$ pytest --mle-agent=my-agent --mle-split=gate")[2]
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
    assert "harbour" in run_all(["pip install pytest-mlebench", *commands(block)], shell)
