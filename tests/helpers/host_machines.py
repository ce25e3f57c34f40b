"""Three hosts on this machine, with which a test may do what happens to real ones."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socketserver
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from sandbox_job import wait_until

SCRIPT = Path(__file__).parents[2] / "scripts" / "hosts"
# in a host's /tmp, what scripts/hosts lets it see of ours: places of mounts, not the host's files
SEEN = {
    path.relative_to("/tmp").parts[0]
    for path in map(Path.resolve, map(Path, (SCRIPT.parent, sys.prefix, sys.base_prefix)))
    if path.is_relative_to("/tmp")
}
TWO = ("--mle-competition=demo-digits", "--mle-competition=demo-wine-cultivars")

# an agent that waits until the test lets it go on; it finds the test at the other end of the cable
WAITING = """
import os, shutil, socket, sys, time
port, *addresses = sys.argv[1:]
print("hello", flush=True)

def may_go():
    for address in addresses:
        try:
            with socket.create_connection((address, int(port)), 5) as gate:
                gate.sendall(os.environ["COMPETITION_ID"].encode() + b"\\n")
                return gate.recv(10) == b"go"
        except OSError:
            continue  # another host's cable, or ours is cut
    return False

while not may_go():
    time.sleep(0.1)
shutil.copy(os.environ["DATA_DIR"] + "/sample_submission.csv",
            os.environ["SUBMISSION_DIR"] + "/submission.csv")
"""


class Gate(socketserver.ThreadingTCPServer):
    """What agents ask whether they may go on; in this process, reached over the hosts' cables."""

    daemon_threads = True

    def __init__(self) -> None:
        self.open: set[str] = set()  # competitions, or "all"
        super().__init__(("0.0.0.0", 0), _Guard)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def port(self) -> int:
        """Return where it listens."""
        return int(self.server_address[1])


class _Guard(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        competition = self.rfile.readline().decode().strip()
        gates = self.server.open  # type: ignore[attr-defined]  # a Gate
        self.wfile.write(b"go" if gates & {"all", competition} else b"wait")


def write_waiting_agent(path: Path, port: int, *addresses: str) -> str:
    """Write the waiting agent to a folder, and return the option that names it."""
    (path / "waiting.py").write_text(WAITING)
    return f"--mle-agent=python waiting.py {port} {' '.join(addresses)}"


class HostMachines:
    """Hosts h1, h2, …, each with an sshd and a file system of its own."""

    booted: tuple[str, ...] = ("sshd", "unshare", "bash", "ip")  # processes that belong to a host
    own: tuple[str, ...] = ()  # folders in /tmp that do

    def __init__(self, number: int, *, shared: bool = False) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mle-hosts-", dir="/tmp"))
        self.names = [f"h{i}" for i in range(1, number + 1)]
        self._script("up", str(number), *(["shared"] if shared else []))
        self.network = (self.folder / "number").read_text().strip()
        self.gate = Gate()

    def down(self) -> None:
        """End the hosts and all that runs on them."""
        self.gate.shutdown()
        self.gate.server_close()
        self._script("down")
        shutil.rmtree(self.folder, ignore_errors=True)

    def do(self, what: str, name: str, *more: str) -> None:
        """Let something happen to a host: kill, back, cut, mend, slow."""
        self._script(what, name.removeprefix("h"), *more)

    def write_toml(self, path: Path, keepalive: str = "8s", **changes: dict[str, Any]) -> str:
        """Write a hosts.toml, and return the option that names it."""
        lines = [f'ssh_config = "{self.folder}/ssh_config"', f'keepalive = "{keepalive}"']
        for name in [*self.names, *(each for each in changes if each not in self.names)]:
            table = {"python": sys.executable, "slots": 1} | changes.get(name, {})
            lines += [f"[hosts.{name}]", *(f"{k} = {json.dumps(v)}" for k, v in table.items())]
        path.write_text("\n".join(lines))
        return f"--mle-hosts={path}"

    def disk(self, name: str) -> Path:
        """Return where the disk of a host is: tmp/, root/."""
        return self.folder / name

    def let_go(self, *competitions: str) -> None:
        """Let the waiting agents go on, all or those of some competitions."""
        self.gate.open.update(competitions or ("all",))

    def waiting_agent(self, path: Path) -> str:
        """Write the waiting agent to a folder, and return the option that names it."""
        addresses = [f"10.{self.network}.{name[1:]}.1" for name in self.names]
        return write_waiting_agent(path, self.gate.port, *addresses)

    def clear(self) -> None:
        """Remove what the last test left on the disks, and bring back who is away."""
        self.gate.open.clear()
        for name in self.names:
            self.do("mend", name)
            if not self.pids(name):
                self.do("back", name)
            for path in (self.disk(name) / "tmp").iterdir():
                if path.name not in SEEN:
                    path.unlink() if path.is_file() else shutil.rmtree(path)
            shutil.rmtree(self.disk(name) / "root/.pytest-mlebench", ignore_errors=True)

    def pids(self, name: str) -> list[int]:
        """Return the processes of a host."""
        output = subprocess.run(
            ["ip", "netns", "pids", f"mle{self.network}-{name}"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        return [int(each) for each in output.split()]

    def workload(self, name: str) -> list[str]:
        """Return what runs on a host beside what it has booted."""
        found = []
        for pid in self.pids(name):
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if Path(f"/proc/{pid}/comm").read_text().strip() not in self.booted:
                    found.append(f"{pid} {b' '.join(words).decode()[:100]}")
            except OSError:
                continue
        return found

    def leftovers(self) -> list[str]:
        """Return what a session has left: processes, files of runs, folders, leases, sockets."""
        found = [f"{name}: {each}" for name in self.names for each in self.workload(name)]
        for name in self.names:
            runs = self.disk(name) / "root/.pytest-mlebench/runs"
            found += [str(path) for path in runs.rglob("*")]
            leases = (self.disk(name) / "tmp").glob("mlebench-leases-*/[0-9]*")
            found += [str(path) for path in leases]
            found += [str(path) for path in self._sockets(name)]
            temporary = (self.disk(name) / "tmp").glob("tmp*")
            found += [str(path) for path in temporary if path.name not in SEEN]
        return found

    def _sockets(self, name: str) -> list[Path]:
        """Return the sockets on the disk of a host, but for those of what it has booted."""
        tops = [self.disk(name) / "root/.pytest-mlebench", *(self.disk(name) / "tmp").iterdir()]
        mine = [top for top in tops if top.name not in SEEN and top.name not in self.own]
        return [path for top in mine for path in (top, *top.rglob("*")) if path.is_socket()]

    @property
    def address(self) -> str:
        """Return an address of this machine that every host reaches."""
        address = f"10.{self.network}.1.1"
        for name in self.names[1:]:  # it is at the end of the first one's cable
            words = ("route", "replace", address, "via", f"10.{self.network}.{name[1:]}.1")
            subprocess.run(["ip", "-n", f"mle{self.network}-{name}", *words], check=True)
        return address

    def end_connections(self, name: str) -> None:
        """Kill the ssh clients that are connected to a host."""
        config = str(self.folder / "ssh_config").encode()
        for folder in Path("/proc").iterdir():
            if folder.name.isdecimal():
                try:
                    words = (folder / "cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                if words[0] == b"ssh" and config in words and name.encode() in words:
                    os.kill(int(folder.name), signal.SIGKILL)

    def _script(self, *arguments: str) -> None:
        environment = os.environ | {
            "MLEBENCH_HOSTS_DIR": str(self.folder),
            "MLEBENCH_HOSTS_PYTHON": sys.executable,
        }
        subprocess.run([SCRIPT, *arguments], env=environment, check=True, capture_output=True)


class RunningSession:
    """A session in the background, and what its run's folder tells."""

    def __init__(self, path: Path, *arguments: str, run: str = "r", log: str = "output") -> None:
        self.run = path / "mle-runs" / run
        self.output = path / log
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--mle-run={run}"]
        with self.output.open("w") as out:
            self.process = subprocess.Popen(
                [*command, *arguments], cwd=path, stdout=out, stderr=out, start_new_session=True
            )

    def records(self) -> dict[str, dict[str, Any]]:
        """Return the records by their folders."""
        found = {}
        for path in sorted(self.run.glob("*/seed*/attempt*/record.json")):
            try:
                found[str(path.parent.relative_to(self.run))] = json.loads(path.read_text())
            except (OSError, ValueError):
                continue  # it is just being replaced
        return found

    def running(self) -> dict[str, str]:
        """Return the machines by the attempts that run on them."""
        return {
            name: record["conditions"]["machine"]
            for name, record in self.records().items()
            if record["phase"] == "running"
        }

    def wait_for_running(self, number: int) -> dict[str, str]:
        """Wait until so many attempts run at the same time."""
        assert wait_until(
            lambda: len(self.running()) >= number or self.process.poll() is not None, 240
        ), self.text
        assert len(self.running()) >= number, self.text
        return self.running()

    def wait_for_text(self, words: str) -> None:
        """Wait until the session has printed something."""
        assert wait_until(lambda: words in self.text or self.process.poll() is not None, 240), (
            self.text
        )
        assert words in self.text, self.text

    def end(self) -> int:
        """Wait for the end, and return the exit status."""
        return self.process.wait(300)

    @property
    def text(self) -> str:
        """Return what it has printed so far."""
        return self.output.read_text()

    def report(self) -> dict[str, Any]:
        """Return its report."""
        data: dict[str, Any] = json.loads((self.run / "report.json").read_text())
        return data
