"""Who takes part: machines are connected at the same time, may come late, be lost and come back.

All of it happens in the session's own thread, except for connecting, which waits for the network.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

import pytest

from pytest_mlebench._units import show_duration
from pytest_mlebench.machines.hosts_file import Machine, Machines
from pytest_mlebench.machines.posting import place_name
from pytest_mlebench.machines.slurm_jobs import AllocationRefused, SlurmJobs
from pytest_mlebench.machines.ssh import execnet_spec, step_words
from pytest_mlebench.machines.xdist_internals import (
    UNREACHABLE,
    ElasticSession,
    MachineWorker,
    connect,
)

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0  # seconds between two tries to connect
HOLDING_PAUSE = 1.0  # the longest one to a machine that has attempts, which wait to be adopted
GREETING_SECONDS = 300.0  # for a host to start Python, look around and answer
EARLY_DEATHS = 4  # of workers in a row that never came to work: the machine is given up
REMIND_SECONDS = 60.0  # between two lines that nobody is there

Happening = Callable[[], None]


@dataclass(eq=False)
class Slot:
    """A place for one attempt at a time on a machine."""

    machine: Machine
    number: int
    generation: int = 0
    early_deaths: int = 0
    has_greeted: bool = False
    is_given_up: bool = False
    worker: Any = None
    job: str | None = None  # the allocation that Slurm has given for it, or is going to
    joined_job: str | None = None  # the last one in which a worker came to work
    trouble: str = ""  # why it cannot be reached, said once

    @property
    def name(self) -> str:
        """Return a name that no other worker of the session has."""
        again = f".{self.generation}" if self.generation else ""
        return f"{self.machine.name}.{self.number}{again}"

    @property
    def place(self) -> str:
        """Return where its attempts are, and can be adopted: the machine, or the allocation."""
        return place_name(self.machine.name, self.job)


@dataclass
class FleetMembership:
    """The machines of a session, and the workers on them."""

    machines: Machines
    arguments: list[str]  # of the workers' sessions
    elastic: ElasticSession
    say: Callable[[str], None]
    look: Happening  # something else to be done every second
    wait_seconds: float  # for a machine to come back when none is there
    jobs: SlurmJobs  # the allocations, if there are any
    has_attempts: Callable[[str], bool] = lambda _place: False
    lose_job: Callable[[str, str], None] = lambda _place, _job: None  # it ends, or has ended
    is_busy: Callable[[], bool] = lambda: False  # with what machines need before they can answer
    items: int = 1  # that there are to run: more slots than that are of no use
    slots: list[Slot] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._early: SimpleQueue[Happening] | None = SimpleQueue()
        self._ending = threading.Event()
        self._manager: Any = None
        self._putevent: Any = None
        self._alone_since: float | None = None
        self._said_at = 0.0
        self.problems: dict[str, list[str]] = {}  # by machine

    def begin(
        self, manager: Any, putevent: Any, expected: set[str], *, warn: bool = False
    ) -> list[Any]:
        """Connect to all machines and wait for the answers of those that are expected."""
        self._manager, self._putevent = manager, putevent
        for machine in self.machines.machines:
            # Slurm is asked for all at once: each waits in its queue by itself
            at_once = 1 if machine.srun is None else min(machine.slots or 1, self.items)
            jobs = self._existing_jobs(machine)
            for number in range(at_once):
                self._add(Slot(machine, number, job=next(jobs, None)))
            for job in jobs:
                self.jobs.cancel(job)  # fewer are wanted now
        deadline = time.monotonic() + GREETING_SECONDS
        while missing := expected - self._answered():
            try:
                self._early_queue().get(timeout=max(0.0, deadline - time.monotonic()))()
            except Empty:
                if self.is_busy():  # a large image takes its time
                    deadline = time.monotonic() + GREETING_SECONDS
                    continue
                for name in missing:
                    self.problems.setdefault(name, []).append(
                        f"does not answer within {show_duration(GREETING_SECONDS)}"
                    )
        if self.problems and (not warn or not any(slot.has_greeted for slot in self.slots)):
            self.end()
            manager.teardown_nodes()
            raise pytest.UsageError(self.describe_problems())
        for name, problems in self.problems.items():
            self.say(f"{name} cannot take part: {'; '.join(problems)}")
        early, self._early = self._early_queue(), None
        while not early.empty():
            self.elastic.call_soon(early.get())
        return [slot.worker or slot for slot in self.slots if not slot.is_given_up]

    def describe_problems(self) -> str:
        """Return what is wrong with all machines, as one list."""
        lines = [f"{name}: {text}" for name, texts in self.problems.items() for text in texts]
        head = f"{self.machines.path}: {len(self.problems)} of {len(self.machines.machines)}"
        return "\n  ".join((f"{head} hosts cannot take part:", *dict.fromkeys(lines)))

    def start_watching(self) -> None:
        """Look every second whether anybody is there."""
        threading.Thread(target=self._tick, name="mlebench-members", daemon=True).start()

    def end(self) -> None:
        """Stop connecting."""
        self._ending.set()

    def greet(self, worker: Any, slots: int) -> None:
        """Take a machine in that has everything it needs, and open the rest of its slots."""
        slot: Slot = worker.mle_slot
        slot.has_greeted, slot.early_deaths, slot.trouble = True, 0, ""
        slot.joined_job = slot.job
        machine = slot.machine
        self.problems.pop(machine.name, None)
        known = [each.number for each in self.slots if each.machine is machine]
        for number in range(1, min(machine.slots or slots, self.items)):
            if number not in known:
                self._add(Slot(machine, number))
        if slot.number == 0:
            self.say(f"{machine.name} is here: {machine.slots or slots} at a time")

    def refuse(self, worker: Any, problems: list[str]) -> None:
        """Take note of why a machine cannot take part; its worker ends by itself."""
        slot: Slot = worker.mle_slot
        if self.problems.get(slot.machine.name) != problems:
            self.problems[slot.machine.name] = problems
            if self._early is None:
                self.say(f"{slot.machine.name} cannot take part: {'; '.join(problems)}")

    def lose(self, worker: Any) -> bool:
        """Try to get a lost worker's machine back; tell whether anybody may still come."""
        slot: Slot = worker.mle_slot
        slot.worker = None
        spent = getattr(worker, "mle_is_spent", False)
        if spent:
            self.say(f"{slot.machine.name}: an allocation is too old for what is left: asking anew")
        else:
            self.say(f"{slot.machine.name} is lost: trying to reach it again")
        slot.early_deaths = 0 if slot.has_greeted else slot.early_deaths + 1
        if slot.job is not None and (spent or slot.early_deaths >= EARLY_DEATHS):
            self.jobs.cancel(slot.job)
            slot.job = None
        if slot.early_deaths >= EARLY_DEATHS:
            self._give_up(slot, "its workers end before they can work")
        elif not self.elastic.is_ending and not self._ending.is_set():
            slot.generation += 1
            slot.has_greeted = False
            self._connect(slot, FIRST_PAUSE * 2**slot.early_deaths - FIRST_PAUSE)
        return any(not each.is_given_up for each in self.slots)

    def connected(self, place: str) -> bool:
        """Tell whether a worker of a machine or an allocation is there."""
        return any(slot.worker is not None and slot.place == place for slot in self.slots)

    def _existing_jobs(self, machine: Machine) -> Iterator[str]:
        """Yield the allocations that an earlier session has left, those with attempts first."""
        jobs = [] if machine.srun is None else self.jobs.existing(machine.name)
        yield from sorted(
            jobs, key=lambda job: not self.has_attempts(place_name(machine.name, job))
        )

    def _early_queue(self) -> SimpleQueue[Happening]:
        if self._early is None:
            raise RuntimeError("the session has begun")
        return self._early

    def _answered(self) -> set[str]:
        there = {slot.machine.name for slot in self.slots if slot.has_greeted}
        return there | self.problems.keys()

    def soon(self, happening: Happening) -> None:
        """Let something happen in the session's own thread."""
        if self._early is not None:
            self._early.put(happening)
        else:
            self.elastic.call_soon(happening)

    def _add(self, slot: Slot) -> None:
        self.slots.append(slot)
        self._connect(slot)

    def _connect(self, slot: Slot, pause: float = 0.0) -> None:
        if self._early is None:
            self.elastic.await_member(slot)
        threading.Thread(target=self._try, args=(slot, pause), daemon=True).start()

    def _try(self, slot: Slot, pause: float) -> None:
        """Connect, however long it takes; in a thread of its own."""
        self._ending.wait(pause)
        pause = FIRST_PAUSE
        while not self._ending.is_set():
            try:
                step = None if slot.machine.srun is None else self._step(slot)
                spec = execnet_spec(slot.machine, self.machines.keepalive, slot.name, step)
                gateway = connect(self._manager, spec)
            except (*UNREACHABLE, AllocationRefused, AssertionError, ValueError) as problem:
                slot.generation += 1
                refused = isinstance(problem, AllocationRefused)
                text = str(problem) if refused else type(problem).__name__
                self.soon(partial(self._trouble, slot, text))
                if slot.early_deaths >= EARLY_DEATHS:
                    self.soon(partial(self._give_up, slot, "its allocations end too early"))
                    return
                self._ending.wait(pause * random.uniform(0.8, 1.2))
                holding = self.has_attempts(slot.place)
                pause = min(pause * 2, HOLDING_PAUSE if holding else LONGEST_PAUSE)
            else:
                self.soon(partial(self._join, slot, gateway))
                return

    def _step(self, slot: Slot) -> list[str]:
        """Return what starts a worker in a slot's allocation, once Slurm has given one."""
        while True:
            if slot.job is None:
                slot.job = self.jobs.submit(slot.machine)
                slot.trouble = ""  # whoever waits in the queue may wait for days
            job = self.jobs.wait(slot.job, self._ending.wait)
            if job is not None and job.node is not None:
                return step_words(slot.machine, job.number, job.node)
            if self._ending.is_set():
                raise AllocationRefused("the session is ending")
            self.soon(partial(self.lose_job, slot.place, slot.job))
            lost, slot.job = slot.job, None
            if slot.joined_job != lost:
                slot.early_deaths += 1
                raise AllocationRefused(f"job {lost} has ended before a worker could join it")

    def _give_up(self, slot: Slot, why: str) -> None:
        slot.is_given_up = True
        self.say(f"{slot.machine.name} is given up: {why}")
        if self._early is None:
            if all(each.is_given_up for each in self.slots):
                self._end_alone()
            self.elastic.await_member(slot, come=True)

    def _end_alone(self) -> None:
        self.say("no host is left: the session ends")
        self.elastic.end()

    def _trouble(self, slot: Slot, problem: str) -> None:
        if slot.trouble != problem and self._early is None:
            self.say(f"{slot.machine.name} cannot be reached ({problem}): trying again")
        slot.trouble = problem
        if self._early is not None:  # it was seen a moment ago
            self.problems.setdefault(slot.machine.name, []).append(f"cannot be reached: {problem}")

    def _join(self, slot: Slot, gateway: Any) -> None:
        if self._ending.is_set() or self.elastic.is_ending:
            return
        worker = MachineWorker(self._manager, gateway, self._event, slot.place, self.arguments)
        worker.mle_slot = slot
        slot.worker = worker
        worker.setup()
        if self._early is None:
            self.elastic.await_member(slot, come=True)
            self.elastic.await_member(worker)

    def _event(self, event: tuple[str, dict[str, Any]]) -> None:
        """Pass a worker's events on; before the session begins, its early end is an answer."""
        if event[0] == "errordown" and self._early is not None:
            name = event[1]["node"].mle_slot.machine.name
            text = f"its worker ended before it could work: {event[1]['error']}"
            self._early.put(lambda: self._fail(name, text))
        self._putevent(event)

    def _fail(self, name: str, text: str) -> None:
        self.problems.setdefault(name, [text])

    def _tick(self) -> None:
        while not self._ending.wait(1.0):
            self.elastic.call_soon(self._look)

    def _look(self) -> None:
        """Give the session up when nobody has been there for too long."""
        waiting = [slot for slot in self.slots if slot.worker is None and not slot.is_given_up]
        if self.elastic.is_ending:
            for slot in waiting:
                self.elastic.await_member(slot, come=True)
            return
        self.look()
        queued = [slot for slot in waiting if slot.machine.srun is not None and not slot.trouble]
        if queued or any(slot.worker is not None for slot in self.slots):
            self._alone_since = None  # whoever waits in the queue of Slurm may wait for days
            return
        now = time.monotonic()
        if self._alone_since is None:
            self._alone_since, self._said_at = now, 0.0
        left = self._alone_since + self.wait_seconds - now
        if left <= 0 or not waiting:
            self._end_alone()
        elif now - self._said_at >= REMIND_SECONDS:
            self._said_at = now
            self.say(f"no host can be reached: waiting for another {show_duration(round(left))}")
