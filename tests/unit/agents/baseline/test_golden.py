"""The baseline agent hands in something valid for every competition.

The data are those of the golden packs, and what the demo generates.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from baseline_agent import imported
from golden_pack import IDS, Pack
from threadpoolctl import threadpool_limits

from pytest_mlebench import list_competitions, load_competition
from pytest_mlebench.sandbox.validator import Validator

DEMO = list_competitions("demo")
SECONDS = 2.0  # for each competition: enough for a prior and some models


@pytest.fixture(scope="module")
def scripts() -> Iterator[tuple[ModuleType, ...]]:
    """Import the agent once: a process for each competition would mostly import."""
    with imported("attempt", "workspace") as modules, threadpool_limits(1):
        yield modules


def raw_tree(competition_id: str, folder: Path) -> Path:
    if competition_id not in DEMO:
        return Pack(competition_id).unpack("raw", folder)
    (folder / "raw").mkdir()
    load_competition(competition_id).generate(folder / "raw")
    return folder / "raw"


def test_every_competition_is_tried() -> None:
    assert sorted((*IDS, *DEMO)) == sorted(list_competitions())
    assert (len(IDS), len(DEMO)) == (82, 6)


@pytest.mark.parametrize("competition_id", [*IDS, *DEMO])
def test_what_is_handed_in_is_valid(
    competition_id: str,
    scripts: tuple[ModuleType, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attempt, workspace = scripts
    competition, public = load_competition(competition_id), tmp_path / "public"
    competition.prepare(raw_tree(competition_id, tmp_path), public, tmp_path / "private")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    submission = tmp_path / "submission.csv"

    def check(path: Path) -> None:
        competition.check(path, public)

    with Validator(check, folder=tmp_path, max_bytes=10**8) as validator, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        status = attempt.attempt(
            workspace.Workspace(
                data=public,
                submission=submission,
                log_file=tmp_path / "baseline.log",
                seed=0,
                deadline=time.monotonic() + SECONDS,
                validate_url=validator.listen_tcp(),
            )
        )
    assert status == 0
    competition.check(submission, public)
    competition.score(submission, tmp_path / "private")
