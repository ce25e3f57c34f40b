"""The dummy agent hands in the sample submission, whatever it is called."""

from __future__ import annotations

import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from pytest_mlebench.agents.find import find_agent

SAMPLE = b"id,target\n1,0\n2,0\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name in ("data", "submission", "logs"):
        (tmp_path / name).mkdir()
    return tmp_path


def run_dummy(home: Path) -> subprocess.CompletedProcess[str]:
    contract = {f"{name.upper()}_DIR": str(home / name) for name in ("data", "submission", "logs")}
    command = find_agent("dummy", rootdir=home).command
    return subprocess.run(
        command, env=os.environ | contract, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "name",
    [
        "sample_submission.csv",
        "sampleSubmission.csv",
        "sample_submission_null.csv",
        "kaggle_sample_submission.csv",
    ],
)
def test_a_plain_sample_is_handed_in(home: Path, name: str) -> None:
    (home / "data" / name).write_bytes(SAMPLE)
    (home / "data" / "train.csv").write_text("id,target\n3,1\n")
    assert run_dummy(home).returncode == 0
    assert (home / "submission" / "submission.csv").read_bytes() == SAMPLE
    assert (home / "logs" / "dummy.log").read_text() == f"handed in {name}, {len(SAMPLE)} bytes\n"


@pytest.mark.parametrize("name", ["sample_submission.csv.zip", "sampleSubmission.zip"])
def test_a_zipped_sample_is_unpacked(home: Path, name: str) -> None:
    with zipfile.ZipFile(home / "data" / name, "w") as archive:
        archive.writestr("__MACOSX/._sample.csv", b"junk")
        archive.writestr("sample.csv", SAMPLE)
    assert run_dummy(home).returncode == 0
    assert (home / "submission" / "submission.csv").read_bytes() == SAMPLE


def test_the_plainest_name_wins(home: Path) -> None:
    (home / "data" / "sample_submission_stage2.csv").write_bytes(b"other")
    (home / "data" / "sample_submission.csv").write_bytes(SAMPLE)
    run_dummy(home)
    assert (home / "submission" / "submission.csv").read_bytes() == SAMPLE


def test_a_sample_in_a_folder_is_found(home: Path) -> None:
    (home / "data" / "en").mkdir()
    (home / "data" / "en" / "sample_submission.csv").write_bytes(SAMPLE)
    assert run_dummy(home).returncode == 0
    assert (home / "submission" / "submission.csv").read_bytes() == SAMPLE


def test_without_a_sample_nothing_is_handed_in(home: Path) -> None:
    result = run_dummy(home)
    assert result.returncode == 1
    assert result.stdout == f"no sample submission in {home / 'data'}\n"
    assert not list((home / "submission").iterdir())
