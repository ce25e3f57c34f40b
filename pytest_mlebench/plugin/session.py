"""A session with an agent: what the fixtures ask of it, each part made once."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest

from pytest_mlebench.agent import Agent
from pytest_mlebench.attempts.identity import Identity, identify_agent
from pytest_mlebench.attempts.keeping import HeldHere
from pytest_mlebench.attempts.record import Run
from pytest_mlebench.attempts.run_results import result_of
from pytest_mlebench.budget import Budget
from pytest_mlebench.competition import Competition
from pytest_mlebench.dataset import Dataset
from pytest_mlebench.errors import ConfigError, DatasetError, UnknownName, WallMissing
from pytest_mlebench.grade import Grade
from pytest_mlebench.host.demo_limits import demo_limits
from pytest_mlebench.limits import STANDARD, Limits
from pytest_mlebench.plugin import options
from pytest_mlebench.plugin.selection import marked, registry
from pytest_mlebench.plugin.settings import Settings
from pytest_mlebench.plugin.worker_link import keeping_of, link_of, posting_of, travelled_agent
from pytest_mlebench.reports.results import ItemKey, Result

if TYPE_CHECKING:
    from pytest_mlebench.attempts.run import Circumstances
    from pytest_mlebench.sandbox import ImageIdentity, Imaging, Job, Sandbox
    from pytest_mlebench.store.store import Store

SESSION = pytest.StashKey["MleSession"]()
ITEM_KEY = pytest.StashKey[ItemKey]()  # of an item: what identifies it
RESULT = pytest.StashKey[Result]()  # of an item: what became of its attempt so far
GRADE = pytest.StashKey[Grade]()  # of an item: its grade

FIXTURES = "pytest_mlebench.plugin.fixtures"  # the module of our own
AT_HOME = ("demo", "custom")  # competitions that run on what the host has


class MleSession:
    """What an active session consists of, beside pytest's own."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self.config = config
        self.settings = settings
        self.registry = registry(config)
        self.posting = posting_of(config)
        self.agent_is_stand_in = False  # for one that does not exist, while its list is made
        self.attempts, self.hours = 0, 0.0  # that the tests collected so far ask for
        self.has_hosts = settings.hosts is not None  # attempts run on other machines
        self.image: ImageIdentity | None = None  # that all hosts of the session have to use
        self.notes: list[str] = []  # further lines for the header and the disclosure
        self._agent = self._find_agent()
        self._sandboxes: dict[str, Sandbox] = {}
        self._identities: dict[int, tuple[Agent, Identity]] = {}
        self._limits: dict[tuple[str, Limits], Limits] = {}
        self._datasets: dict[str, tuple[tuple[int, int] | None, Dataset]] = {}
        self.hidden = (*settings.hidden, *self.registry.own_raw())

    @property
    def is_worker(self) -> bool:
        """Tell whether this process is a worker of xdist."""
        return hasattr(self.config, "workerinput")

    @property
    def shown_agent(self) -> str:
        """Return the agent's name for people: its own, else what the option says."""
        return self.settings.agent if isinstance(self._agent, ConfigError) else self._agent.name

    @property
    def agent(self) -> Agent:
        """Return the agent that ``--mle-agent`` stands for."""
        if isinstance(self._agent, ConfigError):
            raise self._agent
        return self._agent

    @property
    def agent_is_overridden(self) -> bool:
        """Tell whether a conftest brings its own ``mle_agent``, so that the name need not exist."""
        plugins = self.config.pluginmanager.get_plugins()
        bringing = (plugin for plugin in plugins if hasattr(plugin, "mle_agent"))
        return any(getattr(plugin, "__name__", "") != FIXTURES for plugin in bringing)

    @cached_property
    def _home_limits(self) -> Limits:
        return demo_limits()

    @cached_property
    def store(self) -> Store:
        """Return the dataset store."""
        from pytest_mlebench.store.store import Store  # late on purpose: heavy

        return Store(self.settings.store)

    def network(self, agent: Agent) -> str:
        """Return the network policy: the option's, else the agent's, else open."""
        return self.settings.network or agent.network or "open"

    def budget(self, agent: Agent) -> Budget:
        """Return what an attempt may spend on its models: the agent's bounds, or the option's."""
        if self.settings.budget and not agent.models:
            label = options.spelled(self.config, "budget")
            raise ConfigError(
                f"{label} bounds what agent {agent.name!r} spends on models, and it has none: "
                "give it a [models.NAME], for only calls through it can be counted"
            )
        return agent.budget.overridden_by(self.settings.budget)

    def limits(
        self, competition: Competition, agent: Agent, node: pytest.Item | None = None
    ) -> Limits:
        """Return the limits of an attempt; the hook is asked once about each."""
        base = self._home_limits if competition.complexity in AT_HOME else STANDARD
        limits = Limits.from_table(agent.limits, where=f"agent {agent.name!r}", base=base)
        if node is not None:
            wishes = marked(node).limits
            limits = Limits.from_table(wishes, where=f"the marker of {node.name}", base=limits)
        if self.settings.whose_limits == "host":
            limits = self._within_host(limits, agent)
        limits = self.settings.changed_limits(limits)
        key = (competition.id, limits)
        if key not in self._limits:
            changed = self.config.hook.pytest_mle_limits(
                config=self.config, competition=competition.id, limits=limits
            )
            self._limits[key] = limits if changed is None else changed
        return self._limits[key]

    def sandbox(self, agent: Agent) -> Sandbox:
        """Return the sandbox of an agent, made once."""
        name = self.settings.sandbox
        if name == "auto":
            name = _fitting_sandbox(agent)
        if name not in self._sandboxes:
            made = self.config.hook.pytest_mle_sandbox(config=self.config, name=name, agent=agent)
            if made is not None and self.settings.require_walls:
                raise WallMissing(
                    f"--mle-require-walls: nobody can tell the walls of the sandbox {made.name!r}, "
                    "which a hook has made: leave one of them out"
                )
            self._sandboxes[name] = made or self._make_sandbox(name)
        return self._sandboxes[name]

    def _within_host(self, limits: Limits, agent: Agent) -> Limits:
        """Return as much of the limits as the host of the attempts has."""
        from pytest_mlebench.host.leases import Leasing, host_capacity  # late: an agent runs
        from pytest_mlebench.host.within import within_capacity

        sandbox = self.sandbox(agent)
        idle = replace(limits, gpus=0)
        capacity = sandbox.capacity(idle) if isinstance(sandbox, Leasing) else host_capacity()
        return within_capacity(limits, capacity)

    def identity(self, agent: Agent) -> Identity:
        """Return what an agent is, looked at once: it must not change under a session's hands."""
        if self.posting is not None and self.posting.identity is not None and agent is self._agent:
            return Identity(self.posting.identity)  # as the controller has found it
        known = self._identities.get(id(agent))
        if known is None or known[0] is not agent:
            identity = identify_agent(agent, hidden=self.hidden, image=self._digest(agent))
            known = self._identities[id(agent)] = (agent, identity)
        return known[1]

    def _digest(self, agent: Agent) -> str | None:
        """Return what identifies the content of an agent's image, if it has one."""
        if self.image is not None and agent is self._agent:
            return self.image.digest
        image = getattr(self.sandbox(agent), "image_digest", None)
        return None if image is None else str(image(agent))

    def dataset(self, competition: Competition) -> Dataset:
        """Return a prepared dataset, looked at once unless it is made anew."""
        stamp = self.store.stamp(competition)
        known = self._datasets.get(competition.id)
        if stamp is None or known is None or known[0] != stamp:
            dataset = self._ensured(competition)
            known = self._datasets[competition.id] = self.store.stamp(competition), dataset
        return known[1]

    def _ensured(self, competition: Competition) -> Dataset:
        """Return a dataset, prepared if need be; what is missing fails or skips as asked for."""
        from pytest_mlebench.kaggle.descriptions import with_description  # late: heavy
        from pytest_mlebench.kaggle.leaderboards import with_leaderboard

        store, settings = self.store, self.settings
        try:
            dataset = store.ensure(
                competition, prepare=settings.prepare != "never", verify=settings.verify
            )
        except (DatasetError, ConfigError) as error:
            if settings.missing == "skip" and store.find(competition) is None:
                pytest.skip(str(error))
            raise
        kept = store.folder(competition)
        dataset = replace(dataset, competition=with_leaderboard(competition, kept))
        return with_description(dataset, kept, settings.description)

    def run(
        self,
        node: pytest.Item,
        dataset: Dataset,
        seed: int,
        agent: Agent,
        limits: Limits,
        sandbox: Sandbox,
        *,
        known: Run | None = None,
    ) -> Run:
        """Return the finished attempt of an item, which may be *known* from an earlier session."""
        # late on purpose: only when an agent runs
        from pytest_mlebench.attempts.run import Attempt, finished, run_attempt

        if self.settings.prepare == "only":
            pytest.skip("the dataset is prepared; --mle-prepare=only runs nothing else")
        code_name = self.settings.run.code_name(dataset.competition.id)
        attempt = Attempt(
            item=node.stash[ITEM_KEY],
            dataset=dataset,
            seed=seed,
            agent=agent,
            limits=limits,
            sandbox=sandbox,
            network=self.network(agent),
            description=self.settings.description,
            code_name=code_name,
            agent_identity=self.identity(agent),
            budget=self.budget(agent),
        )
        folder = self.settings.run.seed(dataset.competition.id, seed)
        run = None if known is None else finished(attempt, (known,))
        if run is None or run.phase != "graded":
            run = run_attempt(attempt, folder, self._circumstances())
        node.stash[RESULT] = self._result(run)
        return run

    def grade(self, run: Run, dataset: Dataset, node: pytest.Item) -> Grade:
        """Return the grade of an attempt."""
        from pytest_mlebench.attempts.grade_attempt import (
            grade_run,  # late on purpose: an agent has run
        )

        known = run.grade
        grade = grade_run(run, dataset)
        if known is None:
            self.config.hook.pytest_mle_graded(config=self.config, run=run, grade=grade)
        if self.posting is not None:
            keeping = keeping_of(self, self.posting)
            keeping.deliver(self.settings.run.seed(run.competition, run.seed))
            grade = replace(grade, run=keeping.home(run.folder))
        node.stash[GRADE] = grade
        if known is None or RESULT not in node.stash:
            node.stash[RESULT] = self._result(run)
        return grade

    def grade_what_ran(self, node: pytest.Item) -> None:
        """Grade the attempt of an item whose test takes no grade."""
        arguments = getattr(node, "funcargs", {})
        run, dataset = arguments.get("mle_run"), arguments.get("mle_dataset")
        if isinstance(run, Run) and isinstance(dataset, Dataset) and GRADE not in node.stash:
            self.grade(run, dataset, node)

    def requirement(self, node: pytest.Item) -> str | None:
        """Return what a node must reach: its marker's word, else in the suite the option's."""
        from pytest_mlebench.plugin.suite import NODE  # late on purpose: a test module

        own = marked(node).require
        return own or (self.settings.require if node.nodeid.startswith(f"{NODE}::") else None)

    def _result(self, run: Run) -> Result:
        """Return the result of an attempt, with the folder that it has for the controller."""
        result = result_of(run)
        if self.posting is None:
            return result
        where = keeping_of(self, self.posting).home(run.folder)
        grade = None if result.grade is None else replace(result.grade, run=where)
        return replace(result, run=where, grade=grade)

    def _circumstances(self) -> Circumstances:
        from pytest_mlebench.attempts.run import Circumstances  # late on purpose: an agent runs

        hook, config, settings = self.config.hook, self.config, self.settings

        def before(job: Job, run: Run) -> None:
            hook.pytest_mle_before_run(config=config, job=job, run=run)

        def after(job: Job, run: Run, extra: dict[str, Any]) -> None:
            hook.pytest_mle_after_run(config=config, job=job, run=run, extra=extra)

        posting = self.posting
        keeping = HeldHere() if posting is None else keeping_of(self, posting)
        return Circumstances(
            session=settings.session,
            keeping=keeping,
            hidden=self.hidden,
            before=before,
            after=after,
            snapshot_every=settings.snapshot_every,
            rerun_changed=settings.rerun_changed,
            transcripts=settings.transcripts,
        )

    def _make_sandbox(self, name: str) -> Sandbox:
        if name == "docker":
            from pytest_mlebench.sandbox.docker import DockerSandbox  # late on purpose: heavy

            cache = self.settings.run_path.parent / ".docker"
            walls = self.settings.require_walls
            docker = DockerSandbox(cache=cache, hidden=self.hidden, require_walls=walls)
            self._expect_image(docker)
            return docker
        if name == "rootless":
            from pytest_mlebench.sandbox.rootless import RootlessSandbox  # late on purpose: heavy
            from pytest_mlebench.sandbox.rootless.image_cache import FOLDER

            cache, walls = self.settings.store / FOLDER, self.settings.require_walls
            rootless = RootlessSandbox(cache=cache, hidden=self.hidden, require_walls=walls)
            self._expect_image(rootless)
            return rootless
        # late on purpose: heavy
        from pytest_mlebench.sandbox.process.process_sandbox import ProcessSandbox

        return ProcessSandbox(require_walls=self.settings.require_walls)

    def _expect_image(self, sandbox: Imaging) -> None:
        """Let a sandbox on another machine take the image that the session has, and no other."""
        if self.posting is not None and self.posting.image is not None:
            # late on purpose: on other machines
            from pytest_mlebench.machines.image_transfer import fetch_image

            link = link_of(self.config)
            sandbox.expect_image(self.posting.image, lambda: fetch_image(link))

    def _find_agent(self) -> Agent | ConfigError:
        """Return the agent that the option names; an unknown name is no error if it is not used."""
        from pytest_mlebench.agents.find import find_agent  # late on purpose: only with an agent

        if self.posting is not None:
            return travelled_agent(self.config, self.posting)
        name, config = self.settings.agent, self.config
        own = config.hook.pytest_mle_agent(config=config, name=name)
        try:
            return find_agent(name, rootdir=config.rootpath, registered=[own] if own else [])
        except UnknownName as error:
            if not self.agent_is_overridden:
                raise
            return error


def _fitting_sandbox(agent: Agent) -> str:
    """Return the sandbox for an agent where nobody has chosen one."""
    if agent.image_archive is not None:
        return "rootless"  # which no engine has
    return "docker" if agent.image or agent.build else "process"


def current(config: pytest.Config) -> MleSession | None:
    """Return the session, if there is an agent."""
    return config.stash.get(SESSION, None)
