"""Figures of a record or a report, read strictly; a wrong one is a ValueError."""

from __future__ import annotations

import math
from collections.abc import Mapping


def whole(value: object, key: str) -> int:
    """Return a count."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{key} must be a whole number, zero or more, given: {value!r}")
    return value


def amount(value: object, key: str) -> float:
    """Return an amount of dollars or seconds."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ValueError(f"{key} must be a number, zero or more, given: {value!r}")
    return float(value)


def tally(value: object, key: str) -> dict[str, int]:
    """Return counts by name."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{key} must be an object, given: {type(value).__name__}")
    return {str(name): whole(count, f"{key}: {name}") for name, count in value.items()}
