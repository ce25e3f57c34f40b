"""The scene of an attack: everything that a hostile agent might want, and whether it got it.

    python hostile_scene.py SANDBOX [ATTACK …]

runs attacks as the user that runs it and prints a line of JSON for each: its name, and the holes.
SANDBOX is ``bubblewrap`` or ``namespaces`` for processes, with ``-disk`` on disks of their own,
``rootless-`` and one of these for an unpacked image, or ``docker-`` and a network.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import fcntl
import json
import os
import resource
import socket
import stat
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hostile_agents import ATTACKS, Attack
from sandbox_job import CANARY, Place, running, wait_until

from pytest_mlebench.agent import Agent
from pytest_mlebench.errors import SandboxError
from pytest_mlebench.sandbox import Ending, Job, Sandbox

HELPERS = Path(__file__).parent

_ADD_KEY, _KEYCTL = {"x86_64": (248, 250)}.get(os.uname().machine, (217, 219))
_USER_RING, _UNLINK = -4, 9
_IPC_CREAT, _IPC_RMID = 0o1000, 0


class Scene:
    """Baits on this host, around one place with a store and runs."""

    def __init__(self, folder: Path, *, linked_store: bool = False) -> None:
        self.folder = folder
        self.mark = f"hostile-{uuid.uuid4().hex[:12]}"
        self.key = int(self.mark[8:15], 16)
        self.place = Place(folder / "place")
        self._stack = contextlib.ExitStack()
        if linked_store:
            real = folder / "another-disk" / "tiny"
            real.parent.mkdir()
            (self.place.store / "tiny").rename(real)
            (self.place.store / "tiny").symlink_to(real)

    def __enter__(self) -> Scene:
        self._lay_files()
        self._sockets()
        self._terminal()
        self._shared_memory()
        self._keyring()
        self._stack.enter_context(_environment("MLE_BAIT", CANARY))
        self._limits = resource.getrlimit(resource.RLIMIT_CPU)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def facts(self, *, container: bool) -> dict[str, Any]:
        """Return what an agent is told: more than a real one could know."""
        real = os.path.realpath(self.place.answers)
        return {
            "canary": CANARY[::-1],
            "container": container,
            "folder": str(self.folder),
            "mark": self.mark,
            "answers": str(self.place.answers),
            "real_answers": [real],
            "pids": [str(os.getpid()), str(os.getppid())],
            "private_files": [str(path) for path in self._private],
            "victims": [str(path) for path in self._victims],
            "sockets": [str(self._socket), *_engine_sockets()],
            "terminals": [self._terminal_name],
            "segment_key": self.key,
            "own_key": self.key + 1,
            "shared_files": [str(self._shared_file)],
            "locks": [str(self._lock)],
            "abstract": [self.mark],
            "key": self.mark,
            "hosts": ["127.0.0.1", "::1", _own_address()],
            "port": self._port,
            "attempts": [str(self._earlier)],
            "expected": [*Path(sys.prefix).parts, *Path(sys.base_prefix).parts],
        }

    def job(self, attack: Attack, network: str, *, image: str | None = None) -> Job:
        """Return the attack as a job."""
        facts = self.facts(container=image is not None)
        python = "python3" if image else sys.executable
        command = (python, "-c", attack.text, json.dumps(facts), self.mark)
        limits: dict[str, Any] = {"time_seconds": 300, **attack.limits}
        agent = Agent("hostile", command=command, image=image)
        return self.place.job(agent, network=attack.network or network, **limits)

    def holes(self, attack: Attack, job: Job, ending: Ending) -> list[str]:
        """Return what the agent got hold of, as it says and as we see."""
        log = job.log.read_text(errors="replace")
        found = [line for line in log.splitlines() if "HOLE" in line]
        found += [f"HOLE {what}" for what in self._traces(job)]
        ends = attack.ends
        if "disk" in ending.walls and {"disk-limit", "files-limit"} & {*ends}:
            ends = (*ends, "exited")  # the kernel has refused it more, and it gave up
        if ends and ending.reason not in ends:
            found.append(f"HOLE it ended by {ending.reason}, not by {' or '.join(ends)}")
        if not attack.ends and "Traceback" in log:
            found.append("HOLE the attack itself is broken, see its log")
        return found

    def _traces(self, job: Job) -> Iterator[str]:
        """Yield what is not as it was."""
        if resource.getrlimit(resource.RLIMIT_CPU) != self._limits:
            yield "our own limits have changed"
        for path, before in self._states.items():
            if _state(path) != before:
                yield f"{path} has changed"
        if not wait_until(lambda: not _strangers(self.mark), 5):
            yield f"processes live on: {_strangers(self.mark)}"
        if _available(self._terminal_master):
            yield "something was typed into our terminal"
        if (Path("/dev/shm") / self.mark).exists():
            yield "a file is left in /dev/shm"
        if any(_has_key(table, self.key + 1) for table in ("shm", "sem", "msg")):
            yield "a segment, semaphore or queue is left behind"
        if job.submission.exists() and CANARY in job.submission.read_text(errors="replace"):
            yield "the answers were collected"
        if (job.folder / "home").exists():
            yield "the workspace is left behind"

    def _lay_files(self) -> None:
        answers = f"id,label\n1,{CANARY}\n"
        other = self.folder / "other-store" / "tiny" / "prepared" / "private" / "answers.csv"
        self._earlier = self.place.runs / "run" / "tiny" / "seed1" / "attempt1"
        home = self.folder / "user"
        self._private = [
            *(other, home / ".env", home / ".netrc", home / ".config" / "token"),
            *(self._earlier / "submission.csv", self._earlier / "run.log"),
        ]
        for path in self._private:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(answers)
        victim = self.folder / "victim"
        victim.write_text("untouched")
        self._lock = self.folder / "leases" / "ledger.lock"
        self._lock.parent.mkdir()
        self._lock.touch()
        self._victims = [victim, self._lock, *self._private, self.place.public / "train.csv"]
        for path in (*self.folder.rglob("*"), self.folder):  # as careless as can be
            if not path.is_symlink():
                path.chmod(0o777 if path.is_dir() else 0o666)
        self._states = {path: _state(path) for path in self._victims}

    def _sockets(self) -> None:
        self._socket = self.folder / "docker.sock"
        engine = self._stack.enter_context(socket.socket(socket.AF_UNIX))
        engine.bind(str(self._socket))
        self._socket.chmod(0o777)
        abstract = self._stack.enter_context(socket.socket(socket.AF_UNIX))
        abstract.bind(f"\0{self.mark}")
        network = self._stack.enter_context(socket.create_server(("", 0)))
        self._port = network.getsockname()[1]
        for server in (engine, abstract, network):
            server.listen()
            threading.Thread(target=_serve, args=(server,), daemon=True).start()

    def _terminal(self) -> None:
        self._terminal_master, slave = os.openpty()
        self._terminal_name = os.ttyname(slave)
        os.chmod(self._terminal_name, 0o666)  # noqa: PTH101  # a device
        for descriptor in (self._terminal_master, slave):
            self._stack.callback(os.close, descriptor)

    def _shared_memory(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._shared_file = Path("/dev/shm") / f"{self.mark}-bait"
        self._shared_file.write_text(CANARY)
        self._shared_file.chmod(0o666)
        self._stack.callback(self._shared_file.unlink)
        segment = libc.shmget(self.key, 4096, _IPC_CREAT | 0o666)
        self._stack.callback(libc.shmctl, segment, _IPC_RMID, None)

    def _keyring(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        arguments = (b"user", self.mark.encode(), CANARY.encode(), len(CANARY), _USER_RING)
        key = libc.syscall(_ADD_KEY, *arguments)
        if key > 0:  # else the kernel has no keyrings
            self._stack.callback(libc.syscall, _KEYCTL, _UNLINK, key, _USER_RING)


def attempt(attack: Attack, sandbox: Sandbox, network: str, folder: Path, image: str | None) -> Any:
    """Run an attack and return the holes; to be taken for the benchmark's own fault is one."""
    with Scene(folder, linked_store=attack.linked_store) as scene:
        job = scene.job(attack, network, image=image)
        try:
            ending = sandbox.run(job)
        except SandboxError as problem:
            return [f"HOLE it would be repeated, as the benchmark's own fault: {problem}"]
        return scene.holes(attack, job, ending)


def sandbox_of(name: str) -> tuple[Sandbox, str, str | None]:
    """Return a sandbox by its name, the network to try it with, and the image for its agents."""
    if name.startswith("docker-"):
        from docker_images import PYTHON, ensure_images

        from pytest_mlebench.sandbox.docker import DockerSandbox

        docker = DockerSandbox(cache=Path(tempfile.mkdtemp()), grace_seconds=1)
        ensure_images(docker.engine.api)
        network = name.removeprefix("docker-")
        return docker, {"allow": "allow:example.com"}.get(network, network), PYTHON
    if name.startswith("rootless-"):
        from rootless_images import rootless_sandbox

        builder: Any = name.removeprefix("rootless-")
        rootless, image = rootless_sandbox(Path(tempfile.mkdtemp()).resolve(), builder)
        return rootless, "open", image
    from pytest_mlebench.sandbox.process.own_disk import MIN_SECONDS
    from pytest_mlebench.sandbox.process.process_sandbox import ProcessSandbox

    walls: Any = name.removesuffix("-disk")
    seconds = 0.0 if name.endswith("-disk") else MIN_SECONDS
    sandbox = ProcessSandbox(grace_seconds=0.5, builders=(walls,), own_disk_seconds=seconds)
    return sandbox, "open", None


def main(name: str, *chosen: str) -> None:
    """Try attacks and print what came of each."""
    sandbox, network, image = sandbox_of(name)
    for attack in ATTACKS:
        if chosen and attack.name not in chosen:
            continue
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
            holes = attempt(attack, sandbox, network, Path(folder).resolve(), image)
        line = {"attack": attack.name, "holes": holes, "seconds": time.monotonic() - began}
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


def _state(path: Path) -> tuple[Any, ...]:
    try:
        found = path.lstat()
        extended = os.listxattr(path) if stat.S_ISREG(found.st_mode) else []
    except OSError as problem:
        return (str(problem),)
    times = (found.st_mtime_ns, found.st_mode, found.st_uid, found.st_size)
    return (*times, tuple(extended))


def _strangers(mark: str) -> list[int]:
    return [pid for pid in running(mark) if pid != os.getpid()]


def _available(descriptor: int) -> int:
    count = array.array("i", [0])
    fcntl.ioctl(descriptor, 0x541B, count)  # FIONREAD of asm-generic/ioctls.h
    return count[0]


def _has_key(table: str, key: int) -> bool:
    lines = Path(f"/proc/sysvipc/{table}").read_text().splitlines()[1:]
    return any(int(line.split()[0]) == key for line in lines)


def _engine_sockets() -> list[str]:
    given = os.environ.get("DOCKER_HOST", "").removeprefix("unix://")
    known = ("/run/docker.sock", "/var/run/docker.sock", "/run/containerd/containerd.sock")
    return [*([given] if given.startswith("/") else []), *known]


def _own_address() -> str:
    """Return an address of this host that is not the loopback's, if it has one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as anything:
        try:
            anything.connect(("192.0.2.1", 9))  # TEST-NET-1 of RFC 5737: nothing is sent
        except OSError:
            return "127.0.0.1"
        return str(anything.getsockname()[0])


def _serve(server: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            connection, _ = server.accept()
            with connection:
                connection.sendall(CANARY.encode())


@contextlib.contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]


if __name__ == "__main__":
    main(*sys.argv[1:])
