"""Grading a file by the name of its competition, for programs that have nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pytest_mlebench.grade import Grade
from pytest_mlebench.grade import grade_submission as grade_file


def grade_submission(
    path: Path | str,
    competition_id: str,
    *,
    data_dir: Path | None = None,
    competitions: Iterable[Path] = (),
) -> Grade:
    """Return the grade of a submission; an invalid one has no score and a *problem*.

    The dataset is that of the store (*data_dir*, else the usual one); what can be made without a
    download is made. *competitions* are folders with competitions of your own.
    """
    # late on purpose: heavy
    from pytest_mlebench.kaggle.leaderboards import with_leaderboard
    from pytest_mlebench.registry import Registry
    from pytest_mlebench.store.location import default_store
    from pytest_mlebench.store.store import Store

    store = Store(data_dir or default_store())
    competition = Registry(competitions).load(competition_id)
    dataset = store.find(competition) or store.ensure(competition, prepare=competition.is_at_hand)
    known = with_leaderboard(dataset.competition, store.folder(competition))
    return grade_file(known, Path(path), dataset.private)
