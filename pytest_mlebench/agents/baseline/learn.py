"""Learning one goal: every model predicts each row from the others, and the best are blended."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from estimate import Estimate, blend, estimate, loss_of
from models import Candidate, classifiers, joint_regressors, regressors
from task import Goal
from views import Views

Say = Callable[[str], None]


class OutOfTime(Exception):
    """There is no time for another fit."""


def prior(goal: Goal, truth: np.ndarray, rows: int) -> Estimate:
    """Return what one would say without looking at a row: the mean, or how common classes are."""
    if goal.is_exclusive:
        mean = np.bincount(truth, minlength=len(goal.classes)) / len(truth)
    else:
        mean = truth.mean(axis=0)
    held_out = np.broadcast_to(mean, (len(truth), *goal.width))
    test = np.broadcast_to(mean, (rows, *goal.width))
    return Estimate("the prior", held_out, test, loss_of(goal.form)(truth, held_out))


def learn(
    goal: Goal, truth: np.ndarray, views: Sequence[Views], *, seed: int, deadline: float, say: Say
) -> Iterator[Estimate]:
    """Yield better and better estimates until all models have been tried or time is up."""
    candidates = [candidate for one in views for candidate in _candidates(goal, one)]
    estimates = [prior(goal, truth, one.view.test.shape[0]) for one in candidates[:1]]
    for candidate in candidates:
        started = time.monotonic()
        try:
            values = _cross_validated(candidate, goal, truth, seed, deadline)
        except OutOfTime:
            say(f"no time for {candidate.name}")
            continue
        except (ValueError, MemoryError, np.linalg.LinAlgError) as problem:
            say(f"{candidate.name} failed: {problem}")
            continue
        estimates.append(estimate(candidate.name, truth, *values, goal.form))
        took = time.monotonic() - started
        say(f"{candidate.name}: loss {estimates[-1].loss:.5f} in {took:.1f} s")
        yield blend(estimates, truth, goal.form, seed)


def _candidates(goal: Goal, views: Views) -> list[Candidate]:
    if goal.is_exclusive:
        return classifiers(views, len(goal.classes))
    return joint_regressors(views, len(goal.classes)) if goal.width else regressors(views)


def _cross_validated(
    candidate: Candidate, goal: Goal, truth: np.ndarray, seed: int, deadline: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return predictions of held-out rows, and the mean of all folds' for the test rows."""
    train, test = candidate.view.train, candidate.view.test
    held_out = np.zeros((len(truth), *goal.width))
    ahead = np.zeros((test.shape[0], *goal.width))
    folds = list(_folds(goal, truth, seed))
    longest = 0.0
    for fit_rows, rows in folds:
        started = time.monotonic()
        if started + longest > deadline:
            raise OutOfTime
        model = candidate.make(seed).fit(train[fit_rows], truth[fit_rows])
        held_out[rows] = _predict(model, train[rows], goal)
        ahead += _predict(model, test, goal) / len(folds)
        longest = max(longest, time.monotonic() - started)
    if goal.is_exclusive:
        return held_out, ahead
    low, high = truth.min(axis=0), truth.max(axis=0)  # what was never seen is not to be believed
    return held_out.clip(low, high), ahead.clip(low, high)


def _folds(goal: Goal, truth: np.ndarray, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    from sklearn.model_selection import KFold, StratifiedKFold  # late: heavy

    count = 5 if len(truth) <= 20_000 else 3
    kind = StratifiedKFold if goal.is_exclusive else KFold
    yield from kind(count, shuffle=True, random_state=seed).split(truth, truth)


def _predict(model: Any, rows: Any, goal: Goal) -> np.ndarray:
    if not goal.is_exclusive:
        return np.asarray(model.predict(rows), dtype=float)
    values = np.zeros((rows.shape[0], *goal.width))
    values[:, model.classes_] = model.predict_proba(rows)
    return values
