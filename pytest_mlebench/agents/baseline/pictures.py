"""A picture as numbers: its size, colours, coarse layout, edges and texture."""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np

SIDE = 96  # pixels of the square on which features are measured
MAX_PIXELS = 100_000_000  # a larger picture is not decoded
ORIENTATIONS = 8
_QUANTILES = (5, 25, 50, 75, 95)
_NEIGHBOURS = ((-1, -1), (-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1))


def can_decode() -> bool:
    """Tell whether pillow is installed."""
    try:
        import PIL.Image  # noqa: F401  late on purpose: pillow comes with an extra
    except ImportError:
        return False
    return True


def picture_features(content: bytes) -> np.ndarray:
    """Return the numbers of an encoded picture, always as many."""
    pixels, (width, height) = decode(content, SIDE)
    size = (width, height, width / height, len(content) / (width * height))
    square = np.stack([resized(pixels[..., i], SIDE, SIDE) for i in range(3)], axis=2)
    return np.concatenate([np.log(size), pixel_features(square)])


def decode(content: bytes, side: int | None = None) -> tuple[np.ndarray, tuple[int, int]]:
    """Return pixels between 0 and 1 (height, width, 3) and the true width and height.

    With *side*, the picture may be smaller than it is, but not smaller than that if it can be.
    """
    from PIL import Image  # late on purpose: pillow comes with an extra

    with Image.open(io.BytesIO(content)) as image:
        size = image.size
        if size[0] * size[1] > MAX_PIXELS:
            raise ValueError(f"a picture of {size[0]} x {size[1]} pixels")
        if image.mode.startswith(("I", "F")):  # more than eight bits, of which many may be unused
            return np.repeat(_stretched(np.asarray(image, dtype=float))[..., None], 3, axis=2), size
        if side is not None:
            image.draft("RGB", (side, side))  # JPEG is decoded at a fraction of its size
            image.thumbnail((4 * side, 4 * side))
        return np.asarray(image.convert("RGB"), dtype=float) / 255, size


def resized(values: np.ndarray, height: int, width: int) -> np.ndarray:
    """Return one channel in another size: means where it shrinks, in between where it grows."""
    from PIL import Image  # late on purpose: pillow comes with an extra

    if values.shape == (height, width):
        return values
    shrinks = height * width < values.size
    method = Image.Resampling.BOX if shrinks else Image.Resampling.BILINEAR
    image = Image.fromarray(values.astype(np.float32)).resize((width, height), method)
    return np.asarray(image, dtype=float)


def pixel_features(pixels: np.ndarray) -> np.ndarray:
    """Return the numbers of a square (side, side, 3) with values between 0 and 1."""
    grey = pixels.mean(axis=2)
    half = _shrunk(grey, 2)
    parts = [
        *_colours(pixels),
        _shrunk(grey, SIDE // 8).ravel(),
        _shrunk(pixels, SIDE // 4).ravel(),
        *_edges(grey, cells=4),
        *_edges(half, cells=3),
        _pattern(grey),
        _pattern(half),
        _spectrum(grey),
    ]
    return np.concatenate(parts)


def _stretched(values: np.ndarray) -> np.ndarray:
    low, high = values.min(), values.max()
    stretched: np.ndarray = (values - low) / (high - low) if high > low else values * 0
    return stretched


def _shrunk(values: np.ndarray, factor: int) -> np.ndarray:
    """Return the means of squares."""
    rows, columns = values.shape[0] // factor, values.shape[1] // factor
    cut = values[: rows * factor, : columns * factor]
    shrunk: np.ndarray = cut.reshape(rows, factor, columns, factor, -1).mean(axis=(1, 3))
    return shrunk[..., 0] if values.ndim == 2 else shrunk


def _colours(pixels: np.ndarray) -> Iterator[np.ndarray]:
    """Yield moments and quantiles of each channel, how colourful it is, and common colours."""
    bright = pixels.max(axis=2)
    colourful = (bright - pixels.min(axis=2)) / (bright + 1e-6)
    channels = np.stack([*np.moveaxis(pixels, 2, 0), colourful]).reshape(4, -1)
    yield channels.mean(axis=1)
    yield channels.std(axis=1)
    yield np.percentile(channels, _QUANTILES, axis=1).ravel()
    codes = (pixels * 3.999).astype(int) @ (16, 4, 1)
    yield np.sqrt(np.bincount(codes.ravel(), minlength=64) / codes.size)
    differences = pixels - pixels.mean(axis=2, keepdims=True)
    hue = np.arctan2(differences[..., 1] - differences[..., 2], differences[..., 0])
    yield _histogram(hue, colourful, 12)


def _edges(grey: np.ndarray, cells: int) -> Iterator[np.ndarray]:
    """Yield how strong the edges of each direction are, in each cell and in all."""
    down, right = np.gradient(grey)
    strength = np.hypot(down, right)
    size = grey.shape[0] // cells
    kinds = ((np.arctan2(down, right) / np.pi % 1) * ORIENTATIONS).astype(int) % ORIENTATIONS
    layers = np.stack([strength * (kinds == kind) for kind in range(ORIENTATIONS)], axis=2)
    by_cell = np.sqrt(_shrunk(layers, size))
    yield (by_cell / (np.linalg.norm(by_cell, axis=2, keepdims=True) + 0.02)).ravel()
    yield by_cell.mean(axis=(0, 1))
    yield np.percentile(strength, (*_QUANTILES, 99))


def _pattern(grey: np.ndarray) -> np.ndarray:
    """Return how common each local pattern is: which of its eight neighbours a pixel exceeds.

    Patterns are counted by how many neighbours are brighter, and how often that changes around.
    """
    inner = grey[1:-1, 1:-1]
    rows, columns = inner.shape
    brighter = np.stack(
        [
            grey[1 + y : 1 + y + rows, 1 + x : 1 + x + columns] > inner + 0.005
            for y, x in _NEIGHBOURS
        ]
    )
    changes = (brighter != np.roll(brighter, 1, axis=0)).sum(axis=0)
    codes = np.where(changes <= 2, brighter.sum(axis=0), 9)
    return np.sqrt(np.bincount(codes.ravel(), minlength=10) / codes.size)


def _spectrum(grey: np.ndarray) -> np.ndarray:
    """Return the logarithm of the power at each scale, from coarse to fine."""
    power = np.abs(np.fft.fft2(grey - grey.mean())) ** 2
    frequencies = np.fft.fftfreq(grey.shape[0])
    distance = np.hypot(frequencies[:, None], frequencies[None, :])
    rings = np.minimum((distance * 24).astype(int), 11)
    sums = np.bincount(rings.ravel(), weights=power.ravel(), minlength=12)
    return np.log(sums / np.bincount(rings.ravel(), minlength=12) + 1e-6)


def _histogram(angles: np.ndarray, weights: np.ndarray, bins: int) -> np.ndarray:
    codes = ((angles / (2 * np.pi) % 1) * bins).astype(int) % bins
    found = np.bincount(codes.ravel(), weights=weights.ravel(), minlength=bins)
    return found / codes.size
