"""The record of an attempt, ``record.json``: written at every phase, before anything else happens.

Records of earlier versions are read; one that cannot be read is an error that names it, and nothing
is ever removed because of it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pytest_mlebench._files import write_text
from pytest_mlebench.attempts.identity import Identity
from pytest_mlebench.errors import ConfigError, SandboxError
from pytest_mlebench.gateway.model_use import ModelUse
from pytest_mlebench.grade import Grade, Snapshot
from pytest_mlebench.layout import AttemptFolder, SeedFolder
from pytest_mlebench.limits import Limits
from pytest_mlebench.reports.results import ItemKey
from pytest_mlebench.sandbox import Ending
from pytest_mlebench.sandbox.redact import redact

SCHEMA = 2
READABLE = (1, 2)  # 1 knew neither identities nor items

Phase = Literal["created", "waiting", "running", "collected", "graded", "error"]


@dataclass(frozen=True)
class Conditions:
    """Where and how an attempt ran, for the disclosure."""

    agent_version: str | None = None
    sandbox: str | None = None
    network: str | None = None
    models: str | None = None  # that the agent reached through the gateway
    budget: str | None = None  # of the attempt, for them
    limits: Limits | None = None
    description: str | None = None
    code_name: str | None = None  # what the agent knew the competition by, if not by its id
    data: str = "unknown"  # how the dataset was verified
    data_sum: str | None = None  # of the files that its marker lists
    host: str | None = None
    machine: str | None = None  # the host's name in hosts.toml, where there is one
    job: str | None = None  # the number of the allocation there, if Slurm has given one
    hardware: Mapping[str, str] = field(default_factory=dict)
    gpus: tuple[Mapping[str, Any], ...] = ()
    plugin_version: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the conditions in JSON types."""
        return asdict(self) | {
            "limits": None if self.limits is None else self.limits.to_dict(),
            "gpus": [dict(gpu) for gpu in self.gpus],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Conditions:
        """Return what ``to_dict`` wrote; keys of later versions are passed over."""
        known = {item.name: data[item.name] for item in fields(cls) if item.name in data}
        limits = known.get("limits")
        return cls(
            **known
            | {
                "limits": None if limits is None else Limits.from_dict(limits),
                "gpus": tuple(known.get("gpus") or ()),
            }
        )


@dataclass(frozen=True)
class AttemptRecord:
    """Everything that is known of one attempt."""

    competition: str
    seed: int
    attempt: int
    agent: str
    phase: Phase = "created"
    item: ItemKey | None = None  # for which item it ran; None in records of the first version
    session: str | None = None  # in which session
    identity: Identity | None = None  # what decided it; None in records of the first version
    conditions: Conditions = field(default_factory=Conditions)
    timings: Mapping[str, float] = field(default_factory=dict)  # phase: when it was reached
    ending: Ending | None = None
    grade: Grade | None = None
    error: str | None = None  # an infrastructure error, never the agent's fault
    model_use: ModelUse | None = None  # None: nothing was counted
    snapshots: tuple[Snapshot, ...] = ()
    submission_head: tuple[str, ...] = ()  # the first lines of what was handed in
    sums: Mapping[str, str] = field(default_factory=dict)  # of submission, code and logs
    extra: Mapping[str, Any] = field(default_factory=dict)  # what hooks add
    lease: str | None = None  # the token under which another host has it; newer ones end it
    superseded: bool = False  # another version of the agent ran anew in this one's place

    @property
    def fingerprint(self) -> str | None:
        """Return the fingerprint of everything that decided the attempt."""
        return None if self.identity is None else self.identity.fingerprint

    @property
    def is_over(self) -> bool:
        """Tell whether the agent has run to its end, so that it is not to run again."""
        return self.phase in {"collected", "graded"}

    def entering(self, phase: Phase, **changes: Any) -> AttemptRecord:
        """Return the record as of the moment that *phase* is reached."""
        timings = {**self.timings, phase: time.time()}
        return replace(self, phase=phase, timings=timings, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Return the record in JSON types."""
        return {
            "schema": SCHEMA,
            "competition": self.competition,
            "seed": self.seed,
            "attempt": self.attempt,
            "agent": self.agent,
            "phase": self.phase,
            "item": None if self.item is None else self.item.to_dict(),
            "session": self.session,
            "fingerprint": self.fingerprint,
            "identity": None if self.identity is None else dict(self.identity.facts),
            "conditions": self.conditions.to_dict(),
            "timings": dict(self.timings),
            "ending": None if self.ending is None else self.ending.to_dict(),
            "grade": None if self.grade is None else self.grade.to_dict(),
            "error": self.error,
            "model_use": None if self.model_use is None else self.model_use.to_dict(),
            "snapshots": [snapshot.to_dict() for snapshot in self.snapshots],
            "submission_head": list(self.submission_head),
            "sums": dict(self.sums),
            "extra": dict(self.extra),
            "lease": self.lease,
            "superseded": self.superseded,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: str) -> AttemptRecord:
        """Return the record that ``to_dict``, of this version or an earlier one, wrote."""
        ending = data["ending"] if data["schema"] >= 2 else data["outcome"]
        item, identity, grade = data.get("item"), data.get("identity"), data["grade"]
        model_use = data.get("model_use")
        return cls(
            competition=data["competition"],
            seed=data["seed"],
            attempt=data["attempt"],
            agent=data["agent"],
            phase=data["phase"],
            item=None if item is None else ItemKey.from_dict(item, f"{where}: item"),
            session=data.get("session"),
            identity=None if identity is None else Identity(identity),
            conditions=Conditions.from_dict(data["conditions"]),
            timings=data["timings"],
            ending=Ending.from_dict(ending) if ending else None,
            grade=None if grade is None else Grade.from_dict(grade),
            error=data["error"],
            model_use=None if model_use is None else ModelUse.from_dict(model_use),
            snapshots=tuple(Snapshot.from_dict(each) for each in data.get("snapshots", ())),
            submission_head=tuple(data.get("submission_head", ())),
            sums=data.get("sums", {}),
            extra=data.get("extra", {}),
            lease=data.get("lease"),
            superseded=data.get("superseded", False),
        )


class Run:
    """One attempt as its folder tells it: what the fixture ``mle_run`` and the hooks are given."""

    def __init__(self, folder: Path, record: AttemptRecord, secrets: Iterable[str] = ()) -> None:
        self.folder = folder
        self.record = record
        self._secrets = tuple(secrets)

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r}, phase={self.phase!r})"

    @property
    def competition(self) -> str:
        """Return the id of the competition."""
        return self.record.competition

    @property
    def seed(self) -> int:
        """Return the seed."""
        return self.record.seed

    @property
    def attempt(self) -> int:
        """Return the number of this attempt among those of its competition and seed."""
        return self.record.attempt

    @property
    def agent(self) -> str:
        """Return the agent's name."""
        return self.record.agent

    @property
    def phase(self) -> Phase:
        """Return how far it has come."""
        return self.record.phase

    @property
    def grade(self) -> Grade | None:
        """Return the grade, once there is one."""
        return self.record.grade

    @property
    def ending(self) -> Ending | None:
        """Return how the agent ended, once it has."""
        return self.record.ending

    @property
    def outcome(self) -> dict[str, Any]:
        """Return how the agent ended, as plain data."""
        return {} if self.record.ending is None else self.record.ending.to_dict()

    @property
    def submission(self) -> Path:
        """Return the collected submission, which need not exist."""
        return AttemptFolder(self.folder).submission

    @property
    def log(self) -> Path:
        """Return the agent's output."""
        return AttemptFolder(self.folder).log

    @property
    def is_over(self) -> bool:
        """Tell whether the agent has run to its end, so that it is not to run again."""
        return self.record.is_over

    def enter(self, phase: Phase, **changes: Any) -> None:
        """Reach *phase* and write the record before anything else happens."""
        self._take(self.record.entering(phase, **changes))

    def change(self, **changes: Any) -> None:
        """Change the record without reaching another phase."""
        self._take(replace(self.record, **changes))

    def reload(self, secrets: Iterable[str] = ()) -> None:
        """Take over the record that another process has written, and let no secret into it."""
        fresh = read_attempt(self.folder)
        if fresh is not None:
            self.record = fresh.record
        self.keep_out(secrets)

    def keep_out(self, secrets: Iterable[str]) -> None:
        """Let no secret into the record from now on."""
        self._secrets = tuple(secrets)

    def _take(self, record: AttemptRecord) -> None:
        """Write a record atomically: the one door through which an agent's words enter it.

        Names of columns and files, notes and errors are texts that an agent had a hand in; the
        reports, the terminal and JUnit have theirs from the record.
        """
        data = redact(record.to_dict(), self._secrets)
        path = AttemptFolder(self.folder).record
        self.record = AttemptRecord.from_dict(data, str(path)) if self._secrets else record
        text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
        try:
            write_text(path, text)
        except OSError as error:
            raise SandboxError(f"cannot write {path}: {error.strerror or error}") from None


def read_attempt(folder: Path) -> Run | None:
    """Return the attempt recorded in *folder*, or None where there is no record."""
    path = AttemptFolder(folder).record
    try:
        found = path.stat()
        return Run(folder, _read_record(path, found.st_ino, found.st_mtime_ns, found.st_size))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"{path}: cannot be read: {type(error).__name__}: {error}; move it away, or choose "
            f"another run"
        ) from None


@lru_cache(maxsize=1 << 14)  # a session looks three times at the records of a run that it resumes
def _read_record(path: Path, _inode: int, _time: int, _size: int) -> AttemptRecord:
    """Return a record as it was written at some time; every writing makes another file of it."""
    data = json.loads(path.read_text(encoding="utf-8"))
    schema = data["schema"]
    if schema not in READABLE:
        raise ConfigError(
            f"{path}: has schema {schema!r}, this version reads "
            f"{' and '.join(map(str, READABLE))}: use the version of pytest-mlebench that wrote "
            "it, or choose another run"
        )
    return AttemptRecord.from_dict(data, str(path))


def read_attempts(folder: SeedFolder) -> list[Run]:
    """Return the attempts recorded for a competition and seed, the oldest first."""
    runs = (read_attempt(attempt.path) for attempt in folder.attempts())
    return [run for run in runs if run is not None]
