"""The exceptions of this package.

MlebenchError
├── ConfigError              a wrong option, file or name: the user's to fix, before anything runs
│   ├── ConfigErrors         several of them, found in one look
│   ├── HostTooSmall         limits that are more than the host of the attempts has
│   ├── WallMissing          --mle-require-walls, and a wall of the sandbox is not there
│   ├── UnknownName          no such competition, split, metric or agent; suggests near names
│   ├── CompetitionFileError a broken ``competition.toml`` or competition folder
│   └── AgentFileError       a broken ``agent.toml``, ``[tool.mlebench]`` table or ``config.yaml``
├── InvalidSubmission        the agent's fault: what it handed in cannot be graded
└── InfrastructureError      the benchmark's own fault: never counted as the agent's failure
    ├── PreparationError     the raw data cannot be prepared
    ├── DatasetError         the prepared data are missing, damaged or not verified
    ├── GraderError          a grader failed on a submission that it should have judged
    └── SandboxError         the sandbox was lost, refused to start or could not be cleaned up

Messages are lower-case sentences without a final period that show the value and the way out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

DOCS = "https://pytest-mlebench.github.io/pytest-mlebench"  # pages that a message leads to


class MlebenchError(Exception):
    """Anything this package raises on purpose."""

    page: ClassVar[str | None] = None  # of the documentation, where its way out is explained

    @property
    def see(self) -> str | None:
        """Return the address of the page that explains the way out, if there is one."""
        return None if self.page is None else page_address(self.page)


class ConfigError(MlebenchError):
    """Tell the user which option, file or name is wrong, and how to put it right."""


class ConfigErrors(ConfigError):
    """Several things that are wrong, none of them inside another one of this kind."""

    def __init__(self, errors: Iterable[ConfigError]) -> None:
        inner = (each.errors if isinstance(each, ConfigErrors) else (each,) for each in errors)
        self.errors: tuple[ConfigError, ...] = tuple(error for some in inner for error in some)
        super().__init__("\n".join(map(str, self.errors)))


class HostTooSmall(ConfigError):
    """Name a limit that is more than the host has."""

    page = "limits"


class WallMissing(ConfigError):
    """Name a wall that is required and not there."""

    page = "troubleshooting"


class UnknownName(ConfigError):
    """Name what does not exist and suggest what might have been meant."""

    def __init__(self, kind: str, name: str, known: Iterable[str], way_out: str = "") -> None:
        known = sorted(known)
        more = "" if near_names(name, known) else way_out  # a slip of the finger needs none
        super().__init__(f"unknown {kind} {name!r}{did_you_mean(name, known)}{more}")


class CompetitionFileError(ConfigError):
    """Name the file and the key of a competition that is not as it should be."""

    page = "competitions"


class AgentFileError(ConfigError):
    """Name the file and the key of an agent that is not as it should be."""

    page = "agents"


class InvalidSubmission(MlebenchError):
    """Say in one sentence why a submission cannot be graded."""


class InfrastructureError(MlebenchError):
    """The benchmark failed, not the agent."""

    page = "troubleshooting"


class PreparationError(InfrastructureError):
    """Name the competition and the raw file that could not be prepared."""

    page = "datasets"


class DatasetError(InfrastructureError):
    """Name the prepared file that is missing, damaged or not verified."""

    page = "datasets"


class GraderError(InfrastructureError):
    """A grader raised something that is not a verdict on the submission."""


class SandboxError(InfrastructureError):
    """The sandbox was lost or could not start."""


def page_address(page: str) -> str:
    """Return where a page of the documentation is."""
    return f"{DOCS}/{page}/"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``", did you mean 'x'?"`` for the names nearest to *name*, or list a few."""
    names = sorted(known)
    if near := near_names(name, names):
        return suggestion(near)
    if names and len(names) <= 12:
        return f" (known: {', '.join(names)})"
    return ""


def near_names(name: str, known: Iterable[str]) -> list[str]:
    """Return the names that *name* may be a slip for."""
    import difflib  # late on purpose: only ever needed on the way to an error

    return difflib.get_close_matches(name, sorted(known), n=3, cutoff=0.6)


def suggestion(names: Iterable[str]) -> str:
    """Return ``", did you mean 'x' or 'y'?"``, nothing without names."""
    listed = " or ".join(map(repr, names))
    return listed and f", did you mean {listed}?"
