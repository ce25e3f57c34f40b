"""A session on several machines: who takes part, which item goes where, and how it ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_mlebench._units import show_duration
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.machines.hosts_file import Machine, Machines
from pytest_mlebench.machines.image_transfer import ImageSpool
from pytest_mlebench.machines.large_files import LargeFiles
from pytest_mlebench.machines.link import BEAT, tell
from pytest_mlebench.machines.posting import KEY, Posting
from pytest_mlebench.machines.slurm import wait_for_end
from pytest_mlebench.machines.slurm_jobs import SlurmJobs
from pytest_mlebench.plugin.allocations import Allocations
from pytest_mlebench.plugin.custody import Custody
from pytest_mlebench.plugin.distribution import LOSSES, Distribution
from pytest_mlebench.plugin.host_desk import HostDesk
from pytest_mlebench.plugin.host_disclosure import HostDisclosure
from pytest_mlebench.plugin.host_images import HostImages
from pytest_mlebench.plugin.host_looks import HostLooks
from pytest_mlebench.plugin.host_packages import HostPackages, run_token, worker_arguments
from pytest_mlebench.plugin.results_log import ResultsLog
from pytest_mlebench.plugin.session import MleSession
from pytest_mlebench.plugin.settings import WORKER_KEY
from pytest_mlebench.plugin.worker_endings import WorkerEndings
from pytest_mlebench.reports.results import ItemKey

if TYPE_CHECKING:
    from pytest_mlebench.machines.participants import FleetMembership, Slot

BEATS = 6  # within a grace or a keepalive, at least
LONGEST_BEAT = 10.0  # seconds
RECONNECTIONS = 50  # of an attempt that goes on without us, before something else must be wrong
_THERE_ALREADY, _PREPARED_THERE, _ANYWHERE = range(3)  # how much a machine should run an item


class Fleet(Distribution):
    """The machines of a session."""

    def __init__(self, session: MleSession, log: ResultsLog, machines: Machines) -> None:
        super().__init__(session, log)
        self.machines = machines
        self._packages = HostPackages(session)
        self._disclosure = HostDisclosure(log)
        self._desk: HostDesk | None = None  # from here on there once the run's folder is
        self._members: FleetMembership | None = None
        self._token = ""
        self._prepared: dict[str, set[str]] = {}  # competitions, by machine
        self._images = HostImages(session, machines.keepalive)
        self._spool: ImageSpool | None = None
        self._jobs: SlurmJobs | None = None
        self._allocations = Allocations(session)
        self._looks = HostLooks(session, machines, self._allocations)
        self._workers: list[Any] = []
        self._endings = WorkerEndings()
        self._over = threading.Event()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Look at all machines, and refuse what cannot work before anything runs."""
        super().pytest_sessionstart(session)
        if self._elastic is not None:
            try:
                self._looks.take()
                self._allocations.disclose(self._pools)
                reachable = self._looks.reachable
                there = (each for each in self.machines.machines if each.name in reachable)
                self.session.image = self._images.find(there)
                self._looks.disclose_disks()
            except ConfigError as error:
                raise pytest.UsageError(str(error)) from None
            self._internals.replace_node_manager(self._begin)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Give a worker what it needs on its machine."""
        super().pytest_configure_node(node)
        self._workers.append(node)
        sent = self.session.settings.to_dict() | {"reports": [], "baseline": None}
        node.workerinput[WORKER_KEY] = sent | {"store": node.mle_slot.machine.data or ""}
        node.workerinput[KEY] = self._posting(node.mle_slot).to_dict()

    @pytest.hookimpl(tryfirst=True)  # xdist's own is the loop
    def pytest_runtestloop(self) -> None:
        """Begin to watch who is there."""
        if self._members is not None:
            self._members.start_watching()

    @pytest.hookimpl
    def pytest_keyboard_interrupt(self) -> None:
        """End everything on every machine, and say so."""
        self._over.set()
        if self._members is None:
            return
        self._members.end()
        super().pytest_keyboard_interrupt()
        there = [node for node in self._workers if node.mle_slot.worker is node]
        ended, silent = self._endings.wait(there)
        self._end_jobs()
        silent |= {place.partition("#")[0] for place in self._custody.absent_machines()}
        silent -= {machine.name for machine in self._pools}  # their allocations are cancelled
        if ended:
            self.say(f"everything has ended on {', '.join(sorted(ended))}")
        if silent:
            grace = show_duration(self.session.settings.grace)
            names = ", ".join(sorted(silent))
            self.say(f"{names} could not be told: attempts there end themselves within {grace}")

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """Stop connecting and beating, and take back what Slurm was asked for."""
        self._over.set()
        if self._members is not None:
            self._members.end()
            self._end_jobs()
        if self._spool is not None:
            self._spool.remove()
        super().pytest_unconfigure()

    def _end_jobs(self) -> None:
        if self._pools and self._jobs is not None:
            self._jobs.end()

    def say(self, text: str) -> None:
        """Print a line about the machines."""
        reporter = self.session.config.pluginmanager.getplugin("terminalreporter")
        if reporter is not None:
            reporter.ensure_newline()
            reporter.write_line(f"mle-bench: {text}")

    def rank(self, nodeid: str, worker: Any) -> int | None:
        """Keep an item where its attempt is; else prefer a machine that has the data."""
        key = self.log.key_of(nodeid)
        if key is None:
            return _ANYWHERE
        if not self._allocations.last_for(worker, key):
            return None
        if self._custody.machine_of(key) is not None:
            return _THERE_ALREADY if self._custody.may_have(key, worker.machine) else None
        there = self._prepared.get(worker.machine, set())
        return _PREPARED_THERE if key.competition in there else _ANYWHERE

    def is_lost(self, nodeid: str, worker: Any) -> bool:
        """Leave an item with the machine that may still have its attempt; else count the loss."""
        key = self.log.key_of(nodeid)
        if key is None or self._custody.machine_of(key) != worker.machine:
            return super().is_lost(nodeid, worker)
        self._losses[f"{nodeid} goes on"] += 1
        return self._losses[f"{nodeid} goes on"] >= RECONNECTIONS

    def _lose_job(self, place: str, job: str) -> None:
        """Give back the items of an allocation that ends, as soon as Slurm says that it has."""
        members, grace = self._members, self.session.settings.grace

        def watch() -> None:
            if wait_for_end(job, grace) and members is not None:
                members.soon(lambda: self._count_losses(self._custody.gone(place)))

        threading.Thread(target=watch, name="mlebench-job", daemon=True).start()

    def is_done(self, nodeid: str) -> None:
        """Let an item that is over belong to nobody."""
        if (key := self.log.key_of(nodeid)) is not None:
            self._custody.release(key)

    def replace(self, worker: Any) -> bool:
        """Try to reach the machine of a lost worker again."""
        if self._members is None:
            return False
        comes = self._members.lose(worker)
        if not self._members.connected(worker.machine):
            self._custody.lose(worker.machine)
        return comes

    def answers(self) -> Mapping[str, Callable[..., Any]]:
        """Return what workers may ask for."""
        desk = {} if self._desk is None else self._desk.answers()
        own: dict[str, Callable[..., Any]] = {
            "greet": self._greet,
            "refuse": self._refuse,
            "prepared": self._note_prepared,
            "ended": self._endings.note,
        }
        image = {} if self._spool is None else self._spool.answers()
        return {**super().answers(), **desk, **image, **own}

    @property
    def _pools(self) -> list[Machine]:
        return [machine for machine in self.machines.machines if machine.srun is not None]

    @property
    def _session_usd(self) -> float | None:
        """Return what all attempts may spend on models together, if they may spend anything."""
        agent = self.session.agent
        return self.session.budget(agent).session_usd if agent.models else None

    @property
    def _custody(self) -> Custody:
        if self._desk is None:
            raise RuntimeError("the run is not open")
        return self._desk.custody

    def _end_spent(self) -> None:
        """Let workers end whose allocations are too old for every item that is left."""
        elastic = self._elastic
        if elastic is None or elastic.is_ending or elastic.scheduler is None:
            return
        keys = [self.log.key_of(nodeid) for nodeid in elastic.scheduler.waiting()]
        for node in self._allocations.spent(keys):
            if elastic.scheduler.is_idle(node) and not node.shutting_down:
                node.mle_is_spent = True  # another one is asked for when it has ended
                node.shutdown()

    def _begin(self, manager: Any, putevent: Any) -> list[Any]:
        """Connect to the machines; called by xdist when the run's folder is open."""
        from pytest_mlebench.machines.participants import (
            FleetMembership,  # late on purpose: with xdist
        )

        settings, elastic = self.session.settings, self._elastic
        if elastic is None:
            raise RuntimeError("xdist has no session")
        custody = Custody(settings.run, settings.grace)
        custody.resume()
        self._token = run_token(settings.run.path / ".token")
        # a name that no other run has
        self._jobs = SlurmJobs(f"mlebench-{self._token[:16]}", self.machines.keepalive)
        self._spool = self._images.spool()
        large_files = LargeFiles(self.machines.keepalive)
        self._desk = HostDesk(
            settings.run,
            custody,
            self._packages.all(),
            self._item_of,
            self._given_to,
            large_files,
            self._session_usd,
        )
        self._members = FleetMembership(
            machines=self.machines,
            arguments=worker_arguments(self.session.config, settings.agent),
            elastic=elastic,
            say=self.say,
            look=self._look_around,
            wait_seconds=settings.grace,
            jobs=self._jobs,
            lose_job=self._lose_job,
            is_busy=self._spool.is_busy,
            has_attempts=lambda machine: machine in custody.absent_machines(),
            items=max(1, len(settings.ids) * settings.seeds),
        )
        threading.Thread(target=self._beat, name="mlebench-beat", daemon=True).start()
        warn = settings.hosts_missing == "warn"
        # who waits in the queue of Slurm is not waited for
        expected = self._looks.reachable - {each.name for each in self._pools}
        self._lose_ended_jobs()
        workers = self._members.begin(manager, putevent, expected, warn=warn)
        if (difference := self._images.difference()) is not None:
            manager.teardown_nodes()
            raise pytest.UsageError(difference)
        return workers

    def _lose_ended_jobs(self) -> None:
        """Give back what an earlier session had in allocations that have ended since."""
        for place in self._custody.absent_machines():
            _, mark, job = place.partition("#")
            if mark:
                self._lose_job(place, job)

    def _posting(self, slot: Slot) -> Posting:
        return self._packages.posting(
            machine=slot.machine.name,
            job=slot.job,
            token=self._token,
            silence=self.machines.keepalive,
            session_usd=self._session_usd,
        )

    def _beat(self) -> None:
        """Tell all machines again and again that we are there; in a thread of its own."""
        shortest = min(self.session.settings.grace, self.machines.keepalive) / BEATS
        every = min(shortest, LONGEST_BEAT)
        while True:
            self._custody.beat(every)
            for channel in list(self._channels):
                tell(channel, BEAT)
            if self._over.wait(every):
                return

    def _look_around(self) -> None:
        """Give back what has outlived its grace, and end what is too old; every second."""
        self._end_spent()
        self._count_losses(self._custody.expire())

    def _count_losses(self, keys: list[ItemKey]) -> None:
        elastic = self._elastic
        for key in keys:
            nodeid = self.log.nodeid_of(key)
            if nodeid is None or elastic is None:
                continue
            self._losses[nodeid] += 1
            if self._losses[nodeid] >= LOSSES:
                lost = SimpleNamespace(gateway=SimpleNamespace(id="of a lost host"))
                elastic.give_up(nodeid, lost)
        if keys and elastic is not None:
            elastic.hand_out()

    def _item_of(self, worker: Any) -> ItemKey | None:
        scheduler = None if self._elastic is None else self._elastic.scheduler
        nodeid = None if scheduler is None else scheduler.item_of(worker)
        return None if nodeid is None else self.log.key_of(nodeid)

    def _given_to(self, key: ItemKey) -> str | None:
        """Return the machine whose worker has an item now, if one has."""
        there = (node for node in list(self._workers) if self._item_of(node) == key)
        return next((node.machine for node in there), None)

    def _greet(self, node: Any, facts: Mapping[str, Any], left: list[dict[str, Any]]) -> list[str]:
        """Take a machine in; called in the thread of its connection."""
        if self._desk is None or self._members is None:
            raise RuntimeError("the run is not open")
        unwanted = self._desk.unwanted(node.machine, left)
        lost = self._custody.found(node.machine, {each["name"] for each in left} - set(unwanted))
        self._prepared[node.machine] = set(facts["prepared"])
        self._allocations.note(node, facts["seconds_left"])
        if facts["image"] is not None:
            self._images.note(node.machine, facts["image"])
        self._members.soon(partial(self._members.greet, node, facts["slots"]))
        self._members.soon(partial(self._disclosure.greet, node.mle_slot.machine.name, facts))
        self._members.soon(partial(self._count_losses, lost))
        return unwanted

    def _refuse(self, node: Any, problems: list[str]) -> None:
        if self._members is not None:
            self._members.soon(partial(self._members.refuse, node, problems))
            name = node.mle_slot.machine.name
            self._members.soon(partial(self._disclosure.refuse, name, problems))

    def _note_prepared(self, node: Any, competitions: list[str]) -> None:
        """Take note of data that a machine has prepared since it came."""
        self._prepared.setdefault(node.machine, set()).update(competitions)
