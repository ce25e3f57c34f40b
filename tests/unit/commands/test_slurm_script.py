"""The file for sbatch: what is in it, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pytest_mlebench.cli import main

AGENT = ("--", "--mle-agent=my agent")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a pool of allocations of 25 hours, whose name has a space."""
    place = tmp_path / "my runs"
    place.mkdir()
    monkeypatch.chdir(place)
    pool = '[slurm.a100]\nsrun = "--gres=gpu:1 --time=25:00:00"\nslots = 2\n'
    (place / "hosts.toml").write_text(pool)
    return place


def test_the_file_asks_for_a_small_job_and_starts_the_session(folder: Path) -> None:
    words = ("--time=7-0", "--partition=long", "--sbatch=--account=lab --comment='a b'")
    assert main(["slurm-script", *words, *AGENT]) == 0
    lines = (folder / "mlebench.sbatch").read_text().splitlines()
    assert lines[0] == "#!/bin/bash"
    for line in (
        f'--chdir="{folder}"',
        "--time=7-0",
        "--partition=long",
        "--output=mlebench-%j.log",
        "--signal=B:TERM@120",
        "--account=lab",
        '"--comment=a b"',
    ):
        assert f"#SBATCH {line}" in lines
    assert lines[-1].startswith(f"exec {sys.executable} -m pytest --mle-hosts=hosts.toml --mle-run")
    assert lines[-1].endswith("'--mle-agent=my agent'")
    assert subprocess.run(["bash", "-n", "mlebench.sbatch"], check=False).returncode == 0


def test_a_run_that_is_named_keeps_its_name(folder: Path) -> None:
    assert main(["slurm-script", "--time=7-0", *AGENT, "--mle-run=mine"]) == 0
    assert (folder / "mlebench.sbatch").read_text().count("--mle-run") == 1


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--time=soon", *AGENT), "--time must be as sbatch writes it, 7-0 or 36:00:00, given"),
        (("--time=60", *AGENT), "--time of 1h is shorter than the 25h that a100 asks for in hosts"),
        (("--time=7-0",), "nothing to run: end with the options of pytest, -- --mle-agent=NAME"),
        (("--time=7-0", *AGENT, "-n4"), "--hosts says where attempts run, and so does -n4"),
        (("--time=7-0", *AGENT, "--mle-hosts=x"), "give the file of hosts once, with --hosts"),
        (("--time=7-0", "--sbatch=x", *AGENT), "--sbatch must be options with their values att"),
        (("--time=7-0", "--sbatch='x", *AGENT), "--sbatch cannot be split into words"),
        (("--time=7-0", "--partition=a\nb", *AGENT), "--partition must not be empty, or have"),
        (("--time=7-0", "--hosts=none.toml", *AGENT), "none.toml: no such file"),
        (("--time=7-0", "-o", "no/x", *AGENT), "--output names a folder that does not exist: no"),
    ],
)
def test_nonsense_is_refused_and_nothing_is_written(
    folder: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], problem: str
) -> None:
    assert main(["slurm-script", *words]) == 4
    assert problem in capsys.readouterr().err
    assert [path.name for path in folder.iterdir()] == ["hosts.toml"]
