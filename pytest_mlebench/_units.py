"""Durations, sizes and counts: how people write them, and how they are shown to people."""

from __future__ import annotations

import math
import re

from pytest_mlebench.errors import ConfigError

_NUMBER = re.compile(r"\d+(\.\d+)?")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([dhms])")
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?i?)B?", re.IGNORECASE)
_USD_DIGITS = 9  # after the point: less than what any token costs
_WRITTEN_OUT = 1e15  # from here on a float has no digits after the point
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def parse_duration(value: object, option: str) -> float:
    """Return the seconds in ``24h``, ``1h30m`` or ``90s``."""
    text = str(value).strip().lower()
    if _NUMBER.fullmatch(text):
        raise ConfigError(f"{option} needs a unit: {text}h or {text}s?")
    if text and re.fullmatch(rf"({_DURATION.pattern})+", text):
        seconds = sum(float(n) * _SECONDS[unit] for n, unit in _DURATION.findall(text))
    else:
        raise ConfigError(f"{option} must be a duration such as 24h, 90m or 30s, given: {value}")
    if seconds <= 0:
        raise ConfigError(f"{option} must be longer than nothing, given: {value}")
    return seconds


def parse_size(value: object, option: str) -> int:
    """Return the bytes in ``440GB``, ``16GiB`` or ``1000B``."""
    if _NUMBER.fullmatch(text := str(value).strip()):
        raise ConfigError(f"{option} needs a unit: {text}GB or {text}MB?")
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ConfigError(f"{option} must be a size such as 440GB or 16GiB, given: {value}")
    number, unit = match[1], match[2].lower()
    size = int(float(number) * (1024 if unit.endswith("i") else 1000) ** _POWERS[unit.rstrip("i")])
    if size <= 0:
        raise ConfigError(f"{option} must be larger than nothing, given: {value}")
    return size


def parse_number(value: object, option: str) -> float:
    """Return a positive number of CPUs."""
    try:
        number = float(str(value))
    except ValueError:
        number = 0.0
    if not 0 < number < 1e6:
        raise ConfigError(f"{option} must be a positive number, given: {value}")
    return int(number) if number.is_integer() else number


def parse_count(value: object, option: str) -> int:
    """Return a count, zero included."""
    text = str(value).strip()
    if isinstance(value, bool) or not text.isdecimal():
        raise ConfigError(f"{option} must be a whole number, zero or more, given: {value}")
    return int(text)


def show_duration(seconds: float) -> str:
    """Return ``24h``, ``1h30m`` or ``12s``."""
    if seconds < 60:
        return f"{seconds:.3g}s"
    rest, parts = round(seconds), ""
    for unit in "hms":
        count, rest = divmod(rest, _SECONDS[unit])
        if count:
            parts += f"{count}{unit}"
    return parts


def show_size(size: float) -> str:
    """Return ``440GB`` or ``1.5MB``, to four digits."""
    for unit in ("B", "kB", "MB", "GB"):
        if float(f"{size:.4g}") < 1000:
            return f"{size:.4g}{unit}"
        size /= 1000
    return f"{float(f'{size:.4g}'):.15g}TB"


def show_size_below(size: int) -> str:
    """Return a size as people write it in an option, never larger than *size*: ``23GB``."""
    unit, name = (10**9, "GB") if size >= 10**10 else (10**6, "MB")
    return f"{size // unit}{name}"


def show_count(number: float) -> str:
    """Return a plain number."""
    return str(int(number)) if number == int(number) else f"{number:g}"


def show_usd(usd: float) -> str:
    """Return ``$214.10``; of less than ten cents two digits that count."""
    if usd and usd < 0.1:
        return f"${usd:.{min(1 - math.floor(math.log10(usd)), _USD_DIGITS)}f}"
    return f"${usd:,.2f}"


def show_tokens(tokens: int) -> str:
    """Return ``31.2 M tokens``, to three digits."""
    if tokens < 1000:
        return f"{tokens} {'token' if tokens == 1 else 'tokens'}"
    size: float = tokens
    for unit in ("k", "M"):
        size /= 1000
        if float(f"{size:.3g}") < 1000:
            return f"{float(f'{size:.3g}'):g} {unit} tokens"
    return f"{float(f'{size / 1000:.3g}'):.15g} G tokens"


def show_score(score: float) -> str:
    """Return a score to six decimals at most: ``0.16201``, ``3825810``, never ``3.82581e+06``."""
    if 0 < abs(score) < 1e-4 or abs(score) >= _WRITTEN_OUT:
        return f"{score:.6g}"
    text = f"{score:.6f}"
    return text.rstrip("0").rstrip(".")
