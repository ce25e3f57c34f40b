"""The folders of a run, looked at while others make and remove some."""

from __future__ import annotations

import threading
from pathlib import Path

from pytest_mlebench.layout import RunFolder


def test_only_numbered_folders_are_seeds_and_attempts(tmp_path: Path) -> None:
    for name in (
        "a/seed0/attempt2",
        "a/seed0/attempt10",
        "a/seed0/attemptx",
        "b/seedy",
        ".c/seed1",
    ):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "run.json").write_text("{}")
    (seed,) = RunFolder(tmp_path).seeds()
    assert seed.path == tmp_path / "a/seed0"
    assert [attempt.number for attempt in seed.attempts()] == [2, 10]


def test_a_folder_that_vanishes_meanwhile_is_none(tmp_path: Path) -> None:
    (tmp_path / "a/seed0/attempt1").mkdir(parents=True)
    over = threading.Event()

    def make_and_remove() -> None:
        while not over.is_set():
            for name in (".incoming", "b", "b/seed1"):
                (tmp_path / name).mkdir()
            for name in (".incoming", "b/seed1", "b"):
                (tmp_path / name).rmdir()

    thread = threading.Thread(target=make_and_remove)
    thread.start()
    try:
        for _ in range(200):
            seeds = list(RunFolder(tmp_path).seeds())
            assert seeds[0].path.name == "seed0"
            assert sum(len(seed.attempts()) for seed in seeds) == 1
    finally:
        over.set()
        thread.join()
