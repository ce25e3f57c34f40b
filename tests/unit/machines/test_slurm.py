"""What srun's words say about time, and where Slurm is in hosts.toml."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_mlebench.host import allocation
from pytest_mlebench.host.leases import host_capacity
from pytest_mlebench.machines.hosts_file import HostsFileError, read_hosts
from pytest_mlebench.machines.slurm import not_enforced, note_allocation, time_of, usual_time
from pytest_mlebench.machines.slurm_jobs import submit_words
from pytest_mlebench.machines.ssh import execnet_spec, srun_words, step_words


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("--time=90", 5400),
        ("--time 90:30", 5430),
        ("-t 25:00:00", 90000),
        ("-t1-0", 86400),
        ("--time=1-2:30", 95400),
        ("--time=2-01:00:05", 176405),
        ("-c4 --mem=2G", None),
        ("", None),
        ("--time=UNLIMITED", math.inf),
        ("-t 0", math.inf),
        ("--time=soon", None),
    ],
)
def test_the_time_of_an_allocation_is_read_as_srun_reads_it(
    words: str, seconds: float | None
) -> None:
    assert time_of(shlex.split(words)) == seconds


def test_a_pool_is_asked_for_by_sbatch_and_joined_by_srun(tmp_path: Path) -> None:
    path = tmp_path / "hosts.toml"
    path.write_text('[slurm.a100]\nsrun = "--gres=gpu:1 -c36"\nfolder = "/nfs/mle"\nslots = 32\n')
    (machine,) = read_hosts(path).machines
    assert (machine.name, machine.slots) == ("a100", 32)
    spec = execnet_spec(machine, 60, "a100.0", step_words(machine, "7", "n1"))
    assert spec.startswith("popen//python=srun --unbuffered --quiet --jobid=7 --overlap ")
    assert "-m pytest_mlebench.machines.allocation_entry//chdir=/nfs/mle//id=a100.0" in spec
    words = submit_words(machine, "run")
    assert words[:4] == ["sbatch", "--parsable", "--gres=gpu:1", "-c36"]
    assert words[-2:] == ["--job-name=run", "--comment=a100"]  # last, so that they hold


def test_in_a_job_srun_asks_for_an_allocation_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "hosts.toml"
    path.write_text('[slurm.a100]\nsrun = ""\nslots = 1\n')
    (machine,) = read_hosts(path).machines
    for name in ("SLURM_JOB_ID", "SLURM_MEM_PER_NODE", "SLURM_CONF"):
        monkeypatch.setenv(name, "1")
    words = srun_words(machine, "job")
    assert words[:4] == ["env", "--unset=SLURM_JOB_ID", "--unset=SLURM_MEM_PER_NODE", "srun"]


def test_what_is_wrong_with_a_pool_is_one_error(tmp_path: Path) -> None:
    path = tmp_path / "hosts.toml"
    path.write_text('[slurm.a]\nsrun = "a//b"\nfolder = "x"\nslots = 0\n')
    with pytest.raises(HostsFileError) as error:
        read_hosts(path)
    assert [line.strip() for line in str(error.value).splitlines()[1:]] == [
        "slurm: a: srun must be without '//', given: 'a//b'",
        "slurm: a: folder must be absolute, as all nodes see it, given: 'x'",
        "slurm: a: slots must be positive, given: 0",
    ]


CONFIG = """Configuration data as of 2026-11-17T20:31:21
TaskPlugin              = {task}
Cgroup Support Configuration:
ConstrainDevices        = {devices}
ConstrainRAMSpace       = yes
"""
PARTITIONS = """PartitionName=gpu Default=YES DefaultTime=NONE MaxTime=2-00:00:00 State=UP
PartitionName=short Default=NO DefaultTime=00:20:00 MaxTime=01:00:00 State=UP
"""
JOB = "JobId=7 RunTime=00:10:00 TimeLimit=01:00:00 NumNodes=1 TRES=cpu=2,mem=1500M,node=1"


@pytest.fixture
def scontrol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Let scontrol answer with a text; tests/machines has the real one."""

    def answer(text: str) -> None:
        (tmp_path / "scontrol").write_text(f"#!/bin/sh\ncat <<'TEXT'\n{text}\nTEXT\n")
        (tmp_path / "scontrol").chmod(0o755)

    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    return answer


@pytest.mark.parametrize(
    ("task", "devices", "lacking"),
    [
        ("task/affinity,task/cgroup", "yes", []),
        ("task/cgroup", "no", ["GPUs (ConstrainDevices)"]),
        ("task/none", "yes", ["memory (ConstrainRAMSpace)", "GPUs (ConstrainDevices)"]),
    ],
)
def test_what_slurm_does_not_enforce_is_known(
    scontrol: Callable[[str], None], task: str, devices: str, lacking: list[str]
) -> None:
    scontrol(CONFIG.format(task=task, devices=devices))
    assert not_enforced() == lacking


def test_a_slurm_that_does_not_answer_is_no_answer(scontrol: Callable[[str], None]) -> None:
    scontrol("slurm_load_ctl_conf error")
    assert not_enforced() is None
    assert usual_time(()) is None


@pytest.mark.parametrize(
    ("words", "seconds"),
    [("", 172800), ("-p short", 1200), ("--partition=gpu,short", 1200), ("-p other", None)],
)
def test_the_usual_time_is_the_partitions(
    scontrol: Callable[[str], None], words: str, seconds: float | None
) -> None:
    scontrol(PARTITIONS)
    assert usual_time(shlex.split(words)) == seconds


def test_the_allocation_is_what_there_is(
    scontrol: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    scontrol(JOB)
    for name, value in (("JOB_ID", "7"), ("CPUS_ON_NODE", "1")):
        monkeypatch.setenv(f"SLURM_{name}", value)
    for name in (allocation.MEMORY, allocation.ENDS):
        monkeypatch.setenv(name, "")  # so that it is as it was afterwards
        monkeypatch.delenv(name)
    note_allocation()
    capacity = host_capacity()
    assert (capacity.cpus, capacity.memory_bytes) == (1, 1500 * 2**20)
    assert capacity.place == "Slurm's job 7"
    left = allocation.seconds_left()
    assert left is not None
    assert 2900 < left <= 3000


def test_outside_of_slurm_its_variables_mean_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setenv("SLURM_MEM_PER_NODE", "10")
    monkeypatch.setenv("SLURM_CPUS_ON_NODE", "1")
    assert (allocation.memory_bytes(), allocation.cpus(), allocation.seconds_left()) == (None,) * 3
