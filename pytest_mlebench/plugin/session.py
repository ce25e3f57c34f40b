"""A session with an agent: its settings, and what the fixtures ask of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from pytest_mlebench.agent import Agent, parse_network
from pytest_mlebench.attempts.record import Run
from pytest_mlebench.competition import Competition
from pytest_mlebench.dataset import Dataset
from pytest_mlebench.errors import ConfigError, DatasetError, UnknownName
from pytest_mlebench.grade import Grade
from pytest_mlebench.limits import STANDARD, Limits, demo_limits
from pytest_mlebench.plugin import options
from pytest_mlebench.plugin.selection import chosen_splits, marked, registry, seeds_from, selected
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.results import Result
from pytest_mlebench.reports.summary import Gate, parse_fail_under
from pytest_mlebench.store.location import default_store

if TYPE_CHECKING:
    from pytest_mlebench.attempts.run import Attempt
    from pytest_mlebench.sandbox import Sandbox
    from pytest_mlebench.store.store import Store

SESSION = pytest.StashKey["MleSession"]()
RESULT = pytest.StashKey[Result]()

AT_HOME = ("demo", "custom")  # competitions that run on what the host has


@dataclass
class MleSession:
    """What the options say, checked; and the parts that are made once."""

    config: pytest.Config
    registry: Registry
    ids: tuple[str, ...]
    splits: tuple[str, ...]
    seeds: int
    require: str
    gates: tuple[Gate, ...]
    baseline: Path | None
    limit_options: dict[str, object]
    network_option: str | None
    snapshot_every: float | None
    sandbox_name: str
    prepare: str
    missing: str
    verify: bool
    description: Literal["ours", "kaggle"]
    store_folder: Path
    run_folder: Path
    reports: tuple[Path, ...]
    started: float = field(default_factory=time.time)
    last_grade: Grade | None = None  # for the explanation of a failing comparison
    _agent: Agent | ConfigError | None = None
    _sandboxes: dict[str, Sandbox] = field(default_factory=dict)

    @property
    def is_worker(self) -> bool:
        """Tell whether this process is a worker of xdist."""
        return hasattr(self.config, "workerinput")

    @property
    def agent_name(self) -> str:
        """Return what ``--mle-agent`` says."""
        return str(options.given(self.config, "agent"))

    @property
    def shown_agent(self) -> str:
        """Return the agent's name for people: its own, else what the option says."""
        return self.agent_name if self.agent_is_overridden else self.agent.name

    @property
    def agent(self) -> Agent:
        """Return the agent that ``--mle-agent`` stands for."""
        if self._agent is None:
            self._agent = _find_agent(self.config, self.agent_name)
        if isinstance(self._agent, ConfigError):
            raise self._agent
        return self._agent

    @property
    def agent_is_overridden(self) -> bool:
        """Tell whether a conftest brings its own ``mle_agent``, so that the name need not exist."""
        ours = "pytest_mlebench.plugin.fixtures"
        plugins = self.config.pluginmanager.get_plugins()
        return any(
            hasattr(plugin, "mle_agent") and getattr(plugin, "__name__", "") != ours
            for plugin in plugins
        )

    @property
    def store(self) -> Store:
        """Return the dataset store."""
        from pytest_mlebench.store.store import Store  # late on purpose: heavy

        return Store(self.store_folder)

    @property
    def hidden(self) -> tuple[Path, ...]:
        """Return what an agent must not be able to read: the datasets and the runs."""
        return (self.store_folder.absolute(), self.run_folder.parent.absolute())

    def network(self, agent: Agent) -> str:
        """Return the network policy: the option's, else the agent's, else open."""
        return self.network_option or agent.network or "open"

    def limits(
        self, competition: Competition, agent: Agent, node: pytest.Item | None = None
    ) -> Limits:
        """Return the limits of an attempt."""
        base = demo_limits() if competition.complexity in AT_HOME else STANDARD
        limits = Limits.from_table(agent.limits, where=f"agent {agent.name!r}", base=base)
        if node is not None:
            wishes = marked(node).limits
            limits = Limits.from_table(wishes, where=f"the marker of {node.name}", base=limits)
        limits = Limits.from_table(self.limit_options, where="--mle-*", base=limits)
        changed = self.config.hook.pytest_mle_limits(
            config=self.config, competition=competition.id, limits=limits
        )
        return limits if changed is None else changed

    def sandbox(self, agent: Agent) -> Sandbox:
        """Return the sandbox of an agent, made once."""
        name = self.sandbox_name
        if name == "auto":
            name = "docker" if agent.image or agent.build else "process"
        if name not in self._sandboxes:
            made = self.config.hook.pytest_mle_sandbox(config=self.config, name=name, agent=agent)
            self._sandboxes[name] = made or self._make_sandbox(name)
        return self._sandboxes[name]

    def _make_sandbox(self, name: str) -> Sandbox:
        if name == "docker":
            from pytest_mlebench.sandbox.docker import DockerSandbox  # late on purpose: heavy

            return DockerSandbox(cache=self.run_folder.parent / ".docker", hidden=self.hidden)
        from pytest_mlebench.sandbox.process.process_sandbox import (
            ProcessSandbox,  # late on purpose: heavy
        )

        return ProcessSandbox()

    def dataset(self, competition: Competition) -> Dataset:
        """Return a prepared dataset; what is missing fails or skips as the options say."""
        from pytest_mlebench.kaggle.descriptions import with_description  # late: heavy
        from pytest_mlebench.kaggle.leaderboards import with_leaderboard

        store = self.store
        try:
            dataset = store.ensure(competition, prepare=self.prepare != "never", verify=self.verify)
        except (DatasetError, ConfigError) as error:
            if self.missing == "skip" and store.find(competition) is None:
                pytest.skip(str(error))
            raise
        dataset = replace(dataset, competition=with_leaderboard(competition, store))
        return with_description(dataset, store, self.description)

    def run(self, attempt: Attempt, node: pytest.Item) -> Run:
        """Return the finished run of an attempt."""
        from pytest_mlebench.attempts.run import (
            run_attempt,  # late on purpose: only when an agent runs
        )

        if self.prepare == "only":
            pytest.skip("the dataset is prepared; --mle-prepare=only runs nothing else")
        competition = attempt.dataset.competition.id
        hook = self.config.hook
        run = run_attempt(
            attempt,
            self.run_folder / competition / f"seed{attempt.seed}",
            network=self.network(attempt.agent),
            snapshot_every=self.snapshot_every,
            hidden=self.hidden,
            before=lambda job, run: hook.pytest_mle_before_run(
                config=self.config, job=job, run=run
            ),
            after=lambda job, run: hook.pytest_mle_after_run(config=self.config, job=job, run=run),
        )
        node.stash[RESULT] = Result.from_run(run)
        return run

    def grade(self, run: Run, dataset: Dataset, node: pytest.Item) -> Grade:
        """Return the grade of a run."""
        from pytest_mlebench.attempts.run import (
            grade_run,  # late on purpose: only when an agent ran
        )

        known = run.grade
        grade = grade_run(run, dataset)
        if known is None:
            self.config.hook.pytest_mle_graded(config=self.config, run=run, grade=grade)
        self.last_grade = grade
        node.stash[RESULT] = Result.from_run(run)
        return grade

    def requirement(self, node: pytest.Item) -> str | None:
        """Return what a node must reach: its marker's word, else in the suite the option's."""
        from pytest_mlebench.plugin.suite import NODE

        own = marked(node).require
        return own or (self.require if node.nodeid.startswith(f"{NODE}::") else None)


def start(config: pytest.Config) -> None:
    """Check the options and register what an active session consists of."""
    from pytest_mlebench.plugin.collection import SuiteCollection
    from pytest_mlebench.plugin.terminal import Terminal
    from pytest_mlebench.plugin.verdicts import Outcomes

    try:
        session = from_options(config)
    except ConfigError as error:
        raise pytest.UsageError(str(error)) from None
    config.stash[SESSION] = session
    config.pluginmanager.register(SuiteCollection(session), "mlebench-collection")
    config.pluginmanager.register(Outcomes(session), "mlebench-outcomes")
    if not session.is_worker:
        config.pluginmanager.register(Terminal(session), "mlebench-terminal")
    if config.pluginmanager.has_plugin("xdist"):
        from pytest_mlebench.plugin.distribution import Distribution

        config.pluginmanager.register(Distribution(session), "mlebench-distribution")


def current(config: pytest.Config) -> MleSession | None:
    """Return the session, if there is an agent."""
    return config.stash.get(SESSION, None)


def from_options(config: pytest.Config) -> MleSession:
    """Return what the options say, checked."""

    def given(name: str) -> Any:
        return options.given(config, name)

    known = registry(config)
    network = given("network")
    limit_options = {key: v for name, key in options.LIMITS.items() if (v := given(name))}
    Limits.from_table(limit_options, where="--mle-*", base=STANDARD)  # wrong values end here
    session = MleSession(
        config=config,
        registry=known,
        ids=selected(config),
        splits=chosen_splits(config),
        seeds=seeds_from(given("seeds"), "--mle-seeds"),
        require=given("require"),
        gates=tuple(parse_fail_under(value, known.splits()) for value in given("fail-under")),
        baseline=_baseline(config, given("baseline")),
        limit_options=limit_options,
        network_option=network and parse_network(network, "--mle-network"),
        snapshot_every=_snapshot_every(given("snapshot-every")),
        sandbox_name=given("sandbox"),
        prepare=given("prepare"),
        missing=given("missing"),
        verify=given("verify") == "on",
        description=given("description"),
        store_folder=_folder(config, given("data-dir")) or default_store(),
        run_folder=_run_folder(config, given("runs-dir"), given("run")),
        reports=_reports(config, given("report")),
    )
    try:
        session._agent = _find_agent(config, session.agent_name)
    except UnknownName as error:
        if not session.agent_is_overridden:
            raise
        session._agent = error
    return session


def _find_agent(config: pytest.Config, name: str) -> Agent:
    from pytest_mlebench.agents.find import find_agent  # late on purpose: only with an agent

    own = config.hook.pytest_mle_agent(config=config, name=name)
    return find_agent(name, rootdir=config.rootpath, registered=[own] if own else [])


def _snapshot_every(value: str | None) -> float | None:
    if value is None:
        return None
    from pytest_mlebench.sandbox.snapshots import parse_every  # late on purpose: only if asked for

    return parse_every(value, "--mle-snapshot-every")


def _folder(config: pytest.Config, name: str | None) -> Path | None:
    return None if name is None else config.invocation_params.dir / Path(name).expanduser()


def _run_folder(config: pytest.Config, runs: str, name: str | None) -> Path:
    if workerinput := getattr(config, "workerinput", None):
        return Path(workerinput["mle_run_folder"])
    if name is None:
        agent = "".join(
            c if c.isalnum() else "-" for c in Path(options.given(config, "agent")).name
        )
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-{agent[:40].strip('-')}"
    if name in {"", ".", ".."} or "/" in name or name.startswith("."):
        raise ConfigError(f"--mle-run must be a plain name, given: {name!r}")
    folder = _folder(config, runs)
    if folder is None or (folder.exists() and not folder.is_dir()):
        raise ConfigError(f"--mle-runs-dir must be a folder, given: {runs}")
    return folder / name


def _baseline(config: pytest.Config, name: str | None) -> Path | None:
    path = _folder(config, name)
    if path is not None and not getattr(config, "workerinput", None):
        from pytest_mlebench.reports.report import Report

        Report.load([path], registry(config))  # what cannot be read ends here, not after a day
    return path


def _reports(config: pytest.Config, names: Sequence[str]) -> tuple[Path, ...]:
    if not names:
        return ()
    from pytest_mlebench.reports.report import check_suffix

    paths = [_folder(config, name) for name in names]
    return tuple(check_suffix(path, "--mle-report") for path in paths if path is not None)
