"""The settings of a session: what the options say, checked, and frozen before anything runs.

A run that is resumed by its name takes what is not said from its plan.
"""

from __future__ import annotations

import hashlib
import math
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

import pytest

from pytest_mlebench._units import parse_duration, show_duration
from pytest_mlebench.agent import parse_network
from pytest_mlebench.attempts.plan import Plan, read_plan
from pytest_mlebench.budget import Budget, parse_budget
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.layout import RunFolder
from pytest_mlebench.limits import STANDARD, Limits
from pytest_mlebench.plugin import options
from pytest_mlebench.plugin.selection import DEFAULT_SPLIT, names_in, registry, seeds_from
from pytest_mlebench.plugin.worker_link import posting_of, settings_here
from pytest_mlebench.reports.gates import Gate, parse_fail_under
from pytest_mlebench.reports.spending_gate import SpendingGate, parse_fail_over
from pytest_mlebench.store.location import default_store

LEAST_GRACE = 5.0  # seconds: several heartbeats fit into it
WORKER_KEY = "mle_settings"  # in what xdist gives its workers


@dataclass(frozen=True)
class Settings:
    """What the options say."""

    agent: str  # as it was typed
    ids: tuple[str, ...]
    splits: tuple[str, ...]
    competitions: tuple[str, ...]  # single ones
    tests: tuple[str, ...]  # paths of the user's own; none: the built-in suite, or pytest's own
    seeds: int
    require: str
    gates: tuple[Gate, ...]
    spending_gate: SpendingGate | None
    baseline: Path | None
    limits: Mapping[str, str]  # the limits that options change, by their keys in a limits table
    network: str | None
    budget: Budget  # the bounds that the option sets
    transcripts: bool
    gpu_hour_usd: float | None
    snapshot_every: float | None
    sandbox: str
    prepare: str
    missing: str
    verify: bool
    description: Literal["ours", "kaggle", "obfuscated"]
    rerun_changed: bool
    store: Path
    run_path: Path
    reports: tuple[Path, ...]
    code_salt: str = field(default_factory=lambda: secrets.token_hex(8))  # nobody guesses names
    hosts: Path | None = None
    hosts_missing: str = "fail"
    grace: float = 1800.0  # seconds that an attempt on another host outlives its connection
    session: str = field(default_factory=lambda: f"{time.time_ns():x}-{os.getpid()}")

    @property
    def run(self) -> RunFolder:
        """Return the run's folder."""
        return RunFolder(self.run_path)

    @property
    def hidden(self) -> tuple[Path, ...]:
        """Return what an agent must not be able to read: the datasets and the runs."""
        return (self.store.absolute(), self.run_path.parent.absolute())

    @property
    def selection(self) -> str:
        """Return the splits and single competitions that were chosen, as people write them."""
        singles = self.competitions
        more = ["…"] if len(singles) > 3 else []
        return ", ".join([*self.splits, *singles[:3], *more])

    def code_name(self, competition: str) -> str | None:
        """Return what a competition is called where its name must not be known, stable per run."""
        if self.description != "obfuscated":
            return None
        digest = hashlib.sha256(f"{self.code_salt}/{competition}".encode()).hexdigest()
        return f"task-{digest[:8]}"

    def changed_limits(self, base: Limits) -> Limits:
        """Return *base* as the options change it; errors name the option."""
        for name, key in options.LIMITS.items():
            if key in self.limits:
                base = base.with_limit(key, self.limits[key], f"--mle-{name}")
        return base

    def plan(self) -> Plan:
        """Return the plan of the run that these settings begin."""
        return Plan(
            agent=self.agent,
            splits=self.splits,
            competitions=self.competitions,
            tests=self.tests,
            seeds=self.seeds,
            require=self.require,
            gates=tuple(gate.value for gate in self.gates),
            fail_over=None if self.spending_gate is None else self.spending_gate.value,
            limits=self.limits,
            network=self.network,
            budget=self.budget,
            transcripts=self.transcripts,
            gpu_hour_usd=self.gpu_hour_usd,
            sandbox=self.sandbox,
            description=self.description,
            code_salt=self.code_salt,
            verify=self.verify,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the settings in types that xdist can send to a worker."""
        plain = asdict(self) | {
            "gates": [gate.value for gate in self.gates],
            "spending_gate": None if self.spending_gate is None else self.spending_gate.value,
        }
        return {key: _sendable(value) for key, value in plain.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Settings:
        """Return what ``to_dict`` wrote."""
        values = {item.name: data[item.name] for item in fields(cls)}
        for name in ("ids", "splits", "competitions", "tests"):
            values[name] = tuple(values[name])
        values |= {
            "gates": tuple(parse_fail_under(gate) for gate in values["gates"]),
            "spending_gate": parse_fail_over(values["spending_gate"]),
            "budget": Budget(**values["budget"]),
            "store": Path(values["store"]),
            "run_path": Path(values["run_path"]),
            "baseline": values["baseline"] and Path(values["baseline"]),
            "hosts": values["hosts"] and Path(values["hosts"]),
            "reports": tuple(map(Path, values["reports"])),
        }
        return cls(**values)


def settings_of(config: pytest.Config) -> Settings:
    """Return what the options say, checked; a worker is given what its controller has checked."""
    if sent := getattr(config, "workerinput", {}).get(WORKER_KEY):
        settings, posting = Settings.from_dict(sent), posting_of(config)
        return settings if posting is None else settings_here(settings, posting)
    return _from_options(config)


def _from_options(config: pytest.Config) -> Settings:
    run_path = _run_path(config)
    plan = read_plan(RunFolder(run_path)) if RunFolder(run_path).plan.is_file() else None
    settings = _with_plan(config, _given(config, run_path), plan)
    settings.changed_limits(STANDARD)  # wrong values end here
    known = registry(config)
    ids = known.select(settings.splits, settings.competitions)
    return replace(settings, ids=ids)


def _given(config: pytest.Config, run_path: Path) -> Settings:
    """Return what the options themselves say."""

    def given(name: str) -> Any:
        return options.given(config, name)

    splits = names_in(given("split"))
    competitions = names_in(given("competition"))
    network = given("network")
    known = registry(config).splits()
    return Settings(
        agent=str(given("agent")),
        ids=(),
        splits=splits if splits or competitions else (DEFAULT_SPLIT,),
        competitions=competitions,
        tests=_tests(config),
        seeds=seeds_from(given("seeds"), "--mle-seeds"),
        require=given("require"),
        gates=tuple(parse_fail_under(value, known) for value in given("fail-under")),
        spending_gate=parse_fail_over(given("fail-over")),
        baseline=_baseline(config, given("baseline")),
        limits={key: str(v) for name, key in options.LIMITS.items() if (v := given(name))},
        network=network and parse_network(network, "--mle-network"),
        budget=parse_budget(budget) if (budget := given("budget")) else Budget(),
        transcripts=given("transcripts") == "on",
        gpu_hour_usd=_gpu_hour_usd(given("gpu-hour-usd")),
        snapshot_every=_snapshot_every(given("snapshot-every")),
        sandbox=given("sandbox"),
        prepare=given("prepare"),
        missing=given("missing"),
        verify=given("verify") == "on",
        description=given("description"),
        rerun_changed=given("rerun") == "changed",
        store=_folder(config, given("data-dir")) or default_store(),
        run_path=run_path,
        reports=_reports(config, given("report")),
        hosts=_folder(config, given("hosts")),
        hosts_missing=given("hosts-missing"),
        grace=_grace(given("grace")),
    )


def _with_plan(config: pytest.Config, settings: Settings, plan: Plan | None) -> Settings:
    """Return the settings with what the plan of the run says where the options say nothing."""
    if plan is None:
        return settings

    def said(*names: str) -> bool:
        return any(options.explicit(config, name) is not None for name in names)

    name = settings.run_path.name
    if said("split", "competition"):
        _refuse_other_selection(settings, plan, name)
    if said("seeds") and settings.seeds != plan.seeds:
        raise ConfigError(
            f"run {name!r} was planned with --mle-seeds={plan.seeds}, given: {settings.seeds}: "
            "leave it out to resume the run, or choose another name with --mle-run"
        )
    gates = tuple(parse_fail_under(value) for value in plan.gates)
    return replace(
        settings,
        splits=plan.splits,
        competitions=plan.competitions,
        tests=settings.tests or plan.tests,
        seeds=plan.seeds,
        require=settings.require if said("require") else plan.require,
        gates=settings.gates if said("fail-under") else gates,
        spending_gate=settings.spending_gate or parse_fail_over(plan.fail_over),
        limits={**plan.limits, **settings.limits},
        network=settings.network or plan.network,
        budget=plan.budget.overridden_by(settings.budget),
        transcripts=settings.transcripts if said("transcripts") else plan.transcripts,
        gpu_hour_usd=settings.gpu_hour_usd if said("gpu-hour-usd") else plan.gpu_hour_usd,
        sandbox=settings.sandbox if said("sandbox") else plan.sandbox,
        description=settings.description if said("description") else plan.description,  # type: ignore[arg-type]  # checked when it was planned
        verify=settings.verify if said("verify") else plan.verify,
        code_salt=plan.code_salt or settings.code_salt,
    )


def _refuse_other_selection(settings: Settings, plan: Plan, name: str) -> None:
    given, planned = ((set(each.splits), set(each.competitions)) for each in (settings, plan))
    if given != planned:
        words = [f"--mle-split={','.join(plan.splits)}"] if plan.splits else []
        words += [f"--mle-competition={each}" for each in plan.competitions]
        raise ConfigError(
            f"run {name!r} was planned with {' '.join(words)}, given: {settings.selection}: "
            "leave the selection out to resume the run, or choose another name with --mle-run"
        )


def _tests(config: pytest.Config) -> tuple[str, ...]:
    """Return the test paths that were typed."""
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        return ()
    return tuple(config.args)


def _gpu_hour_usd(value: str | None) -> float | None:
    if value is None:
        return None
    try:
        price = float(value)
    except ValueError:
        price = -1.0
    if not 0 <= price < math.inf:
        raise ConfigError(f"--mle-gpu-hour-usd must be a price in dollars, given: {value}")
    return price


def _grace(value: str) -> float:
    seconds = parse_duration(value, "--mle-grace")
    if seconds < LEAST_GRACE:
        least = show_duration(LEAST_GRACE)
        raise ConfigError(f"--mle-grace must be {least} or more, given: {value}")
    return seconds


def _snapshot_every(value: str | None) -> float | None:
    if value is None:
        return None
    from pytest_mlebench.sandbox.snapshots import parse_every  # late on purpose: only if asked for

    return parse_every(value, "--mle-snapshot-every")


def _folder(config: pytest.Config, name: str | None) -> Path | None:
    return None if name is None else config.invocation_params.dir / Path(name).expanduser()


def _run_path(config: pytest.Config) -> Path:
    name: str | None = options.given(config, "run")
    runs: str = options.given(config, "runs-dir")
    folder = _folder(config, runs)
    if folder is None or (folder.exists() and not folder.is_dir()):
        raise ConfigError(f"--mle-runs-dir must be a folder, given: {runs}")
    if name is None:
        return _new_run(folder, options.given(config, "agent"))
    if name in {"", ".", ".."} or "/" in name or name.startswith("."):
        raise ConfigError(f"--mle-run must be a plain name, given: {name!r}")
    return folder / name


def _new_run(folder: Path, agent: str) -> Path:
    """Return a folder of a name that no other run has: date, time and agent."""
    letters = "".join(c if c.isalnum() else "-" for c in Path(agent).name)
    stem = f"{time.strftime('%Y%m%d-%H%M%S')}-{letters[:40].strip('-')}"
    numbers = ("", *(f"-{number}" for number in range(2, 1000)))
    return next(path for number in numbers if not (path := folder / f"{stem}{number}").exists())


def _baseline(config: pytest.Config, name: str | None) -> Path | None:
    path = _folder(config, name)
    if path is not None:
        from pytest_mlebench.reports.report import Report

        Report.load([path], registry(config))  # what cannot be read ends here, not after a day
    return path


def _reports(config: pytest.Config, names: Sequence[str]) -> tuple[Path, ...]:
    if not names:
        return ()
    from pytest_mlebench.reports.report import check_suffix

    paths = [_folder(config, name) for name in names]
    return tuple(check_suffix(path, "--mle-report") for path in paths if path is not None)


def _sendable(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_sendable(each) for each in value]
    return str(value) if isinstance(value, Path) else value
