"""Submissions graded anew on the data of this host, in several processes, resumable."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_mlebench import __version__
from pytest_mlebench.dataset import Dataset
from pytest_mlebench.errors import MlebenchError
from pytest_mlebench.grade import Grade, grade_submission
from pytest_mlebench.registry import Registry

if TYPE_CHECKING:
    from pytest_mlebench.grade import Scorer


Pool = ProcessPoolExecutor | None  # None: this process itself
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Task:
    """A submission to grade: in a form that crosses processes."""

    key: str  # names it in the notes, the same in the next verification of the same bundle
    competition: str
    submission: Path
    store: Path
    roots: tuple[Path, ...]
    score: Scorer


@dataclass(frozen=True)
class Regraded:
    """What became of a task: a grade, or why there is none."""

    key: str
    grade: Grade | None
    problem: str | None = None


class Notes:
    """What has been graded already, a line each, so that an interrupted verification goes on."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.known = dict(self._read())

    def add(self, done: Regraded) -> None:
        """Note a grade; a folder that cannot be written only costs the way back."""
        if self._path is None or done.grade is None:
            return
        line = {"version": __version__, "key": done.key, "grade": done.grade.to_dict()}
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")

    def forget(self) -> None:
        """Remove the notes: the next verification grades everything anew."""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)

    def _read(self) -> Iterator[tuple[str, Regraded]]:
        if self._path is None or not self._path.is_file():
            return
        for line in self._path.read_text(encoding="utf-8").splitlines():
            with suppress(ValueError, KeyError, TypeError):  # the last one may be cut off
                data = json.loads(line)
                if data["version"] == __version__:
                    key = str(data["key"])
                    yield key, Regraded(key, Grade.from_dict(data["grade"]))


@contextmanager
def grading_processes(jobs: int, start_early: Callable[[], object]) -> Iterator[Pool]:
    """Yield processes that grade, and begin with *start_early*: before there is anything to grade.

    They are copies of this one: those that start anew would load pandas before their first grade.
    """
    if jobs <= 1:
        start_early()
        yield None
        return
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=start_early) as pool:
        pool.submit(_begin)  # with the first request all of them start
        yield pool


def regrade(
    tasks: Sequence[Task], pool: Pool, notes: Notes, progress: Callable[[int, int], object]
) -> dict[str, Regraded]:
    """Grade what is not noted already, each result noted as it comes."""
    done = {task.key: notes.known[task.key] for task in tasks if task.key in notes.known}
    for found in _all([task for task in tasks if task.key not in done], pool):
        notes.add(found)
        done[found.key] = found
        progress(len(done), len(tasks))
    return done


def _all(tasks: Sequence[Task], pool: Pool) -> Iterator[Regraded]:
    """Grade side by side; if a process is lost, what it left is graded in one by itself each."""
    if pool is None:
        yield from map(_grade, tasks)
        return
    rest = {task.key: task for task in tasks}
    try:
        for future in as_completed([pool.submit(_grade, task) for task in tasks]):
            found = future.result()
            del rest[found.key]
            yield found
    except BrokenProcessPool:
        for task in list(rest.values()):
            yield _alone(task)


def in_processes(work: Callable[[T], R], tasks: Sequence[T], jobs: int) -> Iterator[R]:
    """Do some work in several processes, in order; BrokenProcessPool if one of them is killed."""
    if min(jobs, len(tasks)) <= 1:
        yield from map(work, tasks)
        return
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("fork")) as pool:
        yield from pool.map(work, tasks)


def _begin() -> None:
    """Do nothing, in a process that has started."""


def _alone(task: Task) -> Regraded:
    context = multiprocessing.get_context("fork")
    try:
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            return pool.submit(_grade, task).result()
    except BrokenProcessPool:
        problem = "the process that graded it was killed: try again, perhaps with fewer --jobs"
        return Regraded(task.key, None, problem)


def _grade(task: Task) -> Regraded:
    try:
        dataset = _dataset(task.competition, task.store, task.roots)
        if isinstance(dataset, str):
            return Regraded(task.key, None, dataset)
        grade = grade_submission(
            dataset.competition, task.submission, dataset.private, score=task.score
        )
    except (MlebenchError, OSError) as error:
        return Regraded(task.key, None, str(error))
    return Regraded(task.key, grade)


@cache  # in each process: the submissions of a competition share its data
def _dataset(name: str, store: Path, roots: tuple[Path, ...]) -> Dataset | str:
    """Return the prepared data of a competition, or say why there are none."""
    # late on purpose: heavy
    from pytest_mlebench.kaggle.leaderboards import with_leaderboard
    from pytest_mlebench.store.store import Store

    registry = Registry(roots)
    if name not in registry.ids():
        return f"there is no competition {name!r} here"
    place, competition = Store(store), registry.load(name)
    dataset = place.find(competition)
    if dataset is None and competition.source == "generated":
        dataset = place.ensure(competition)
    if dataset is None:
        return f"{name} is not prepared in {store}"
    return replace(dataset, competition=with_leaderboard(competition, place.folder(competition)))


def plain(grade: Grade) -> dict[str, Any]:
    """Return what two grades must have in common to be the same."""
    names = ("score", "medal", "above_median", "percentile", "submission_exists")
    thresholds = ("gold", "silver", "bronze", "median", "lower_is_better", "teams")
    data = grade.to_dict()
    return {name: data[name] for name in (*names, *thresholds)}
