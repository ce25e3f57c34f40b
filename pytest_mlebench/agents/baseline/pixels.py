"""The pixels of pictures as rows: what surrounds each of them, and models that learn from that."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import ndimage

CHUNK = 500_000  # pixels that are predicted at a time
MAX_PIXELS_LEARNT = 300_000
PIXELS_PER_SECOND = 5_000  # that a model can surely learn and predict
_SCALES = (1.0, 2.0, 4.0, 8.0)


def surroundings(pixels: np.ndarray) -> np.ndarray:
    """Return for each pixel (height, width, 3) its colour, place, and what is around it."""
    grey = pixels.mean(axis=2)
    height, width = grey.shape
    rows, columns = np.mgrid[0:height, 0:width]
    layers = [grey, pixels[..., 0] - grey, pixels[..., 2] - grey]
    layers += [rows / height, columns / width]
    layers += [np.full_like(grey, grey.mean()), np.full_like(grey, grey.std())]
    for scale in _SCALES:
        blurred = ndimage.gaussian_filter(grey, scale)
        layers += [blurred, ndimage.gaussian_gradient_magnitude(grey, scale)]
        layers += [np.sqrt(np.maximum(ndimage.gaussian_filter(grey**2, scale) - blurred**2, 0))]
    return _as_rows(layers)


def neighbourhood(grey: np.ndarray) -> np.ndarray:
    """Return for each pixel (height, width) its neighbours, and what is bright or dark around."""
    around = np.pad(grey, 2, mode="edge")
    height, width = grey.shape
    layers = [around[y : y + height, x : x + width] for y in range(5) for x in range(5)]
    layers += [ndimage.median_filter(grey, size) for size in (3, 7)]
    layers += [ndimage.uniform_filter(grey, size) for size in (9, 31)]
    for size in (7, 25):
        layers += [ndimage.maximum_filter(grey, size), ndimage.minimum_filter(grey, size)]
    background = ndimage.uniform_filter(ndimage.maximum_filter(grey, 15), 15)
    layers += [background, grey - background]
    layers += [np.full_like(grey, np.percentile(grey, share)) for share in (5, 50, 95)]
    return _as_rows(layers)


def pixels_to_learn(seconds: float) -> int:
    """Return how many pixels there is time for."""
    return int(np.clip(seconds * PIXELS_PER_SECOND, 1, MAX_PIXELS_LEARNT))


def fit_classifier(rows: np.ndarray, truth: np.ndarray, seed: int, trees: int) -> Any:
    """Return a model of whether a pixel is part of something."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # late: heavy

    model = HistGradientBoostingClassifier(max_iter=trees, early_stopping=False, random_state=seed)
    return model.fit(rows, truth)


def fit_regressor(rows: np.ndarray, truth: np.ndarray, seed: int, trees: int) -> Any:
    """Return a model of how bright a pixel is to be."""
    from sklearn.ensemble import HistGradientBoostingRegressor  # late: heavy

    model = HistGradientBoostingRegressor(max_iter=trees, early_stopping=False, random_state=seed)
    return model.fit(rows, truth)


def predict(model: Any, rows: np.ndarray) -> np.ndarray:
    """Return a model's values, or its probabilities, piece by piece."""
    pieces = np.array_split(rows, len(rows) // CHUNK + 1)
    if hasattr(model, "predict_proba"):
        return np.concatenate([model.predict_proba(piece)[:, -1] for piece in pieces])
    return np.concatenate([model.predict(piece) for piece in pieces])


def _as_rows(layers: list[np.ndarray]) -> np.ndarray:
    return np.stack([layer.ravel() for layer in layers], axis=1).astype(np.float32)
