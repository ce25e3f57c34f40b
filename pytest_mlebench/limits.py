"""The limits an agent runs under, as data; and how people write them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache

from pytest_mlebench._units import (
    parse_count,
    parse_duration,
    parse_number,
    parse_size,
    show_count,
    show_duration,
    show_size,
)


@dataclass(frozen=True)
class Limits:
    """What one attempt may use; the defaults are the standard limits of MLE-bench."""

    time_seconds: float = 86_400  # wall clock
    cpus: float = 36  # processors
    memory_bytes: int = 440 * 10**9  # of all processes together, without swap
    gpus: int = 1  # of the leased ones
    shm_bytes: int = 64 * 10**9  # in /dev/shm
    gpu_memory_bytes: int = 24 * 10**9  # that each GPU must have
    pids: int = 16_384  # processes and threads at a time
    open_files: int = 1_048_576  # at a time, of each process
    disk_bytes: int = 4095 * 2**30  # what the agent may write, wherever it writes
    files: int = 10_000_000  # and into how many files and folders
    log_bytes: int = 1 * 10**9  # kept of the output
    submission_bytes: int = 10 * 10**9  # the largest submission that is collected
    artefact_bytes: int = 10 * 10**9  # collected of logs and code
    artefact_files: int = 10_000  # and in how many files

    @classmethod
    def from_table(cls, table: Mapping[str, object], *, where: str, base: Limits) -> Limits:
        """Return *base* changed by a table such as ``{time = "12h", memory = "64GB"}``."""
        changes: dict[str, object] = {}
        if not table:
            return base
        for key, value in table.items():
            if key not in _KEYS:
                from pytest_mlebench.errors import UnknownName

                raise UnknownName(f"limit in {where}:", key, _KEYS)
            field, parse = _KEYS[key]
            changes[field] = parse(value, f"{where}: {key}")
        return replace(base, **changes)  # type: ignore[arg-type]  # parsed just above

    def with_limit(self, key: str, value: object, option: str) -> Limits:
        """Return the limits with one of them changed by an option."""
        field, parse = _KEYS[key]
        return replace(self, **{field: parse(value, option)})  # type: ignore[arg-type]  # parsed

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
        return dict(_described(self))

    def to_dict(self) -> dict[str, float]:
        """Return the limits as plain numbers, for a record."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, float]) -> Limits:
        """Return what ``to_dict`` wrote; keys of later versions are passed over."""
        known = {field.name: data[field.name] for field in fields(cls) if field.name in data}
        return cls(**known)  # type: ignore[arg-type]  # the same numbers as were written


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
    "files": ("files", parse_count),
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


@lru_cache(maxsize=64)  # thousands of attempts have the same few
def _described(limits: Limits) -> Mapping[str, str]:
    return {key: _SHOW[parse](getattr(limits, field)) for key, (field, parse) in _KEYS.items()}
