"""What srun's words say about time, and where Slurm is in hosts.toml."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from pytest_mlebench.machines.hosts_file import HostsFileError, read_hosts
from pytest_mlebench.machines.slurm import time_of
from pytest_mlebench.machines.ssh import execnet_spec, srun_words


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
        ("--time=UNLIMITED", None),
    ],
)
def test_the_time_of_an_allocation_is_read_as_srun_reads_it(
    words: str, seconds: float | None
) -> None:
    assert time_of(shlex.split(words)) == seconds


def test_a_pool_is_started_by_srun(tmp_path: Path) -> None:
    path = tmp_path / "hosts.toml"
    path.write_text('[slurm.a100]\nsrun = "--gres=gpu:1 -c36"\nfolder = "/nfs/mle"\nslots = 32\n')
    (machine,) = read_hosts(path).machines
    assert (machine.name, machine.slots) == ("a100", 32)
    spec = execnet_spec(machine, 60, "a100.0", "job")
    assert spec.startswith("popen//python=srun --unbuffered --quiet --job-name=job ")
    assert " --gres=gpu:1 -c36 python3//chdir=/nfs/mle//id=a100.0" in spec


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
