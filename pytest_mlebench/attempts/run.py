"""One attempt: run the agent, unless the very same attempt has been made already.

Each step leaves its result on disk before the next begins, so that a killed session resumes where
it was.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from pytest_mlebench import __version__
from pytest_mlebench._plain_text import plain_lines, read_start
from pytest_mlebench.agent import Agent
from pytest_mlebench.attempts.grading_process import check_apart
from pytest_mlebench.attempts.identity import Identity, budget_facts
from pytest_mlebench.attempts.instructions import instructions
from pytest_mlebench.attempts.keeping import HeldHere, Keeping
from pytest_mlebench.attempts.record import AttemptRecord, Conditions, Run, read_attempts
from pytest_mlebench.budget import Budget
from pytest_mlebench.dataset import Dataset
from pytest_mlebench.errors import (
    ConfigError,
    InfrastructureError,
    InvalidSubmission,
    SandboxError,
)
from pytest_mlebench.gateway.model_use import model_use
from pytest_mlebench.gateway.spending import Spending
from pytest_mlebench.host import allocation
from pytest_mlebench.layout import AttemptFolder, SeedFolder
from pytest_mlebench.limits import Limits
from pytest_mlebench.reports.results import ItemKey
from pytest_mlebench.sandbox import Ending, Job, Outliving, Recovering, Sandbox
from pytest_mlebench.sandbox.kept_files import sums_of
from pytest_mlebench.sandbox.redact import redact_text

HEAD_LINES, HEAD_COLUMNS, HEAD_BYTES = 6, 160, 16 * 1024  # of a submission, for the report
SAVE_SECONDS = 300.0  # before an allocation ends, for collecting and grading
TRIES = 3  # of an attempt that the benchmark itself spoils; an agent's failure is never repeated

logger = logging.getLogger(__name__)

Before = Callable[[Job, Run], object]
After = Callable[[Job, Run, dict[str, Any]], object]


@dataclass(frozen=True)
class Attempt:
    """Everything that decides how an agent runs."""

    item: ItemKey
    dataset: Dataset
    seed: int
    agent: Agent
    limits: Limits
    sandbox: Sandbox
    network: str
    description: str
    agent_identity: Identity
    budget: Budget = field(default_factory=Budget)  # for the agent's models, if it has any
    code_name: str | None = None  # what the agent knows the competition by, if not by its id

    @property
    def identity(self) -> Identity:
        """Return everything that decides the attempt, as texts."""
        facts = {f"limits.{key}": text for key, text in self.limits.describe().items()}
        facts |= budget_facts(self.agent, self.budget)
        return self.agent_identity.with_facts(
            **facts,
            competition=self.dataset.competition.id,
            seed=str(self.seed),
            sandbox=self.sandbox.name,
            network=self.network,
            description=self.description,
            data=self.dataset.verified,
        )

    def has_been(self, record: AttemptRecord) -> bool:
        """Tell whether a record is of this very attempt."""
        if record.superseded:
            return False
        if record.identity is not None:
            return record.identity.facts == self.identity.facts
        conditions = record.conditions  # all that the first version wrote down
        return (record.agent, conditions.sandbox, conditions.network, conditions.limits) == (
            self.agent.name,
            self.sandbox.name,
            self.network,
            self.limits,
        )


@dataclass(frozen=True)
class Circumstances:
    """What a session says about all its attempts."""

    session: str  # tells this session from earlier ones of the same run
    hidden: tuple[Path, ...]
    before: Before
    after: After
    snapshot_every: float | None = None
    rerun_changed: bool = False
    transcripts: bool = False  # keep what is said in calls of models
    waiting: Callable[[str], object] = field(default=logger.info)
    keeping: Keeping = field(default_factory=HeldHere)


def run_attempt(attempt: Attempt, folder: SeedFolder, circumstances: Circumstances) -> Run:
    """Return the finished attempt, made now unless the very same has been made already."""
    from filelock import FileLock  # late on purpose: only when an agent runs

    with _writing(folder.path):
        circumstances.keeping.prepare(folder)
        known = read_attempts(folder)
        if (run := finished(attempt, known)) is not None and run.phase == "graded":
            return run  # nobody does anything to it any more
        held = FileLock(folder.lock).acquire()
    with held:  # two tests may want the same attempt at the same time
        known = read_attempts(folder)
        if (run := finished(attempt, known)) is not None:
            return run
        for run in reversed(known):
            if attempt.has_been(run.record) and _adopted(attempt, run, circumstances):
                return run
        _supersede(attempt, known, circumstances)
        return _try(attempt, folder, circumstances)


def finished(attempt: Attempt, known: Sequence[Run]) -> Run | None:
    """Return the very same attempt, if it has been made already."""
    for run in reversed(known):
        if run.is_over and attempt.has_been(run.record):
            run.keep_out(attempt.agent.secrets())
            return run
    return None


def _adopted(attempt: Attempt, run: Run, circumstances: Circumstances) -> bool:
    """Wait for the end of an attempt that an earlier worker began, if it is still running."""
    try:
        if not circumstances.keeping.adopt(AttemptFolder(run.folder)):
            return False
    except SandboxError as error:
        _note_error(run, attempt, error)
        return False
    run.reload(attempt.agent.secrets())
    if run.is_over:
        _finish(_job(attempt, run, circumstances.hidden), run, circumstances)
    return run.is_over


def _supersede(attempt: Attempt, known: list[Run], circumstances: Circumstances) -> None:
    """Set aside what an earlier session left of this item under other conditions, or refuse."""
    for run in known:
        record = run.record
        if record.superseded or record.item != attempt.item or attempt.has_been(record):
            continue
        if record.session == circumstances.session or record.identity is None:
            continue
        if not circumstances.rerun_changed:
            changes = record.identity.differences(attempt.identity)
            raise ConfigError(
                f"{run.folder} was made under other conditions ({'; '.join(changes)}): choose "
                "another name with --mle-run, or repeat what has changed with --mle-rerun=changed"
            )
        run.change(superseded=True)


def _try(attempt: Attempt, folder: SeedFolder, circumstances: Circumstances) -> Run:
    for tries_left in reversed(range(TRIES)):
        run = _new_run(attempt, folder, circumstances)
        job = _job(attempt, run, circumstances.hidden)
        circumstances.before(job, run)
        work = partial(_run_once, attempt, job, run, circumstances)
        try:
            if circumstances.keeping.hold(AttemptFolder(run.folder), work, _after_kill(attempt)):
                run.reload(attempt.agent.secrets())
        except SandboxError as error:
            _note_error(run, attempt, error)
            if not tries_left:
                raise
            continue
        _finish(job, run, circumstances)
        return run
    raise InfrastructureError(f"{folder.path}: no attempt was made")  # TRIES is not zero


def _note_error(run: Run, attempt: Attempt, error: SandboxError) -> None:
    """Write into the record why an attempt was spoilt, unless its own process has done so."""
    run.reload(attempt.agent.secrets())
    if run.phase not in ("error", "collected", "graded"):
        with contextlib.suppress(SandboxError):  # the disk that spoilt the attempt may not take it
            run.enter("error", error=str(error))


def _after_kill(attempt: Attempt) -> Callable[[], None] | None:
    """Return what ends the agent of a killed process, where it does not end with it."""
    sandbox = attempt.sandbox
    return sandbox.end_orphans if isinstance(sandbox, Outliving) else None


def _finish(job: Job, run: Run, circumstances: Circumstances) -> None:
    extra: dict[str, Any] = {}
    circumstances.after(job, run, extra)
    if extra:
        run.change(extra=extra)


def _new_run(attempt: Attempt, folder: SeedFolder, circumstances: Circumstances) -> Run:
    from pytest_mlebench.host.hardware import host_hardware  # late on purpose: only with an agent

    place = circumstances.keeping.next_attempt(folder)
    with _writing(folder.path):
        place.path.mkdir(mode=0o700)
    record = AttemptRecord(
        competition=attempt.dataset.competition.id,
        seed=attempt.seed,
        attempt=place.number,
        agent=attempt.agent.name,
        item=attempt.item,
        lease=circumstances.keeping.lease,
        session=circumstances.session,
        identity=attempt.identity,
        conditions=Conditions(
            agent_version=attempt.agent.version,
            sandbox=attempt.sandbox.name,
            network=attempt.network,
            models=attempt.agent.describe_models(),
            budget=attempt.budget.describe() if attempt.agent.models else None,
            limits=attempt.limits,
            description=attempt.description,
            code_name=attempt.code_name,
            data=attempt.dataset.verified,
            data_sum=attempt.dataset.sum,
            host=socket.gethostname(),
            machine=circumstances.keeping.machine,
            job=circumstances.keeping.job,
            hardware=host_hardware(),
            plugin_version=__version__,
        ),
    )
    run = Run(place.path, record, attempt.agent.secrets())
    run.enter("created")
    return run


def _job(attempt: Attempt, run: Run, hidden: tuple[Path, ...]) -> Job:
    competition = attempt.dataset.competition
    public = attempt.dataset.public

    secrets = attempt.agent.secrets()

    def check(submission: Path) -> None:
        try:
            check_apart(competition, submission, public)
        except InvalidSubmission as problem:
            text = str(problem)
            if attempt.code_name is not None:
                text = text.replace(competition.id, attempt.code_name)
            raise InvalidSubmission(redact_text(text, secrets)) from None

    return Job(
        competition=attempt.code_name or competition.id,
        seed=attempt.seed,
        agent=attempt.agent,
        limits=attempt.limits,
        network=attempt.network,
        data=public,
        instructions=instructions(attempt.limits),
        folder=run.folder,
        check=check,
        hidden=hidden,
        labels={
            "run": run.folder.parents[2].name,
            "attempt": f"{run.competition}/seed{run.seed}/attempt{run.attempt}",
            "host": socket.gethostname(),
            "pid": str(os.getpid()),
        },
    )


def _run_once(attempt: Attempt, job: Job, run: Run, circumstances: Circumstances) -> None:
    try:
        with _leased(attempt, job, run) as job_with_gpus:
            run.enter("running")
            with (
                _snapshots(job, run, circumstances.snapshot_every),
                _metered(attempt, job_with_gpus, run, circumstances) as metered_job,
            ):
                ending = _run_in_time(attempt.sandbox, metered_job)
        head = _submission_head(run.submission, attempt.agent.secrets())
        sums = sums_of(AttemptFolder(run.folder))
        run.enter("collected", ending=ending, submission_head=head, sums=sums)
    except (InfrastructureError, OSError) as error:
        problem = _cannot_write(run.folder, error) if isinstance(error, OSError) else str(error)
        with contextlib.suppress(SandboxError):  # the disk that spoilt the attempt may not take it
            run.enter("error", error=problem)
        if isinstance(error, OSError):
            raise SandboxError(problem) from error
        raise


def _run_in_time(sandbox: Sandbox, job: Job) -> Ending:
    """Let an agent run; the end of its allocation is a time limit, too, and what it left counts."""
    left, limit = allocation.seconds_left(), job.limits.time_seconds
    if left is None or left - SAVE_SECONDS >= limit:
        return sandbox.run(job)
    bound = max(1.0, left - SAVE_SECONDS)
    ending = sandbox.run(replace(job, limits=replace(job.limits, time_seconds=bound)))
    return replace(ending, details={**ending.details, "allocation_seconds": round(bound)})


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Tell of a disk that takes nothing in a sentence."""
    try:
        yield
    except OSError as error:
        raise SandboxError(_cannot_write(folder, error)) from error


def _cannot_write(folder: Path, error: OSError) -> str:
    return f"cannot write {folder}: {error.strerror or error}"


def _submission_head(submission: Path, secrets: Iterable[str]) -> tuple[str, ...]:
    """Return the first lines of what was handed in; masked first, lest a cut spare half a key."""
    raw = read_start(submission, HEAD_BYTES)
    text = redact_text(raw.decode(errors="replace"), secrets)
    if len(raw) == HEAD_BYTES:  # the last line may go on
        text = text.rpartition("\n")[0] or text
    return tuple(plain_lines(text, width=HEAD_COLUMNS)[:HEAD_LINES]) if raw else ()


@contextlib.contextmanager
def _leased(attempt: Attempt, job: Job, run: Run) -> Iterator[Job]:
    """Wait until the host has room for the attempt, and yield the job with its GPUs."""
    # late on purpose: only when an agent runs
    from pytest_mlebench.host.gpus import describe_gpus
    from pytest_mlebench.host.leases import lease_for

    def wait(message: str) -> None:
        logger.info("%s: %s", job.labels["attempt"], message)
        if run.phase != "waiting":
            run.enter("waiting")

    if isinstance(attempt.sandbox, Recovering):  # before a try counts: what is gone may come back
        attempt.sandbox.wait_until_ready(wait)
    label = job.labels["attempt"]
    with lease_for(attempt.sandbox, job.limits, label=label, waiting=wait) as gpus:
        if gpus:
            described: tuple[Mapping[str, Any], ...] = tuple(describe_gpus(gpus))
            conditions = replace(run.record.conditions, gpus=described)
            run.record = replace(run.record, conditions=conditions)
        yield replace(job, gpus=gpus)


@contextlib.contextmanager
def _metered(attempt: Attempt, job: Job, run: Run, circumstances: Circumstances) -> Iterator[Job]:
    """Yield the job with a gateway to the agent's models, if it has any; note what was used."""
    spending: Spending | None = None
    try:
        if not attempt.agent.models:
            yield job
            return
        # late on purpose: heavy, and only for agents with models
        from pytest_mlebench.gateway.gateway import open_gateway

        gateway = open_gateway(
            attempt.agent,
            job.folder,
            run_account=circumstances.keeping.run_account,
            budget=attempt.budget,
            transcripts=circumstances.transcripts,
        )
        try:
            with gateway:
                yield replace(job, services=(*job.services, gateway))
        finally:  # also of an attempt that the benchmark spoils: it was spent all the same
            spending = gateway.summary()
    finally:  # written at once: whoever interrupts a session does not let it reach a phase
        use = model_use(spending, job.artefacts / "logs")
        if use is not None:
            run.change(model_use=use)


@contextlib.contextmanager
def _snapshots(job: Job, run: Run, every: float | None) -> Iterator[None]:
    """Keep the submission as it changes, if that is asked for."""
    if every is None:
        yield
        return
    from pytest_mlebench.sandbox.snapshots import Snapshots  # late on purpose: only if asked for

    with Snapshots(job, every) as snapshots:
        yield
    run.record = replace(run.record, snapshots=tuple(snapshots.taken))
