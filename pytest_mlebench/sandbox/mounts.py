"""Folders of the host that an agent's file asks for: by explicit wish, and never the answers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pytest_mlebench.errors import ConfigError
from pytest_mlebench.sandbox import Job
from pytest_mlebench.sandbox.hidden import hidden_folders

_MOUNT = re.compile(r"(?P<source>.+?):(?P<target>/[^:]*)(?::(?P<mode>ro|rw))?")


@dataclass(frozen=True)
class Mount:
    """A folder or file of the host, and where the agent sees it."""

    source: Path
    target: str
    read_only: bool


def extra_mounts(job: Job) -> list[Mount]:
    """Return the mounts that a job's agent asks for, unless they would show the answers."""
    hidden = hidden_folders(job.hidden)
    return [_parse(job.agent.name, text, hidden) for text in job.agent.mounts]


def _parse(agent: str, text: str, hidden: Iterable[Path]) -> Mount:
    match = _MOUNT.fullmatch(text)
    if match is None:
        raise ConfigError(f"agent {agent!r}: mounts must be SOURCE:/TARGET[:ro], given: {text!r}")
    source = Path(match["source"]).resolve()
    for folder in sorted(hidden):
        if source.is_relative_to(folder) or folder.is_relative_to(source):
            raise ConfigError(
                f"agent {agent!r} must not mount {source}: the answers lie in {folder}"
            )
    return Mount(source, match["target"], match["mode"] == "ro")
