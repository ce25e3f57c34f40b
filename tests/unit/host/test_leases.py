"""Leases: attempts on one host never add up to more than it has."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sandbox_job import wait_until

from pytest_mlebench.errors import ConfigError, SandboxError
from pytest_mlebench.host import leases
from pytest_mlebench.host.demo_limits import demo_limits
from pytest_mlebench.host.hardware import host_cpus
from pytest_mlebench.host.leases import Capacity, LeaseClaim, LeaseLedger, default_folder, lease_for
from pytest_mlebench.limits import STANDARD
from pytest_mlebench.sandbox.process.process_sandbox import ProcessSandbox

GIB = 2**30
HOST = Capacity(cpus=4, memory_bytes=16 * GIB, gpus=("GPU-a", "GPU-b"))

HOLDER = """
import os, sys, time
from pathlib import Path
from pytest_mlebench.host.leases import Capacity, LeaseClaim, LeaseLedger

folder, journal, name, cpus, memory, gpus, seconds = sys.argv[1:]
claim = LeaseClaim(float(cpus), int(memory), int(gpus))
host = Capacity(cpus=4, memory_bytes=16 * 2**30, gpus=("GPU-a", "GPU-b"))

def note(*words):
    with open(journal, "a") as file:
        file.write(" ".join((f"{time.monotonic():.6f}", name, *words)) + "\\n")

note("asks")
waits = lambda message: note("waits", message.replace(" ", "_"))
with LeaseLedger(Path(folder), poll=0.05).lease(claim, host, label=name, waiting=waits) as devices:
    note("has", *devices)
    time.sleep(float(seconds))
    note("ends")
"""


class Host:
    """Processes that take leases of one ledger, and the journal in which they note it."""

    def __init__(self, folder: Path) -> None:
        self.ledger = LeaseLedger(folder / "leases", poll=0.05)
        self.folder = folder / "leases"
        self.journal = folder / "journal"
        self.journal.touch()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(
        self, name: str, claim: LeaseClaim, seconds: float = 60, wrapper: tuple[str, ...] = ()
    ) -> None:
        figures = (claim.cpus, claim.memory_bytes, claim.gpus, seconds)
        program = (*wrapper, sys.executable, "-c", textwrap.dedent(HOLDER))
        arguments = (str(self.folder), str(self.journal), name, *map(str, figures))
        self.processes[name] = subprocess.Popen([*program, *arguments])

    def events(self, what: str) -> dict[str, list[str]]:
        lines = [line.split() for line in self.journal.read_text().splitlines()]
        return {name: rest for _, name, event, *rest in lines if event == what}

    def wait_for(self, name: str, what: str) -> None:
        assert wait_until(lambda: name in self.events(what), 120), self.journal.read_text()

    def join(self) -> None:
        for process in self.processes.values():
            assert process.wait(timeout=60) == 0


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """A host with 4 CPUs, 16 GiB and two GPUs."""
    host = Host(tmp_path)
    yield host
    for process in host.processes.values():
        if process.poll() is None:
            process.kill()
            process.wait()


def most_at_once(journal: str) -> int:
    """Return the largest number of leases that were held at the same time."""
    events = sorted(
        (float(moment), {"has": 1, "ends": -1}[what])
        for moment, _, what, *_ in map(str.split, journal.splitlines())
        if what in ("has", "ends")
    )
    held = [sum(change for _, change in events[: i + 1]) for i in range(len(events))]
    return max(held)


@pytest.mark.parametrize(
    "claim",
    [LeaseClaim(2, GIB), LeaseClaim(1, 8 * GIB), LeaseClaim(1, GIB, 1)],
    ids=["cpus", "memory", "gpus"],
)
def test_of_eight_attempts_on_a_host_for_two_never_more_than_two_run(
    host: Host, claim: LeaseClaim
) -> None:
    for number in range(8):
        host.start(f"p{number}", claim, seconds=0.15)
    host.join()
    assert len(host.events("ends")) == 8
    assert most_at_once(host.journal.read_text()) == 2
    assert host.ledger.entries() == []


def test_no_gpu_is_given_to_two_at_the_same_time(host: Host) -> None:
    host.start("one", LeaseClaim(1, GIB, 1))
    host.start("two", LeaseClaim(1, GIB, 1))
    host.wait_for("one", "has")
    host.wait_for("two", "has")
    devices = host.events("has")
    assert sorted((*devices["one"], *devices["two"])) == ["GPU-a", "GPU-b"]


def test_a_gpu_that_may_be_shared_is_given_twice_but_never_twice_to_the_same(
    tmp_path: Path,
) -> None:
    shared = Capacity(4, 16 * GIB, ("GPU-a", "GPU-a", "GPU-b", "GPU-b"))
    ledger = LeaseLedger(tmp_path)
    with (
        ledger.lease(LeaseClaim(gpus=2), shared) as first,
        ledger.lease(LeaseClaim(gpus=1), shared) as second,
        ledger.lease(LeaseClaim(gpus=1), shared) as third,
    ):
        assert sorted(first) == ["GPU-a", "GPU-b"]
        assert sorted(second + third) == ["GPU-a", "GPU-b"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_lease_ends_with_its_process_however_that_dies(
    host: Host, number: signal.Signals
) -> None:
    host.start("dies", LeaseClaim(4, GIB))
    host.wait_for("dies", "has")
    host.start("next", LeaseClaim(4, GIB), seconds=0)
    host.wait_for("next", "waits")
    assert "next" not in host.events("has")
    host.processes["dies"].send_signal(number)
    assert host.processes["next"].wait(timeout=30) == 0


def test_a_lease_of_a_killed_process_ends_though_its_children_live_on(
    tmp_path: Path, host: Host
) -> None:
    code = textwrap.dedent(HOLDER).replace("time.sleep", "os.fork(); time.sleep")
    arguments = [str(host.folder), str(host.journal), "forks", "4", "1", "0", "20"]
    parent = subprocess.Popen([sys.executable, "-c", code, *arguments], start_new_session=True)
    try:
        host.wait_for("forks", "has")
        parent.kill()
        parent.wait()
        with LeaseLedger(host.folder, poll=0.05).lease(LeaseClaim(4, GIB), HOST):
            pass
    finally:
        os.killpg(parent.pid, signal.SIGKILL)


def test_one_who_waits_and_dies_makes_nobody_wait(host: Host) -> None:
    host.start("holds", LeaseClaim(2, GIB))
    host.wait_for("holds", "has")
    host.start("large", LeaseClaim(4, GIB))
    host.wait_for("large", "waits")
    host.start("small", LeaseClaim(2, GIB), seconds=0)
    host.wait_for("small", "waits")
    host.processes["large"].kill()
    assert host.processes["small"].wait(timeout=30) == 0


def test_small_ones_do_not_starve_a_large_one_that_came_before(host: Host) -> None:
    host.start("holds", LeaseClaim(3, GIB))
    host.wait_for("holds", "has")
    host.start("large", LeaseClaim(4, GIB), seconds=0.2)
    host.wait_for("large", "waits")
    for number in range(3):
        host.start(f"small{number}", LeaseClaim(1, GIB), seconds=0.2)
        host.wait_for(f"small{number}", "waits")
    host.processes.pop("holds").kill()
    host.join()
    order = list(host.events("has"))
    assert order[:2] == ["holds", "large"]


def test_one_passes_another_where_that_costs_the_other_nothing(host: Host) -> None:
    host.start("holds", LeaseClaim(1, GIB, 2))
    host.wait_for("holds", "has")
    host.start("gpu", LeaseClaim(1, GIB, 1))
    host.wait_for("gpu", "waits")
    host.start("cpu", LeaseClaim(1, GIB), seconds=0)
    assert host.processes["cpu"].wait(timeout=30) == 0
    assert "gpu" not in host.events("has")


def test_waiting_says_for_what_and_for_whom(host: Host) -> None:
    host.start("titanic/seed0", LeaseClaim(4, GIB))
    host.wait_for("titanic/seed0", "has")
    messages: list[str] = []
    heard = threading.Event()

    def hear(message: str) -> None:
        messages.append(message)
        heard.set()
        host.processes["titanic/seed0"].kill()
        host.processes["titanic/seed0"].wait()

    with host.ledger.lease(LeaseClaim(2, GIB, 1), HOST, waiting=hear):
        pid = host.processes["titanic/seed0"].pid
    assert messages[0] == (
        f"waiting for 2 CPUs, 1.074GB memory, 1 GPU: in use by titanic/seed0 (process {pid})"
    )


def test_an_exception_in_the_block_gives_the_lease_back(tmp_path: Path) -> None:
    ledger = LeaseLedger(tmp_path)
    with pytest.raises(KeyboardInterrupt), ledger.lease(LeaseClaim(4, GIB), HOST):
        raise KeyboardInterrupt
    assert ledger.entries() == []
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.lock"]


def test_a_claim_from_another_container_counts_as_long_as_its_lock_is_held(
    host: Host,
) -> None:
    unshare = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system gives us no namespace of processes")
    host.start("inside", LeaseClaim(4, GIB), wrapper=unshare)
    host.wait_for("inside", "has")
    (entry,) = host.ledger.entries()
    assert entry.owner.pid < 10
    assert entry.label == "inside"
    host.processes["inside"].kill()
    host.processes["inside"].wait()
    assert wait_until(lambda: host.ledger.entries() == [])


def test_claims_on_another_machine_are_counted_apart(tmp_path: Path) -> None:
    ledger = LeaseLedger(tmp_path)
    with (
        ledger.lease(LeaseClaim(4, GIB), HOST),
        ledger.lease(LeaseClaim(4, GIB), replace(HOST, place="elsewhere")),
    ):
        assert [entry.place for entry in ledger.entries()] == ["here", "elsewhere"]


def test_a_file_that_is_no_claim_is_removed(tmp_path: Path) -> None:
    (tmp_path / "7.json").write_text(json.dumps({"ticket": 7}))
    (tmp_path / "8.json").write_text("{")
    with LeaseLedger(tmp_path).lease(LeaseClaim(4, GIB), HOST):
        assert not (tmp_path / "7.json").exists()
        assert not (tmp_path / "8.json").exists()


@pytest.mark.parametrize("name", ["2.json", "2.lock"])
def test_a_folder_where_a_claim_would_be_harms_nobody(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "inside").touch()
    ledger = LeaseLedger(tmp_path)
    with ledger.lease(LeaseClaim(1, GIB), HOST), ledger.lease(LeaseClaim(1, GIB), HOST):
        assert [entry.ticket for entry in ledger.entries()] == [3, 4]
    assert (tmp_path / name / "inside").exists()


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o770, 0o702])
def test_a_folder_in_which_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "leases"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(ConfigError) as error:
        LeaseLedger(folder).entries()
    assert str(error.value) == (
        f"cannot keep leases in {folder}: others may write there (mode {mode:04o}): "
        f"chmod 700 {folder}"
    )


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        (
            LeaseClaim(36, GIB),
            "the limit of 36 CPUs is more than the 4 that this host has: use --mle-cpus=4 or fewer",
        ),
        (
            LeaseClaim(4, 440 * 10**9),
            "the memory limit of 440GB is more than the 17.18GB that this host has: "
            "use --mle-memory=17GB or less",
        ),
        (
            LeaseClaim(4, GIB, 3),
            "the limit of 3 GPUs is more than the 2 that this host has: use --mle-gpus=2 or fewer",
        ),
    ],
)
def test_a_claim_that_can_never_be_met_is_refused_at_once(
    tmp_path: Path, claim: LeaseClaim, message: str
) -> None:
    with pytest.raises(ConfigError) as error, LeaseLedger(tmp_path).lease(claim, HOST):
        pass
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("claim", "number"),
    [
        (LeaseClaim(2, GIB), 2),
        (LeaseClaim(0.5, GIB), 8),
        (LeaseClaim(1, 6 * GIB), 2),
        (LeaseClaim(1, GIB, 1), 2),
        (LeaseClaim(1, GIB, 3), 0),
        (LeaseClaim(), 4),
    ],
)
def test_a_host_knows_how_many_attempts_it_holds(claim: LeaseClaim, number: int) -> None:
    assert HOST.holds(claim) == number


def test_the_ledger_is_one_per_user_and_not_in_a_folder_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLEBENCH_LEASES_DIR", raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert default_folder() == Path(f"/tmp/mlebench-leases-{os.getuid()}")
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(ConfigError, match="it is not a folder of your own: choose another folder"):
        LeaseLedger(tmp_path / "link").entries()
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"cannot keep leases in .*MLEBENCH_LEASES_DIR"):
        LeaseLedger(tmp_path / "file").entries()


def test_a_ledger_that_hangs_is_the_benchmarks_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from filelock import FileLock

    monkeypatch.setattr(leases, "_PATIENCE", 0.1)
    with (
        FileLock(tmp_path / "ledger.lock"),
        pytest.raises(SandboxError, match=r"has been locked for 0\.1s: look .*/ledger\.lock$"),
    ):
        LeaseLedger(tmp_path).entries()


def test_a_process_attempt_that_may_use_every_cpu_shares_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLEBENCH_LEASES_DIR", str(tmp_path))
    sandbox = ProcessSandbox()
    assert sandbox.claim(demo_limits()) == LeaseClaim()
    small = replace(demo_limits(), cpus=host_cpus() / 2, memory_bytes=10**9)
    assert sandbox.claim(small) == LeaseClaim(host_cpus() / 2, 10**9, 0)
    for limits, held in ((demo_limits(), 0), (small, 1)):
        with lease_for(sandbox, limits, label="x", waiting=print) as devices:
            assert devices == ()
            assert len(LeaseLedger().entries()) == held


def test_a_sandbox_that_shares_no_host_takes_no_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLEBENCH_LEASES_DIR", str(tmp_path / "leases"))
    with lease_for(object(), STANDARD, label="x", waiting=print) as devices:
        assert devices == ()
    assert not (tmp_path / "leases").exists()
