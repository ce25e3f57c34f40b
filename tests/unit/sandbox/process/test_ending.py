"""Whatever ends an agent, nothing of it is left running."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import threading
import uuid
from pathlib import Path

import pytest
from sandbox_job import HELPERS, Place, running, wait_until

from pytest_mlebench.errors import SandboxError
from pytest_mlebench.sandbox.process.process_tree import Process, _by_proc, _by_ps, memory

# A daemon by the book, deaf to SIGTERM: its parent is gone, its session and group are its own.
DAEMON = """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)", "MARK"])
    os._exit(0)
os.wait()
time.sleep(0.3)
open("ready", "w").close()
"""

SESSION = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from sandbox_job import Place
Place(Path(sys.argv[2])).run(python=sys.argv[3])
"""


@pytest.fixture
def mark() -> str:
    return f"mark-{uuid.uuid4()}"


def test_the_time_limit_ends_an_agent_that_does_not_listen(place: Place) -> None:
    done = place.run(
        shell="trap '' TERM; echo id > $SUBMISSION_DIR/submission.csv; while :; do sleep 1; done",
        time_seconds=3,
    )
    assert done.outcome.reason == "time-limit"
    assert done.outcome.exit_code == 137
    assert 3 <= done.outcome.seconds < 30
    assert done.submission == "id\n", "what is there when the time is up counts"


def test_the_time_limit_lets_an_agent_save_its_work(place: Place) -> None:
    done = place.run(
        python="""
import os, signal, sys, time
def save(*_):
    time.sleep(0.2)
    open(os.environ["SUBMISSION_DIR"] + "/submission.csv", "w").write("saved")
    print("saved")
    sys.exit(5)
signal.signal(signal.SIGTERM, save)
time.sleep(600)
""",
        time_seconds=5,
        grace_seconds=60,
    )
    assert (done.outcome.reason, done.outcome.exit_code) == ("time-limit", 5)
    assert (done.submission, done.log) == ("saved", "saved\n")


def test_the_time_limit_lets_a_child_save_its_work_though_its_parent_has_ended(
    place: Place,
) -> None:
    save = "sleep 1; echo saved > $SUBMISSION_DIR/submission.csv; exit 0"
    child = f"trap '{save}' TERM; touch ready; while :; do sleep 0.1; done"
    done = place.run(shell=f"sh -c {shlex.quote(child)} & wait", time_seconds=5, grace_seconds=60)
    assert done.outcome.reason == "time-limit"
    assert done.outcome.exit_code == 143, "the agent itself ended at once"
    assert done.submission == "saved\n"


def test_the_time_limit_ends_daemons_too(place: Place, mark: str) -> None:
    program = DAEMON.replace("MARK", mark) + "time.sleep(600)"
    done = place.run(python=program, time_seconds=5)
    assert done.outcome.reason == "time-limit"
    assert running(mark) == []


def test_daemons_end_with_the_agent_and_before_the_collection(place: Place, mark: str) -> None:
    seen: list[int] = []
    program = DAEMON.replace("MARK", mark) + "while not os.path.exists('go'): time.sleep(0.02)"
    job = place.job(python=program)
    folder = job.folder / "home" / "agent"

    def look() -> None:
        wait_until((folder / "ready").exists, 60)
        seen.extend(running(mark))
        (folder / "go").touch()

    watch = threading.Thread(target=look)
    watch.start()
    outcome = place.sandbox().run(job)
    watch.join()
    assert len(seen) == 2, "the agent and its daemon"
    assert running(mark) == []
    assert outcome.reason == "exited"
    assert outcome.details["survivors"] == 0


SWARM = """
import subprocess, sys, time
try:
    for _ in range(300):
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "{mark}"])
except OSError as problem:
    sys.exit(f"refused: {{problem.strerror}}")
time.sleep(600)
"""


def test_a_swarm_is_refused_by_the_kernel(bounded_place: Place, mark: str) -> None:
    done = bounded_place.run(python=SWARM.format(mark=mark), pids=50)
    assert done.outcome.reason == "exited"
    assert done.log == "refused: Resource temporarily unavailable\n"
    assert running(mark) == []


def test_a_swarm_ends_where_processes_are_counted(tmp_path: Path, mark: str) -> None:
    place = Place(tmp_path, builders=("none",), cgroup=False)
    done = place.run(python=SWARM.format(mark=mark), pids=50)
    assert done.outcome.reason == "process-limit"
    assert running(mark) == []


def test_the_memory_limit_ends_an_agent(bounded_place: Place) -> None:
    done = bounded_place.run(
        python="""
import time
blocks = []
for _ in range(60):
    blocks.append(b"x" * 10**7)
    time.sleep(0.01)
time.sleep(600)
""",
        memory_bytes=200_000_000,
    )
    assert (done.outcome.reason, done.outcome.exit_code) == ("memory-limit", 137)
    assert done.outcome.peak_memory_bytes is not None
    assert done.outcome.peak_memory_bytes > 150_000_000


def test_the_disk_limit_ends_an_agent(place: Place) -> None:
    done = place.run(
        python="""
import time
for number in range(100):
    open(f"block{number}", "wb").write(b"x" * 10**6)
    time.sleep(0.02)
time.sleep(600)
""",
        disk_bytes=20_000_000,
    )
    assert (done.outcome.reason, done.outcome.exit_code) == ("disk-limit", 137)


def test_the_memory_limit_is_for_all_processes_together(bounded_place: Place) -> None:
    hog = "import time; block = b'x' * 120_000_000; time.sleep(600)"
    done = bounded_place.run(
        python=f"import os, subprocess, sys\n"
        f"for _ in range(2): subprocess.Popen([sys.executable, '-c', {hog!r}])\n"
        "sys.exit(os.waitstatus_to_exitcode(os.wait()[1]) + 50)",
        memory_bytes=200_000_000,
    )
    if "cgroup" in done.outcome.walls:  # the kernel takes the hog, the agent goes on
        assert (done.outcome.reason, done.outcome.exit_code) == ("exited", 41)
        assert done.outcome.details["oom_kills"] == 1
    else:
        assert (done.outcome.reason, done.outcome.exit_code) == ("memory-limit", 137)


def test_memory_that_processes_share_counts_once(bounded_place: Place) -> None:
    done = bounded_place.run(
        python="""
import os, time
block = b'x' * 120_000_000
for turn in range(4):  # they end one after the other, and others begin
    for number in range(3):
        if os.fork() == 0:
            time.sleep(0.3 + 0.1 * number)
            os._exit(0)
    for _ in range(3):
        os.wait()
""",
        memory_bytes=220_000_000,
    )
    assert (done.outcome.reason, done.outcome.exit_code) == ("exited", 0)


def test_a_process_that_has_just_ended_occupies_nothing() -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait()
    ended = Process(child.pid, os.getpid(), 120_000_000, 0.0)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        alive = Process(other.pid, os.getpid(), 130_000_000, 0.0)
        assert memory(lambda: [alive, ended, ended, ended], 220_000_000) <= 220_000_000


def _session(place: Place, program: str) -> subprocess.Popen[bytes]:
    """Start another process that runs *program* in the sandbox, and wait for its daemon."""
    folder = place.folder / "session"
    folder.mkdir()
    arguments = [str(HELPERS), str(folder), program + "time.sleep(600)"]
    session = subprocess.Popen([sys.executable, "-c", SESSION, *arguments], start_new_session=True)
    assert wait_until(lambda: list(folder.glob("runs/run/tiny/*/*/home/agent/ready")), 20)
    return session


def test_kill_9_of_the_session_leaves_nothing(place: Place, mark: str) -> None:
    session = _session(place, DAEMON.replace("MARK", mark))
    daemons = running(mark)
    session.kill()
    session.wait()
    assert len(daemons) >= 3, "the session, the agent and its daemon"
    assert wait_until(lambda: running(mark) == [])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_session_leaves_nothing(
    place: Place, mark: str, number: signal.Signals
) -> None:
    session = _session(place, DAEMON.replace("MARK", mark))
    os.killpg(session.pid, number)  # as a terminal does it for Ctrl-C: all of its group
    session.wait(timeout=20)
    assert session.returncode == -signal.SIGINT, "a KeyboardInterrupt either way"
    assert running(mark) == []
    assert not list(place.folder.glob("session/runs/run/tiny/*/*/home"))


def test_a_lost_supervisor_is_the_agents_failure_and_leaves_nothing(
    place: Place, mark: str
) -> None:
    program = DAEMON.replace("MARK", mark)
    job = place.job(
        python=program + "open('../submission/submission.csv', 'w').write('id');time.sleep(600)"
    )
    ready = job.folder / "home" / "submission" / "submission.csv"

    def shoot() -> None:
        wait_until(lambda: ready.exists() and ready.stat().st_size, 60)
        os.kill(_supervisor_of(running(mark)[-1]), signal.SIGKILL)

    thread = threading.Thread(target=shoot)
    thread.start()
    outcome = place.sandbox().run(job)
    thread.join()
    assert (outcome.reason, outcome.exit_code) == ("sandbox-lost", None)
    assert job.submission.read_text() == "id", "what is there counts, as at every other end"
    assert wait_until(lambda: running(mark) == [])


def _supervisor_of(pid: int) -> int:
    """Return the process above *pid* that our zygote has forked."""
    while _parent(_parent(pid)) != os.getpid():
        pid = _parent(pid)
    return pid


def _parent(pid: int) -> int:
    return int(_state(pid)[1])


def _state(pid: int) -> list[str]:
    """Return what the kernel tells of a process after its name; of one that is gone, that it is."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ["X", "0"]  # man 5 proc_pid_stat: dead, and nobody's child


def test_a_lost_zygote_is_replaced(place: Place) -> None:
    assert place.run(shell="echo one").log == "one\n"
    children = [pid for pid in running("zygote") if _parent(pid) == os.getpid()]
    for pid in children:
        os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: not [pid for pid in children if _is_alive(pid)])
    assert children
    assert place.run(shell="echo two").log == "two\n"


def _is_alive(pid: int) -> bool:
    return _state(pid)[0] not in "ZX"


def test_a_log_that_cannot_be_written_is_our_own_fault(place: Place) -> None:
    job = place.job(shell="sleep 600")
    job.log.mkdir()
    with pytest.raises(SandboxError, match="the supervisor failed: IsADirectoryError"):
        place.sandbox().run(job)


def test_the_process_table_is_the_same_by_ps() -> None:
    me = os.getpid()
    by_proc = next(process for process in _by_proc() if process.pid == me)
    by_ps = next(process for process in _by_ps() if process.pid == me)
    assert by_proc.parent == by_ps.parent == os.getppid()
    assert by_proc.resident == pytest.approx(by_ps.resident, rel=0.2)
