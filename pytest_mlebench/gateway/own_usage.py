"""What an agent says itself that it spent: ``usage.json`` in its logs, read as hostile data.

    {"input_tokens": 120000, "output_tokens": 8000, "usd": 1.25, "steps": 40,
     "models": {"gpt-5": {"input_tokens": 120000, "output_tokens": 8000, "usd": 1.25}}}

Every key may be missing; keys that are not known are ignored. Where the gateway has figures, they
count, and ``difference`` says how far the agent's own are from them.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pytest_mlebench.gateway.spending import Spending

FILE = "usage.json"  # in LOGS_DIR, hence in the artefacts' logs
MAX_BYTES = 1 << 20
MAX_MODELS = 100
MAX_NAME_LENGTH = 200
MAX_COUNT = 10**15
MAX_USD = 10**9
TOLERANCE = 0.01  # up to which two figures count as the same

_NAME = re.compile(r"[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")


class BadUsage(ValueError):
    """Say in one sentence why an agent's own figures cannot be used."""


@dataclass(frozen=True)
class OwnFigures:
    """Some figures of an agent's own; None where it does not say."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    usd: float | None = None

    @property
    def tokens(self) -> int | None:
        """Return input and output together, if both are there."""
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True)
class OwnUsage(OwnFigures):
    """What an agent says of a whole attempt."""

    steps: int | None = None
    models: Mapping[str, OwnFigures] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for a record."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> OwnUsage:
        """Return the usage that ``to_dict`` wrote; raise BadUsage if it is anything else."""
        return _usage(data)


def read_own_usage(folder: Path) -> OwnUsage | None:
    """Return what the agent left in a folder of collected logs; raise BadUsage if it is nonsense.

    The file is opened without following a link, must be a regular one, and is bounded in size.
    """
    try:
        descriptor = os.open(folder / FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise BadUsage(f"{FILE} cannot be opened: {(problem.strerror or '?').lower()}") from None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise BadUsage(f"{FILE} is not a regular file")
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise BadUsage(f"{FILE} has more than {MAX_BYTES} bytes")
    return parse_own_usage(content)


def parse_own_usage(content: bytes) -> OwnUsage:
    """Return what the text of a ``usage.json`` says."""
    try:
        table = json.loads(content)
    except (ValueError, RecursionError):
        raise BadUsage(f"{FILE} is not valid JSON") from None
    if not isinstance(table, dict):
        raise BadUsage(f"{FILE} must be an object")
    return _usage(table)


def _usage(table: Mapping[str, Any]) -> OwnUsage:
    models = table.get("models")
    if models is not None and not isinstance(models, dict):
        raise BadUsage(f"{FILE}: models must be an object")
    if models and len(models) > MAX_MODELS:
        raise BadUsage(f"{FILE}: models has more than {MAX_MODELS} names")
    return OwnUsage(
        **_figures(table, ""),
        steps=_count(table, "steps", ""),
        models={_name(name): _model(name, one) for name, one in (models or {}).items()},
    )


def difference(spending: Spending, own: OwnUsage) -> str | None:
    """Return in words how the agent's figures differ from the gateway's; None if they agree."""
    usage = spending.usage
    pairs = (
        ("input tokens", usage.input_tokens, own.input_tokens),
        ("output tokens", usage.output_tokens, own.output_tokens),
        ("dollars", spending.usd, own.usd),
    )
    parts = [
        f"{theirs:.12g} {what} where the gateway counted {ours:.12g}"
        for what, ours, theirs in pairs
        if ours is not None and theirs is not None and not _agree(ours, theirs)
    ]
    return f"the agent reports {', '.join(parts)}" if parts else None


def _agree(ours: float, theirs: float) -> bool:
    return math.isclose(ours, theirs, rel_tol=TOLERANCE, abs_tol=1e-6)


def _model(name: str, table: object) -> OwnFigures:
    if not isinstance(table, dict):
        raise BadUsage(f"{FILE}: the figures of a model must be an object")
    return OwnFigures(**_figures(table, f"models: {_name(name)}: "))


def _figures(table: Mapping[str, Any], where: str) -> dict[str, Any]:
    return {
        "input_tokens": _count(table, "input_tokens", where),
        "output_tokens": _count(table, "output_tokens", where),
        "usd": _dollars(table, "usd", where),
    }


def _count(table: Mapping[str, Any], key: str, where: str) -> int | None:
    value = table.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_COUNT:
        raise BadUsage(f"{FILE}: {where}{key} must be a whole number from 0 to {MAX_COUNT}")
    return value


def _dollars(table: Mapping[str, Any], key: str, where: str) -> float | None:
    value = table.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_USD:
        raise BadUsage(f"{FILE}: {where}{key} must be a number of dollars from 0 to {MAX_USD}")
    return float(value)


def _name(name: str) -> str:
    if len(name) > MAX_NAME_LENGTH or not _NAME.fullmatch(name):
        raise BadUsage(f"{FILE}: the name of a model is empty, too long or not printable")
    return name
