"""Graders as one writes them with pandas and scikit-learn, row by row where the metric is by row.

They are what ours must not be slower than. Each gets the two files and returns the score; nothing
is checked, and a submission has the rows of the answers in some order.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

Grader = Callable[[Path, Path], float]
Box = tuple[float, ...]


def read_both(submission: Path, answers: Path, keys: list[str]) -> tuple[pd.DataFrame, ...]:
    """Return the rows of both files in the same order."""
    given = pd.read_csv(submission, keep_default_na=False, dtype=str)
    truth = pd.read_csv(answers, keep_default_na=False, dtype=str)
    return (
        given.set_index(keys).loc[pd.MultiIndex.from_frame(truth[keys])].reset_index()
        if len(keys) > 1
        else given.set_index(keys[0]).loc[truth[keys[0]]].reset_index(),
        truth,
    )


def label_f1(key: str, target: str) -> Grader:
    """Return the F1 of all labels of all rows, but for labels that are never true."""

    def grade(submission: Path, answers: Path) -> float:
        given, truth = read_both(submission, answers, [key])
        known = {label for true in truth[target] for label in true.split()}
        hits = total = 0
        for mine, true in zip(given[target], truth[target], strict=True):
            found, wanted = set(mine.split()) & known, set(true.split())
            hits += len(found & wanted)
            total += len(found) + len(wanted)
        return 2 * hits / total

    return grade


def precision_at(k: int, key: str, target: str) -> Grader:
    """Return the mean average precision of the first k items."""

    def grade(submission: Path, answers: Path) -> float:
        given, truth = read_both(submission, answers, [key])
        scores = []
        for mine, true in zip(given[target], truth[target], strict=True):
            wanted = set(true.split())
            if not wanted:
                continue
            seen: set[str] = set()
            score = 0.0
            for place, item in enumerate(mine.split()[:k], 1):
                if item in wanted and item not in seen:
                    seen.add(item)
                    score += len(seen) / place
            scores.append(score / min(len(wanted), k))
        return float(np.mean(scores))

    return grade


def letters(submission: Path, answers: Path) -> float:
    """Return the mean edit distance of sentences."""
    from rapidfuzz.distance import Levenshtein

    given, truth = read_both(submission, answers, ["id"])
    pairs = zip(truth["sentence"], given["sentence"], strict=True)
    return float(np.mean([Levenshtein.distance(true, mine) for true, mine in pairs]))


def gestures(submission: Path, answers: Path) -> float:
    """Return the total edit distance for each true gesture."""
    from rapidfuzz.distance import Levenshtein

    given, truth = read_both(submission, answers, ["Id"])
    total = count = 0
    for mine, true in zip(given["Sequence"], truth["Sequence"], strict=True):
        wanted = [int(part) for part in true.split()]
        total += Levenshtein.distance(wanted, [int(part) for part in mine.split()])
        count += len(wanted)
    return total / count


def characters(submission: Path, answers: Path) -> float:
    """Return the F1 of points in boxes of the same character."""
    given, truth = read_both(submission, answers, ["image_id"])
    hits = points = boxes = 0
    for mine, true in zip(given["labels"], truth["labels"], strict=True):
        free = _groups(mine, 3)
        wanted = _groups(true, 5)
        points += len(free)
        boxes += len(wanted)
        for name, x, y, width, height in wanted:
            for place, (label, left, top) in enumerate(free):
                inside = float(x) < float(left) < float(x) + float(width)
                if label == name and inside and float(y) < float(top) < float(y) + float(height):
                    hits += 1
                    del free[place]
                    break
    precision, recall = hits / points, hits / boxes
    return 2 * precision * recall / (precision + recall) if hits else 0.0


def opacities(submission: Path, answers: Path) -> float:
    """Return the mean average precision of boxes over their classes."""
    from sklearn.metrics import average_precision_score

    given, truth = read_both(submission, answers, ["id"])
    hits: dict[str, list[int]] = {}
    confidences: dict[str, list[float]] = {}
    rows = [
        (_groups(mine, 6), _groups(true, 6))
        for mine, true in zip(given["PredictionString"], truth["PredictionString"], strict=True)
    ]
    for name in sorted({box[0] for _, true in rows for box in true}):
        hits[name], confidences[name] = [], []
        for mine, true in rows:
            wanted = [tuple(map(float, box[2:])) for box in true if box[0] == name]
            own = sorted((box for box in mine if box[0] == name), key=lambda box: -float(box[1]))
            if not wanted and not own:
                hits[name].append(0)
                confidences[name].append(0.0)
            for box in own:
                shares = [_iou(tuple(map(float, box[2:])), each) for each in wanted]
                best = int(np.argmax(shares)) if shares else -1
                is_hit = best >= 0 and shares[best] > 0.5
                hits[name].append(int(is_hit))
                confidences[name].append(float(box[1]))
                if is_hit:
                    del wanted[best]
            hits[name] += [1] * len(wanted)
            confidences[name] += [0.0] * len(wanted)
    return float(np.mean([average_precision_score(hits[name], confidences[name]) for name in hits]))


def organs(submission: Path, answers: Path) -> float:
    """Return the mean Dice and Hausdorff distance, each mask as a picture."""
    from scipy.spatial import cKDTree

    given, truth = read_both(submission, answers, ["id", "class"])
    shares, scans = [], {}
    for (_, true), (_, mine) in zip(truth.iterrows(), given.iterrows(), strict=True):
        shape = int(float(true["image_width"])), int(float(true["image_height"]))
        wanted, found = _mask(true["predicted"], shape), _mask(mine["predicted"], shape)
        total = int(wanted.sum() + found.sum())
        if total:
            shares.append(2 * int((wanted & found).sum()) / total)
        scan, number = true["id"].split("_slice_")
        scans.setdefault(scan, {}).setdefault(number, []).append((wanted, found))
    distances = []
    for slices in scans.values():
        sides = [
            np.array([np.any([pair[side] for pair in slices[n]], axis=0) for n in sorted(slices)])
            for side in (0, 1)
        ]
        counts = [int(side.sum()) for side in sides]
        if not any(counts):
            continue
        if not all(counts) or counts[1] > 10 * counts[0]:
            distances.append(1.0)
            continue
        places = [np.argwhere(side) / np.array(side.shape) for side in sides]
        trees = [cKDTree(each) for each in places]
        farthest = max(trees[0].query(places[1])[0].max(), trees[1].query(places[0])[0].max())
        distances.append(farthest / np.sqrt(3))
    return float(0.4 * np.mean(shares) + 0.6 * (1 - np.mean(distances)))


def _groups(text: str, size: int) -> list[list[str]]:
    words = text.split()
    return [words[start : start + size] for start in range(0, len(words), size)]


def _iou(some: Box, other: Box) -> float:
    width = min(some[2], other[2]) - max(some[0], other[0])
    height = min(some[3], other[3]) - max(some[1], other[1])
    common = max(0.0, width) * max(0.0, height)
    union = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (some, other)) - common
    return common / union if union > 0 else 0.0


def _mask(text: str, shape: tuple[int, int]) -> np.ndarray:
    flat = np.zeros(shape[0] * shape[1], dtype=bool)
    numbers = list(map(int, text.split()))
    for start, length in zip(numbers[::2], numbers[1::2], strict=True):
        flat[start - 1 : start - 1 + length] = True
    return flat.reshape(shape)


BY_HAND: dict[str, Grader] = {
    "billion-word-imputation": letters,
    "facebook-recruiting-iii-keyword-extraction": label_f1("Id", "Tags"),
    "h-and-m-personalized-fashion-recommendations": precision_at(12, "customer_id", "prediction"),
    "hotel-id-2021-fgvc8": precision_at(5, "image", "hotel_id"),
    "imet-2020-fgvc7": label_f1("id", "attribute_ids"),
    "kuzushiji-recognition": characters,
    "multi-modal-gesture-recognition": gestures,
    "siim-covid19-detection": opacities,
    "uw-madison-gi-tract-image-segmentation": organs,
}
