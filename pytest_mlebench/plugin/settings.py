"""The settings of a session: what the options say, checked, and frozen before anything runs.

A run that is resumed by its name takes what is not said from its plan.
"""

from __future__ import annotations

import functools
import os
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import pytest

from pytest_mlebench._problems import Problems, Remedy, Without, as_list
from pytest_mlebench.agent import parse_network
from pytest_mlebench.attempts.plan import Plan, read_plan
from pytest_mlebench.budget import Budget, parse_budget
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.layout import RunFolder
from pytest_mlebench.limits import STANDARD, Limits
from pytest_mlebench.plugin import option_values as values
from pytest_mlebench.plugin import options
from pytest_mlebench.plugin.selection import DEFAULT_SPLIT, names_in, registry, seeds_from
from pytest_mlebench.plugin.worker_link import posting_of, settings_here
from pytest_mlebench.reports.gates import Gate, parse_fail_under
from pytest_mlebench.reports.spending_gate import SpendingGate, parse_fail_over
from pytest_mlebench.store.location import default_store

T = TypeVar("T")

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
    whose_limits: str  # "standard", or "host" for as much of them as the host has
    network: str | None
    budget: Budget  # the bounds that the option sets
    transcripts: bool
    gpu_hour_usd: float | None
    snapshot_every: float | None
    sandbox: str
    prepare: str
    missing: str
    verify: bool
    require_walls: bool
    description: Literal["ours", "kaggle", "obfuscated"]
    rerun_changed: bool
    audit: bool
    fail_on: str | None
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
        return RunFolder(self.run_path, self.code_salt if self.description == "obfuscated" else "")

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
            baseline=None if self.baseline is None else str(self.baseline),
            audit=self.audit,
            fail_on=self.fail_on,
            limits=self.limits,
            whose_limits=self.whose_limits,
            network=self.network,
            budget=self.budget,
            transcripts=self.transcripts,
            gpu_hour_usd=self.gpu_hour_usd,
            snapshot_every=self.snapshot_every,
            missing=self.missing,
            sandbox=self.sandbox,
            description=self.description,
            code_salt=self.code_salt,
            verify=self.verify,
            require_walls=self.require_walls,
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


def settings_of(config: pytest.Config, problems: Problems | None = None) -> Settings:
    """Return what the options say, checked; a worker is given what its controller has checked.

    With *problems*, what is wrong is noted there and stand-ins take its place.
    """
    if sent := getattr(config, "workerinput", {}).get(WORKER_KEY):
        settings, posting = Settings.from_dict(sent), posting_of(config)
        return settings if posting is None else settings_here(settings, posting)
    noted = Problems() if problems is None else problems
    settings = _from_options(config, noted)
    if problems is None and noted:
        raise ConfigError(as_list(noted))
    return settings


def _from_options(config: pytest.Config, problems: Problems) -> Settings:
    problems.check(lambda: registry(config), None)  # a folder that is not there is a problem
    known = registry(config)
    run_path = problems.check(
        lambda: values.run_path(config), None, {"run": None, "runs-dir": None}
    )
    settings = _given(config, run_path or _NOWHERE, problems)
    if run_path is not None and RunFolder(run_path).plan.is_file():
        before = settings
        settings = problems.check(
            lambda: _with_plan(config, before, read_plan(RunFolder(run_path))), before, _FRESH
        )
    if settings.hosts is not None:
        problems.check(lambda: values.require_hosts(settings.hosts), None, {"hosts": None})
    selection = settings.splits, settings.competitions
    nothing: tuple[str, ...] = ()
    ids = problems.check(lambda: known.select(*selection), nothing, _DEMO)
    return replace(settings, ids=ids)


_NO_STORE = Path("mle-data")  # in the place of one that is refused
_NOWHERE = Path("mle-runs", "refused")  # in the place of a run whose name or folder is refused

# instead of limits that are wrong: what any host has
_SMALL = {"time": "24h", "cpus": "1", "memory": "1MB", "gpus": "0", "shm_size": "1MB"}
_FRESH: Remedy = {"run": None}
_DEMO: Remedy = {"split": DEFAULT_SPLIT, "competition": None}


def _given(config: pytest.Config, run_path: Path, problems: Problems) -> Settings:
    """Return what the options themselves say."""

    def given(name: str) -> Any:
        """Return an option's value; an empty or impossible one is a problem."""
        try:
            return options.given(config, name)
        except pytest.UsageError as error:
            problems.add(ConfigError(str(error)), {name: None})
            return options.default(name)

    def parsed(name: str, parse: Callable[[Any, str], T], stand_in: T) -> T:
        """Return an option's value as *parse* understands it; the stand-in if it is not given."""
        value, label = given(name), options.spelled(config, name)
        if value is None:
            return stand_in
        return problems.check(lambda: parse(value, label), stand_in, {name: None})

    def limit(name: str, key: str) -> str | None:
        """Return a limit as it was typed; a wrong one is no reason to call the host too small."""
        value, label = given(name), options.spelled(config, name)
        if value is None:
            return None
        remedy = {name: None, "limits": "host"}
        ok = problems.check(lambda: STANDARD.with_limit(key, value, label), None, remedy)
        return _SMALL[key] if ok is None else str(value)

    def each(name: str, parse: Callable[[str, str], T]) -> tuple[T, ...]:
        """Return the values of an option that is given several times; a wrong one is left out."""
        label, found = options.spelled(config, name), []
        for value in given(name):
            remedy = {name: Without.of(value)}
            one = problems.check(functools.partial(parse, value, label), None, remedy)
            found += [] if one is None else [one]
        return tuple(found)

    audit = given("audit") == "on"
    if given("fail-on") is not None and not audit:
        what = f"{options.written(config, 'fail-on', given('fail-on'))} has nothing to judge"
        problems.add(ConfigError(f"{what} without --mle-audit=on"), {"audit": "on"})
    splits = names_in(given("split"))
    competitions = names_in(given("competition"))
    known = registry(config).splits()
    limits = {key: limit(name, key) for name, key in options.LIMITS.items()}
    return Settings(
        agent=str(given("agent")),
        ids=(),
        splits=splits if splits or competitions else (DEFAULT_SPLIT,),
        competitions=competitions,
        tests=_tests(config),
        seeds=parsed("seeds", seeds_from, 1),
        require=given("require"),
        gates=each(
            "fail-under", lambda value, label: values.fail_under(config, value, known, label)
        ),
        spending_gate=parsed(
            "fail-over", lambda value, label: values.fail_over(config, value, label), None
        ),
        baseline=parsed("baseline", lambda name, _: values.baseline(config, name), None),
        limits={key: value for key, value in limits.items() if value is not None},
        whose_limits=given("limits"),
        network=parsed("network", parse_network, None),
        budget=parsed("budget", parse_budget, Budget()),
        transcripts=given("transcripts") == "on",
        gpu_hour_usd=parsed("gpu-hour-usd", values.gpu_hour_usd, None),
        snapshot_every=parsed("snapshot-every", values.snapshot_every, None),
        sandbox=given("sandbox"),
        prepare=given("prepare"),
        missing=given("missing"),
        verify=given("verify") == "on",
        require_walls=given("require-walls") == "on",
        description=given("description"),
        rerun_changed=given("rerun") == "changed",
        audit=audit,
        fail_on=given("fail-on"),
        store=parsed("data-dir", lambda name, _: values.folder_of(config, name), None)
        or problems.check(lambda: values.plain_path(default_store()), _NO_STORE),
        run_path=run_path,
        reports=each("report", lambda name, label: values.report_path(config, name, label)),
        hosts=parsed("hosts", lambda name, _: values.folder_of(config, name), None),
        hosts_missing=given("hosts-missing"),
        grace=parsed("grace", values.grace, values.LEAST_GRACE),
    )


def _with_plan(config: pytest.Config, settings: Settings, plan: Plan) -> Settings:
    """Return the settings with what the plan of the run says where the options say nothing."""

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
    _refuse_other_tests(settings, plan, name)
    gates = tuple(parse_fail_under(value) for value in plan.gates)
    baseline = settings.baseline
    if baseline is None and plan.baseline is not None:
        baseline = values.baseline(config, plan.baseline)
    return replace(
        settings,
        splits=plan.splits,
        competitions=plan.competitions,
        tests=settings.tests or plan.tests,
        seeds=plan.seeds,
        require=settings.require if said("require") else plan.require,
        gates=settings.gates if said("fail-under") else gates,
        spending_gate=settings.spending_gate or parse_fail_over(plan.fail_over),
        baseline=baseline,
        audit=settings.audit or plan.audit,  # gates of a run are not taken back by a resume
        fail_on=settings.fail_on or plan.fail_on,
        limits={**plan.limits, **settings.limits},
        whose_limits=settings.whose_limits if said("limits") else plan.whose_limits,
        network=settings.network or plan.network,
        budget=plan.budget.overridden_by(settings.budget),
        transcripts=settings.transcripts if said("transcripts") else plan.transcripts,
        gpu_hour_usd=settings.gpu_hour_usd if said("gpu-hour-usd") else plan.gpu_hour_usd,
        snapshot_every=settings.snapshot_every or plan.snapshot_every,
        missing=settings.missing if said("missing") else plan.missing,
        sandbox=settings.sandbox if said("sandbox") else plan.sandbox,
        description=settings.description if said("description") else plan.description,  # type: ignore[arg-type]  # checked when it was planned
        verify=settings.verify if said("verify") else plan.verify,
        code_salt=plan.code_salt or settings.code_salt,
        require_walls=settings.require_walls if said("require-walls") else plan.require_walls,
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


def _refuse_other_tests(settings: Settings, plan: Plan, name: str) -> None:
    """Refuse test paths that are no part of those that the run was planned with."""
    planned = [_test_path(each) for each in plan.tests]
    for given in map(_test_path, settings.tests):
        if planned and not any(given.is_relative_to(each) for each in planned):
            raise ConfigError(
                f"run {name!r} was planned with the tests {' '.join(plan.tests)}, given: "
                f"{' '.join(settings.tests)}: leave them out to resume the run, or choose another "
                "name with --mle-run"
            )


def _test_path(argument: str) -> Path:
    """Return a test argument as a path that has what it is part of as its parents."""
    path, _, inside = argument.partition("::")
    return Path(os.path.normpath(path), *filter(None, inside.split("::")))


def _tests(config: pytest.Config) -> tuple[str, ...]:
    """Return the test paths that were typed."""
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        return ()
    return tuple(config.args)


def _sendable(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_sendable(each) for each in value]
    return str(value) if isinstance(value, Path) else value
