"""CPUs are shared: what a process has taken, others do not use until it gives it back or ends."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from pytest_mlebench.host.crew import Crew
from pytest_mlebench.host.shared_cpus import SharedCpus, further_cpus, joined, offered

CPUS = 4
HOLDER = f"""
import sys
from pytest_mlebench.host.shared_cpus import SharedCpus
with SharedCpus(int(sys.argv[1]), {CPUS}).taken(int(sys.argv[2])) as count:
    print(count, flush=True)
    sys.stdin.read()
"""


@contextmanager
def another(descriptor: int, most: int) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Yield a process that takes so many at most, and how many it has got."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(descriptor), str(most)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        pass_fds=[descriptor],
    ) as process:
        assert process.stdout is not None
        yield process, int(process.stdout.readline())


def test_what_another_process_has_taken_is_not_free() -> None:
    with offered() as descriptor:
        cpus = SharedCpus(descriptor, CPUS)
        with another(descriptor, 3) as (_, count), cpus.taken(CPUS) as mine:
            assert (count, mine) == (3, 1)
            with another(descriptor, 1) as (_, none):
                assert none == 0
        with cpus.taken(CPUS) as mine:
            assert mine == CPUS


def test_a_process_that_is_killed_gives_back_what_it_had() -> None:
    with offered() as descriptor, another(descriptor, CPUS) as (process, count):
        cpus = SharedCpus(descriptor, CPUS)
        with cpus.taken(1) as mine:
            assert (count, mine) == (CPUS, 0)
        process.kill()
        process.wait()
        with cpus.taken(CPUS) as mine:
            assert mine == CPUS


def test_threads_of_a_process_do_not_count_the_same_cpu_twice() -> None:
    with offered() as descriptor:
        cpus = SharedCpus(descriptor, CPUS)
        with cpus.taken(3) as some, cpus.taken(3) as others:
            assert (some, others) == (3, 1)


def test_a_process_that_shares_nothing_may_use_all() -> None:
    with further_cpus(7) as count:
        assert count == 7


def test_a_crew_has_no_more_processes_than_there_are_free_cpus() -> None:
    calls = [partial(os.getpid)] * 20
    with offered() as descriptor, joined(descriptor, CPUS), Crew(CPUS) as crew:
        with another(descriptor, CPUS) as (_, count):
            assert count == CPUS - 1  # one is ours
            assert set(crew.map(calls)) == {os.getpid()}
        with another(descriptor, CPUS - 2), Crew(CPUS) as pair:
            assert len(set(pair.map(calls))) <= 2
            assert len(pair._children) == 1
