"""What the values of single options stand for; an error names the option as it was written."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_mlebench._units import parse_duration, show_duration
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.plugin import options
from pytest_mlebench.plugin.selection import registry
from pytest_mlebench.reports.gates import Gate, parse_fail_under
from pytest_mlebench.reports.spending_gate import SpendingGate, parse_fail_over

LEAST_GRACE = 5.0  # seconds: several heartbeats fit into it


def run_path(config: pytest.Config) -> Path:
    """Return the folder of the run that the options name, or of a new one."""
    name: str | None = _plainly(config, "run")
    runs: str = _plainly(config, "runs-dir")
    folder = folder_of(config, runs)
    if folder is None or (folder.exists() and not folder.is_dir()):
        label = options.spelled(config, "runs-dir")
        raise ConfigError(f"{label} must be a folder, given: {runs}")
    if name is None:
        return _new_run(folder, _plainly(config, "agent"))
    if "/" in name or name.startswith("."):
        label = options.spelled(config, "run")
        raise ConfigError(f"{label} must be a plain name, given: {name!r}")
    return folder / name


def folder_of(config: pytest.Config, name: str | None) -> Path | None:
    """Return a path that an option names; None without one."""
    if name is None:
        return None
    return plain_path(config.invocation_params.dir / Path(name).expanduser())


def plain_path(path: Path) -> Path:
    """Refuse a path that no report, record or log could show."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        shown = os.fsencode(path).decode(errors="backslashreplace")
        raise ConfigError(f"the path {shown} is not valid UTF-8: choose another folder") from None
    return path


def report_path(config: pytest.Config, name: str, label: str) -> Path:
    """Return where a report goes."""
    from pytest_mlebench.reports.report import check_suffix  # late on purpose: only if asked for

    return check_suffix(folder_of(config, name) or Path(name), label)


def baseline(config: pytest.Config, name: str | None) -> Path | None:
    """Return a report or a run to compare with, once it has been read."""
    path = folder_of(config, name)
    if path is not None:
        from pytest_mlebench.reports.report import Report

        Report.load([path], registry(config))  # what cannot be read ends here, not after a day
    return path


def require_hosts(path: Path | None) -> None:
    """Refuse a file of hosts that cannot be read."""
    from pytest_mlebench.machines.hosts_file import read_hosts  # late on purpose: only with hosts

    if path is not None:
        read_hosts(path)


def fail_under(config: pytest.Config, value: str, known: Sequence[str], label: str) -> Gate:
    """Return a bar, as it was given."""
    gate = parse_fail_under(value, known, label)
    return replace(gate, given=options.written(config, "fail-under", value))


def fail_over(config: pytest.Config, value: str, label: str) -> SpendingGate | None:
    """Return a bar for what models cost, as it was given."""
    gate = parse_fail_over(value, label)
    return gate and replace(gate, given=options.written(config, "fail-over", value))


def gpu_hour_usd(value: str, label: str) -> float | None:
    """Return a price in dollars."""
    try:
        price = float(value)
    except ValueError:
        price = -1.0
    if not 0 <= price < math.inf:
        raise ConfigError(f"{label} must be a price in dollars, given: {value}")
    return price


def grace(value: str, label: str) -> float:
    """Return how long an attempt outlives its connection, in seconds."""
    seconds = parse_duration(value, label)
    if seconds < LEAST_GRACE:
        least = show_duration(LEAST_GRACE)
        raise ConfigError(f"{label} must be {least} or more, given: {value}")
    return seconds


def snapshot_every(value: str, label: str) -> float | None:
    """Return the seconds between snapshots; None for none."""
    from pytest_mlebench.sandbox.snapshots import parse_every  # late on purpose: only if asked for

    return parse_every(value, label)


def _plainly(config: pytest.Config, name: str) -> Any:
    try:
        return options.given(config, name)
    except pytest.UsageError as error:  # an empty value
        raise ConfigError(str(error)) from None


def _new_run(folder: Path, agent: str) -> Path:
    """Return a folder of a name that no other run has: date, time and agent."""
    letters = "".join(c if c.isalnum() else "-" for c in Path(agent).name)
    stem = f"{time.strftime('%Y%m%d-%H%M%S')}-{letters[:40].strip('-')}"
    numbers = ("", *(f"-{number}" for number in range(2, 1000)))
    return next(path for number in numbers if not (path := folder / f"{stem}{number}").exists())
