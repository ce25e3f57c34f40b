"""Every path of a run's folder, spelled once.

RUNS/NAME/run.json                                      the plan: what is to run, and how
RUNS/NAME/report.json, report.html                      the results of the whole run
RUNS/NAME/<competition>/seed<k>/attempt<n>/record.json  what happened, phase by phase
                                          run.log       the agent's output
                                          submission.csv, artefacts/, snapshots/ …
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PLAN = "run.json"
GROUP = "metadata.json"  # of a run group of the reference implementation
WORKSPACES = HOME, SOCKETS = "home", "sockets"  # only while an agent runs
_SEED, _ATTEMPT = "seed", "attempt"


@dataclass(frozen=True)
class AttemptFolder:
    """The folder of one attempt."""

    path: Path

    @property
    def number(self) -> int:
        """Return the attempt's number among those of its competition and seed."""
        return int(self.path.name.removeprefix(_ATTEMPT))

    @property
    def record(self) -> Path:
        """Return the record, written at every phase."""
        return self.path / "record.json"

    @property
    def log(self) -> Path:
        """Return the agent's output."""
        return self.path / "run.log"

    @property
    def submission(self) -> Path:
        """Return the collected submission, which need not exist."""
        return self.path / "submission.csv"

    @property
    def artefacts(self) -> Path:
        """Return what was collected of the agent's logs and code."""
        return self.path / "artefacts"

    @property
    def snapshots(self) -> Path:
        """Return where submissions are kept that changed while the agent ran."""
        return self.path / "snapshots"

    def snapshot(self, sha256: str) -> Path:
        """Return where the submission with that sum is kept."""
        return self.snapshots / f"{sha256}.csv"

    @property
    def home(self) -> Path:
        """Return the workspace, which is there only while the agent runs."""
        return self.path / HOME

    @property
    def keeper(self) -> Path:
        """Return what a process holds that keeps the attempt running without its session."""
        return self.path / ".keeper"

    @property
    def sockets(self) -> Path:
        """Return where a container finds what listens on our side, only while the agent runs."""
        return self.path / SOCKETS

    @property
    def calls(self) -> Path:
        """Return what is kept of each call of a model."""
        return self.path / "calls.jsonl"

    @property
    def stats(self) -> Path:
        """Return the samples of what the agent used."""
        return self.path / "stats.jsonl"


@dataclass(frozen=True)
class SeedFolder:
    """The folder of all attempts of one competition with one seed."""

    path: Path

    @property
    def lock(self) -> Path:
        """Return the lock that whoever runs an attempt holds."""
        return self.path / ".lock"

    def attempt(self, number: int) -> AttemptFolder:
        """Return the folder of an attempt, which need not exist."""
        return AttemptFolder(self.path / f"{_ATTEMPT}{number}")

    def attempts(self) -> list[AttemptFolder]:
        """Return the attempts that exist, the oldest first."""
        numbered = [AttemptFolder(path) for path in _numbered(self.path, _ATTEMPT)]
        return sorted(numbered, key=lambda folder: folder.number) if numbered[1:] else numbered

    def next_attempt(self) -> AttemptFolder:
        """Return the folder of the next attempt; whatever exists, even half made, stays."""
        return self.attempt(max((folder.number for folder in self.attempts()), default=0) + 1)


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run: all that sessions of one name do."""

    path: Path
    code_salt: str = ""  # given: competitions have code names, and so have their folders

    def code_name(self, competition: str) -> str | None:
        """Return what a competition is called where its name must not be known, stable per run."""
        if not self.code_salt:
            return None
        digest = hashlib.sha256(f"{self.code_salt}/{competition}".encode()).hexdigest()
        return f"task-{digest[:8]}"

    @property
    def plan(self) -> Path:
        """Return the plan."""
        return self.path / PLAN

    @property
    def report(self) -> Path:
        """Return the report that every session of the run writes anew."""
        return self.path / "report.json"

    @property
    def page(self) -> Path:
        """Return the same report as a page to look at."""
        return self.path / "report.html"

    @property
    def audit(self) -> Path:
        """Return what an audit has found, which need not exist."""
        return self.path / "audit.json"

    @property
    def votes(self) -> Path:
        """Return what a judge has answered, a line for each vote; it need not exist."""
        return self.path / "judge.jsonl"

    @property
    def lock(self) -> Path:
        """Return the lock that a session holds as long as it lives."""
        return self.path / ".session.lock"

    def seed(self, competition: str, seed: int) -> SeedFolder:
        """Return the folder of a competition and seed, which need not exist."""
        name = self.code_name(competition) or competition
        return SeedFolder(self.path / name / f"{_SEED}{seed}")

    def seeds(self) -> Iterator[SeedFolder]:
        """Yield the folders of competitions and seeds that exist, in order of their names."""
        for name in names_in(self.path):
            if not name.startswith("."):
                yield from map(SeedFolder, _numbered(self.path / name, _SEED))


def names_in(folder: Path) -> list[str]:
    """Return the names in a folder, in order; none if it is no folder, or has just been removed.

    Other processes make and remove folders meanwhile, and ``Path.glob`` raises an error then.
    """
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208  # thousands of names, not of paths
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []


def _numbered(folder: Path, prefix: str) -> list[Path]:
    """Return what is in a folder whose name is a word and a number, in order of the names."""
    numbered = (name for name in names_in(folder) if name.startswith(prefix))
    return [folder / name for name in numbered if name.removeprefix(prefix).isdecimal()]
