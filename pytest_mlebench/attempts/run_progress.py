"""How far a run is, read from what its attempts leave on disk while they run."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_mlebench._plain_text import one_line, read_end, tail_lines
from pytest_mlebench._units import show_duration, show_usd
from pytest_mlebench.attempts.live_spending import LiveSpending
from pytest_mlebench.attempts.record import Conditions, Run, read_attempt
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.host.usage import LatestUsage, latest_usage
from pytest_mlebench.layout import AttemptFolder, RunFolder, SeedFolder
from pytest_mlebench.medals import Medal
from pytest_mlebench.reports.results import ItemKey
from pytest_mlebench.sandbox.collect import SUBMISSION
from pytest_mlebench.sandbox.validator import RECORD, VALID

LINE_COLUMNS = 300  # of an agent's last line that are kept


@dataclass(frozen=True)
class AttemptProgress:
    """One attempt that runs."""

    competition: str
    seed: int
    folder: Path
    place: str  # host and GPUs
    elapsed: float  # seconds
    limit: float | None
    usage: LatestUsage
    valid: bool | None  # whether a format check has found its submission valid; None: none asked
    handed_in: bool | None  # whether there is a submission; None: it is not on this machine
    spent: str
    last_line: str

    @property
    def submission_text(self) -> str:
        """Return whether there is a valid submission yet, as far as anybody has looked."""
        if self.valid is not None:
            return "valid" if self.valid else "not valid"
        return {True: "unchecked", False: "no file", None: ""}[self.handed_in]


@dataclass(frozen=True)
class ProgressLook:
    """A run at one moment."""

    running: tuple[AttemptProgress, ...]
    queued: int  # wait for CPUs, memory or GPUs
    over: int
    total: int
    medals: Counter[Medal]
    spent: str | None
    seconds_left: float | None

    @property
    def won(self) -> str:
        """Return the medals so far in words."""
        kinds = (medal for medal in reversed(Medal) if medal and self.medals[medal])
        return ", ".join(f"{self.medals[medal]} {medal}" for medal in kinds) or "no medal yet"

    @property
    def line(self) -> str | None:
        """Return a line on the attempts of a run, or None once all are over."""
        if self.over >= self.total:
            return None
        parts = [f"{len(self.running)} running"]
        if self.queued:
            parts.append(f"{self.queued} waiting for CPUs, memory or GPUs")
        parts += [f"{self.over} of {self.total} over", self.won]
        if self.spent is not None:
            parts.append(self.spent)
        if self.seconds_left is not None:
            parts.append(f"about {show_duration(self.seconds_left)} left")
        return f"mle-bench: {', '.join(parts)}"


class RunProgress:
    """Looks at a run again and again, and reads only the records that have changed.

    What has been graded is not even looked for again, unless its seed has a new attempt or the
    plan or the report of the run has been written anew.
    """

    def __init__(self, folder: RunFolder, expected: Collection[ItemKey]) -> None:
        self.folder = folder
        self.expected = expected
        self.began = time.time()
        self._spending = LiveSpending()
        self.runs: list[Run] = []  # the latest attempts, as of the last look
        self._known: dict[Path, tuple[tuple[int, int], Run]] = {}
        self._graded: dict[Path, tuple[int, Run]] = {}  # by seed: when its folder changed
        self._written: tuple[object, ...] = ()  # of plan and report, when they were

    def look(self, now: float | None = None) -> ProgressLook:
        """Return how far the run is."""
        now = time.time() if now is None else now
        runs = self.runs = self._latest()
        running = [run for run in runs if run.phase in ("created", "running")]
        return ProgressLook(
            running=tuple(self._attempt(run, now) for run in running),
            queued=sum(run.phase == "waiting" for run in runs),
            over=sum(run.phase in ("collected", "graded", "error") for run in runs),
            total=len(self.expected),
            medals=Counter(run.grade.medal for run in runs if run.grade is not None),
            spent=self._spending.text(runs),
            seconds_left=time_left(runs, len(self.expected), self.began, now),
        )

    def _latest(self) -> list[Run]:
        wanted = {(key.competition, key.seed) for key in tuple(self.expected)}
        written = tuple(map(signature, (self.folder.plan, self.folder.report)))
        if written != self._written:
            self._graded.clear()
            self._written = written
        latest = (self._latest_of(seed) for seed in self.folder.seeds())
        return [run for run in latest if run and (run.competition, run.seed) in wanted]

    def _latest_of(self, seed: SeedFolder) -> Run | None:
        changed = signature(seed.path)
        known = self._graded.get(seed.path)
        if known is not None and changed is not None and known[0] == changed[0]:
            return known[1]
        attempts = seed.attempts()
        run = self._read(attempts[-1]) if attempts else None
        if run is not None and run.phase == "graded" and changed is not None:
            self._graded[seed.path] = changed[0], run
        return run

    def _read(self, folder: AttemptFolder) -> Run | None:
        try:
            now = signature(folder.record)
            known = self._known.get(folder.path)
            if now is None or (known is not None and known[0] == now):
                return None if known is None or now is None else known[1]
            run = read_attempt(folder.path)
        except (OSError, ConfigError):  # it is about to be written, or is of another version
            return None
        if run is not None:
            self._known[folder.path] = (now, run)
        return run

    def _attempt(self, run: Run, now: float) -> AttemptProgress:
        conditions = run.record.conditions
        began = run.record.timings.get("running", run.record.timings.get("created", now))
        use = self._spending.use(run)
        folder = AttemptFolder(run.folder)
        return AttemptProgress(
            competition=run.competition,
            seed=run.seed,
            folder=run.folder,
            place=_place(conditions),
            elapsed=max(0.0, now - began),
            limit=None if conditions.limits is None else conditions.limits.time_seconds,
            usage=latest_usage(folder.stats),
            valid=_valid(run.folder / RECORD),
            handed_in=_handed_in(folder),
            spent="" if use is None or use.known_usd is None else show_usd(use.known_usd),
            last_line=_last(folder.log),
        )


def signature(path: Path) -> tuple[int, int] | None:
    """Return by what a change of a file or a folder is known; None if there is none."""
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_mtime_ns, facts.st_size


def time_left(runs: Sequence[Run], total: int, began: float, now: float) -> float | None:
    """Return an estimate from the attempts of this session that are over."""
    lasted = [
        run.record.timings["collected"] - run.record.timings["running"]
        for run in runs
        if "collected" in run.record.timings and run.record.timings.get("running", 0) >= began
    ]
    if not lasted:
        return None
    mean = sum(lasted) / len(lasted)
    running = [run for run in runs if run.phase in ("created", "running")]
    spent = sum(min(mean, now - run.record.timings.get("running", now)) for run in running)
    over = [run for run in runs if run.phase not in ("created", "waiting", "running")]
    return max(1.0, round((mean * (total - len(over)) - spent) / max(1, len(running))))


def _place(conditions: Conditions) -> str:
    """Return the host and the GPUs, equal ones counted."""
    names = Counter(str(gpu.get("name", "GPU")) for gpu in conditions.gpus)
    gpus = (f"{count} {name}" if count > 1 else name for name, count in names.items())
    host = conditions.machine or conditions.host
    return one_line(", ".join(filter(None, (host, *gpus))))


def _handed_in(folder: AttemptFolder) -> bool | None:
    """Tell whether an agent has left a file where its submission belongs; nothing is opened."""
    if not folder.home.is_dir():
        return None
    return os.path.lexists(folder.home / "submission" / SUBMISSION)


def _valid(checks: Path) -> bool | None:
    text = read_end(checks, 64 * 1024)
    return None if not text else VALID.encode() in text


def _last(log: Path) -> str:
    lines = tail_lines(log, lines=1, width=LINE_COLUMNS, max_bytes=4096)
    return lines[0] if lines else ""
