"""The limits an agent runs under, as data; and how people write them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from pytest_mlebench.errors import ConfigError

_DURATION = re.compile(r"(\d+(?:\.\d+)?)([dhms])")
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?i?)B?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


@dataclass(frozen=True)
class Limits:
    """What one attempt may use; the defaults are the standard limits of MLE-bench."""

    time_seconds: float = 86_400
    cpus: float = 36
    memory_bytes: int = 440 * 10**9
    gpus: int = 1
    shm_bytes: int = 64 * 10**9
    gpu_memory_bytes: int = 24 * 10**9
    pids: int = 16_384
    open_files: int = 1_048_576
    disk_bytes: int = 4095 * 2**30  # what the agent may write, wherever it writes
    log_bytes: int = 1 * 10**9
    submission_bytes: int = 10 * 10**9
    artefact_bytes: int = 10 * 10**9
    artefact_files: int = 10_000

    @classmethod
    def from_table(cls, table: Mapping[str, object], *, where: str, base: Limits) -> Limits:
        """Return *base* changed by a table such as ``{time = "12h", memory = "64GB"}``."""
        changes: dict[str, object] = {}
        for key, value in table.items():
            if key not in _KEYS:
                from pytest_mlebench.errors import UnknownName

                raise UnknownName(f"limit in {where}:", key, _KEYS)
            field, parse = _KEYS[key]
            changes[field] = parse(value, f"{where}: {key}")
        return replace(base, **changes)  # type: ignore[arg-type]  # parsed just above

    def deviations(self, standard: Limits | None = None) -> dict[str, tuple[str, str]]:
        """Return ``{limit: (is, standard)}`` for every limit that is not the standard one."""
        other = STANDARD if standard is None else standard
        mine, theirs = self.describe(), other.describe()
        return {
            key: (mine[key], theirs[key])
            for key, (field, _) in _KEYS.items()
            if getattr(self, field) != getattr(other, field)
        }

    def describe(self) -> dict[str, str]:
        """Return every limit as people write it."""
        return {key: _SHOW[parse](getattr(self, field)) for key, (field, parse) in _KEYS.items()}

    def to_dict(self) -> dict[str, float]:
        """Return the limits as plain numbers, for a record."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def parse_duration(value: object, option: str) -> float:
    """Return the seconds in ``24h``, ``1h30m``, ``90s`` or ``90``."""
    text = str(value).strip().lower()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        seconds = float(text)
    elif text and re.fullmatch(rf"({_DURATION.pattern})+", text):
        seconds = sum(float(n) * _SECONDS[unit] for n, unit in _DURATION.findall(text))
    else:
        raise ConfigError(f"{option} must be a duration such as 24h, 90m or 30s, given: {value}")
    if seconds <= 0:
        raise ConfigError(f"{option} must be longer than nothing, given: {value}")
    return seconds


def parse_size(value: object, option: str) -> int:
    """Return the bytes in ``440GB``, ``16GiB`` or ``1000``."""
    match = _SIZE.fullmatch(str(value).strip())
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
    """Return ``440GB`` or ``1.5MB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.4g}{unit}"
        size /= 1000
    return f"{size:.4g}TB"


def show_count(number: float) -> str:
    """Return a plain number."""
    return f"{number:g}"


def host_cpus() -> int:
    """Return how many CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def host_memory() -> int:
    """Return the bytes of memory of this host."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def demo_limits() -> Limits:
    """Return the limits of the demo split: minutes, what the host has, no GPU."""
    memory = host_memory()
    return replace(
        STANDARD,
        time_seconds=600,
        cpus=host_cpus(),
        memory_bytes=memory,
        gpus=0,
        shm_bytes=min(STANDARD.shm_bytes, memory // 2),
        disk_bytes=20 * 10**9,
        log_bytes=10**8,
        submission_bytes=10**9,
        artefact_bytes=10**9,
    )


STANDARD = Limits()

_KEYS = {
    "time": ("time_seconds", parse_duration),
    "cpus": ("cpus", parse_number),
    "memory": ("memory_bytes", parse_size),
    "gpus": ("gpus", parse_count),
    "shm_size": ("shm_bytes", parse_size),
    "gpu_memory": ("gpu_memory_bytes", parse_size),
    "pids": ("pids", parse_count),
    "open_files": ("open_files", parse_count),
    "disk": ("disk_bytes", parse_size),
    "log_size": ("log_bytes", parse_size),
    "submission_size": ("submission_bytes", parse_size),
    "artefact_size": ("artefact_bytes", parse_size),
    "artefact_files": ("artefact_files", parse_count),
}
_SHOW = {
    parse_duration: show_duration,
    parse_size: show_size,
    parse_number: show_count,
    parse_count: show_count,
}
