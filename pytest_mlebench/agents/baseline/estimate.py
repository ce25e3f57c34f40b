"""Estimates: what a model says about rows it has not seen, how good that is, and blends of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from task import Form

HALVES = 20  # of the rows, drawn at random, to find the weights of a blend
STEPS = 15  # of the greedy search in each half
MAX_ROWS = 10_000  # in a half: more would only take longer
MAX_CELLS, MIN_ROWS = 1_000_000, 1_000  # in a half: fewer rows where each has many values
_TEMPERATURES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.15, 1.3, 1.6, 2.0, 3.0)
_QUANTITIES: tuple[Form, ...] = ("number", "set", "members", "shares")
_SMALL = 1e-6

Loss = Callable[[np.ndarray, np.ndarray], float]


@dataclass(frozen=True)
class Estimate:
    """Values for the training rows, each by a model that had not seen it, and for the test rows.

    A number has one value a row, a class one probability for each class; where several classes
    may be right, or shares are asked for, there is a number for each.
    """

    name: str
    held_out: np.ndarray
    test: np.ndarray
    loss: float


def loss_of(form: Form) -> Loss:
    """Return what is to be small for a form of prediction."""
    if form in _QUANTITIES:
        return _rmse
    return _mistakes if form == "label" else _log_loss


def estimate(
    name: str, truth: np.ndarray, held_out: np.ndarray, test: np.ndarray, form: Form
) -> Estimate:
    """Judge the predictions of a model; probabilities are first made as bold as they deserve."""
    if form not in _QUANTITIES:
        by_temperature = {t: _log_loss(truth, _temper(held_out, t)) for t in _TEMPERATURES}
        best = min(by_temperature, key=by_temperature.__getitem__)
        held_out, test = _temper(held_out, best), _temper(test, best)
    return Estimate(name, held_out, test, loss_of(form)(truth, held_out))


def blend(estimates: Sequence[Estimate], truth: np.ndarray, form: Form, seed: int) -> Estimate:
    """Return a weighted mean; the weights are those that did well on many halves of the rows."""
    random = np.random.default_rng(seed)
    width = max(1, estimates[0].held_out[0].size)
    size = min(len(truth) // 2, MAX_ROWS, max(MIN_ROWS, MAX_CELLS // width))
    halves = (random.choice(len(truth), size, replace=False) for _ in range(HALVES))
    weights = np.mean([_greedy_weights(estimates, truth, form, rows) for rows in halves], axis=0)
    held_out = sum(w * one.held_out for w, one in zip(weights, estimates, strict=True))
    return Estimate(
        name=_recipe(estimates, weights),
        held_out=held_out,
        test=sum(w * one.test for w, one in zip(weights, estimates, strict=True)),
        loss=loss_of(form)(truth, held_out),
    )


def _greedy_weights(
    estimates: Sequence[Estimate], truth: np.ndarray, form: Form, rows: np.ndarray
) -> np.ndarray:
    """Begin with the best two and add, each time, the estimate that helps the mean the most."""
    loss, truth = loss_of(form), truth[rows]
    values = [one.held_out[rows] for one in estimates]
    chosen = list(np.argsort([loss(truth, one) for one in values])[:2])
    total = sum(values[i] for i in chosen)
    best, size = loss(truth, total / len(chosen)), len(chosen)
    while len(chosen) < STEPS:
        losses = [loss(truth, (total + one) / (len(chosen) + 1)) for one in values]
        chosen.append(int(np.argmin(losses)))
        total = total + values[chosen[-1]]
        if min(losses) < best:
            best, size = min(losses), len(chosen)
    return np.bincount(chosen[:size], minlength=len(estimates)) / size


def _recipe(estimates: Sequence[Estimate], weights: np.ndarray) -> str:
    shares = sorted(zip(weights, (one.name for one in estimates), strict=True), reverse=True)
    return ", ".join(f"{share:.0%} {name}" for share, name in shares if share >= 0.01)


def _temper(probabilities: np.ndarray, temperature: float) -> np.ndarray:
    powers = np.clip(probabilities, _SMALL, None) ** (1 / temperature)
    tempered: np.ndarray = powers / powers.sum(axis=1, keepdims=True)
    return tempered


def _rmse(truth: np.ndarray, values: np.ndarray) -> float:
    return float(np.sqrt(np.mean((truth - values) ** 2)))


def _log_loss(truth: np.ndarray, values: np.ndarray) -> float:
    right = values[np.arange(len(truth)), truth]
    return float(-np.log(np.clip(right, _SMALL, 1)).mean())


def _mistakes(truth: np.ndarray, values: np.ndarray) -> float:
    """Return the rate of mistakes; among equals, the surer estimate is the better one."""
    return float((values.argmax(axis=1) != truth).mean()) + 0.02 * _log_loss(truth, values)
