"""Learning one goal: every model predicts each row from the others, and the best are blended."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from estimate import Estimate, blend, estimate, loss_of
from models import Candidate, classifiers, regressors
from task import Goal
from views import Views

Say = Callable[[str], None]


class OutOfTime(Exception):
    """There is no time for another fit."""


def prior(goal: Goal, truth: np.ndarray, rows: int) -> Estimate:
    """Return what one would say without looking at a row: the mean, or how common classes are."""
    if goal.form == "number":
        held_out, test = np.full(len(truth), truth.mean()), np.full(rows, truth.mean())
    else:
        shares = np.bincount(truth, minlength=len(goal.classes)) / len(truth)
        held_out, test = np.tile(shares, (len(truth), 1)), np.tile(shares, (rows, 1))
    return Estimate("the prior", held_out, test, loss_of(goal.form)(truth, held_out))


def learn(
    goal: Goal, truth: np.ndarray, views: Views, *, seed: int, deadline: float, say: Say
) -> Iterator[Estimate]:
    """Yield better and better estimates until all models have been tried or time is up."""
    numbers = goal.form == "number"
    candidates = regressors(views) if numbers else classifiers(views, len(goal.classes))
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


def _cross_validated(
    candidate: Candidate, goal: Goal, truth: np.ndarray, seed: int, deadline: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return predictions of held-out rows, and the mean of all folds' for the test rows."""
    train, test = candidate.view.train, candidate.view.test
    width = () if goal.form == "number" else (len(goal.classes),)
    held_out, ahead = np.zeros((len(truth), *width)), np.zeros((test.shape[0], *width))
    folds = list(_folds(goal, truth, seed))
    longest = 0.0
    for fit_rows, rows in folds:
        started = time.monotonic()
        if started + longest > deadline:
            raise OutOfTime
        model = candidate.make(seed).fit(train[fit_rows], truth[fit_rows])
        held_out[rows] = _predict(model, train[rows], width)
        ahead += _predict(model, test, width) / len(folds)
        longest = max(longest, time.monotonic() - started)
    if width:
        return held_out, ahead
    low, high = truth.min(), truth.max()  # what was never seen is not to be believed
    return held_out.clip(low, high), ahead.clip(low, high)


def _folds(goal: Goal, truth: np.ndarray, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    from sklearn.model_selection import KFold, StratifiedKFold  # late: heavy

    count = 5 if len(truth) <= 20_000 else 3
    kind = KFold if goal.form == "number" else StratifiedKFold
    yield from kind(count, shuffle=True, random_state=seed).split(truth, truth)


def _predict(model: Any, rows: Any, width: tuple[int, ...]) -> np.ndarray:
    if not width:
        return np.asarray(model.predict(rows), dtype=float)
    values = np.zeros((rows.shape[0], *width))
    values[:, model.classes_] = model.predict_proba(rows)
    return values
