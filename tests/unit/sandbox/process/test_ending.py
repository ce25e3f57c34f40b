"""Whatever ends an agent, nothing of it is left running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import uuid
from pathlib import Path

import pytest
from sandbox_job import HELPERS, Place, running, wait_until

from pytest_mlebench.errors import SandboxError
from pytest_mlebench.sandbox.process.process_sandbox import ProcessSandbox
from pytest_mlebench.sandbox.process.process_tree import _by_proc, _by_ps

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
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def mark() -> str:
    return f"mark-{uuid.uuid4()}"


def test_the_time_limit_ends_an_agent_that_does_not_listen(place: Place) -> None:
    done = place.run(
        shell="trap '' TERM; echo id > $SUBMISSION_DIR/submission.csv; while :; do sleep 1; done",
        time_seconds=0.5,
    )
    assert done.outcome.reason == "time-limit"
    assert done.outcome.exit_code == 137
    assert 0.5 <= done.outcome.seconds < 2
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
        time_seconds=0.5,
        grace_seconds=10,
    )
    assert (done.outcome.reason, done.outcome.exit_code) == ("time-limit", 5)
    assert (done.submission, done.log) == ("saved", "saved\n")
    assert done.outcome.seconds < 2


def test_the_time_limit_ends_daemons_too(place: Place, mark: str) -> None:
    program = DAEMON.replace("MARK", mark) + "time.sleep(600)"
    done = place.run(python=program, time_seconds=1.5)
    assert done.outcome.reason == "time-limit"
    assert running(mark) == []


def test_daemons_end_with_the_agent_and_before_the_collection(place: Place, mark: str) -> None:
    seen: list[int] = []
    program = DAEMON.replace("MARK", mark) + "while not os.path.exists('go'): time.sleep(0.02)"
    job = place.job(python=program)
    folder = job.folder / "home" / "agent"

    def look() -> None:
        wait_until((folder / "ready").exists)
        seen.extend(running(mark))
        (folder / "go").touch()

    watch = threading.Thread(target=look)
    watch.start()
    outcome = ProcessSandbox().run(job)
    watch.join()
    assert len(seen) == 2, "the agent and its daemon"
    assert running(mark) == []
    assert outcome.reason == "exited"
    assert outcome.seconds < 5
    assert outcome.details["survivors"] == 0


def test_a_swarm_ends(place: Place, mark: str) -> None:
    swarm = f"""
import subprocess, sys, time
for _ in range(30):
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "{mark}"])
time.sleep(600)
"""
    done = place.run(python=swarm, pids=20)
    assert done.outcome.reason == "process-limit"
    assert running(mark) == []


def test_the_memory_limit_ends_an_agent(place: Place) -> None:
    done = place.run(
        python="""
import time
blocks = []
for _ in range(60):
    blocks.append(b"x" * 10**7)
    time.sleep(0.01)
""",
        memory_bytes=200_000_000,
    )
    assert (done.outcome.reason, done.outcome.exit_code) == ("memory-limit", 137)
    assert done.outcome.peak_memory_bytes is not None
    assert done.outcome.peak_memory_bytes > 200_000_000


def test_the_disk_limit_ends_an_agent(place: Place) -> None:
    done = place.run(
        python="""
import time
for number in range(100):
    open(f"block{number}", "wb").write(b"x" * 10**6)
    time.sleep(0.02)
""",
        disk_bytes=20_000_000,
    )
    assert (done.outcome.reason, done.outcome.exit_code) == ("disk-limit", 137)


def test_the_memory_limit_is_for_all_processes_together(place: Place) -> None:
    hog = "import time; block = b'x' * 120_000_000; time.sleep(600)"
    done = place.run(
        python=f"import subprocess, sys, time\n"
        f"for _ in range(2): subprocess.Popen([sys.executable, '-c', {hog!r}])\ntime.sleep(600)",
        memory_bytes=200_000_000,
    )
    assert done.outcome.reason == "memory-limit"


def test_memory_that_processes_share_counts_once(place: Place) -> None:
    done = place.run(
        python="""
import os, time
block = b'x' * 120_000_000
for _ in range(3):
    if os.fork() == 0:
        time.sleep(0.7)
        os._exit(0)
for _ in range(3):
    os.wait()
""",
        memory_bytes=220_000_000,
    )
    assert (done.outcome.reason, done.outcome.exit_code) == ("exited", 0)


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


def test_a_lost_supervisor_is_our_own_fault_and_leaves_nothing(place: Place, mark: str) -> None:
    job = place.job(python=DAEMON.replace("MARK", mark) + "time.sleep(600)")
    ready = job.folder / "home" / "agent" / "ready"

    def shoot() -> None:
        wait_until(ready.exists)
        daemon = running(mark)[-1]
        status = Path(f"/proc/{daemon}/stat").read_text()
        os.kill(int(status.rpartition(")")[2].split()[1]), signal.SIGKILL)

    thread = threading.Thread(target=shoot)
    thread.start()
    with pytest.raises(SandboxError, match="the agent's supervisor was lost, exit status -9"):
        ProcessSandbox().run(job)
    thread.join()
    assert wait_until(lambda: running(mark) == [])


def test_a_log_that_cannot_be_written_is_our_own_fault(place: Place) -> None:
    job = place.job(shell="sleep 600")
    job.log.mkdir()
    with pytest.raises(SandboxError, match="the supervisor failed: IsADirectoryError"):
        ProcessSandbox().run(job)


def test_the_process_table_is_the_same_by_ps() -> None:
    me = os.getpid()
    by_proc = next(process for process in _by_proc() if process.pid == me)
    by_ps = next(process for process in _by_ps() if process.pid == me)
    assert by_proc.parent == by_ps.parent == os.getppid()
    assert by_proc.resident == pytest.approx(by_ps.resident, rel=0.2)
