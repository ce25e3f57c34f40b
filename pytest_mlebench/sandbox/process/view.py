"""What an agent sees of this host: a list of what is there, and everything else is not.

    steps = view(job, home, environments)

System programs and libraries, the parts of /etc that programs need, the Python that runs us, the
agent's own program, its workspace, the data. No home folders, no other stores, no sockets of
daemons, no keys: not because they are known and taken away, but because nobody has put them there.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from pytest_mlebench.agents.command_files import modules_beside, named_paths
from pytest_mlebench.sandbox import Job
from pytest_mlebench.sandbox.hidden import hidden_folders
from pytest_mlebench.sandbox.mounts import extra_mounts
from pytest_mlebench.sandbox.process.devices import gpu_devices
from pytest_mlebench.sandbox.process.namespaces import HOST_NAME
from pytest_mlebench.sandbox.process.order import Function, Step, StepKind
from pytest_mlebench.sandbox.process.python_environment import (
    environment_in,
    environment_of,
    own_environment,
)
from pytest_mlebench.sandbox.process.workspace import Workspace

_SYSTEM = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "nix/store", "gnu/store")
KERNEL = ("sys/devices", "sys/bus", "sys/class", "sys/dev", "sys/module")

# Settings of libraries and programs; no keys, no passwords, nothing of this host's services.
_SETTINGS = (
    *("alternatives", "ca-certificates", "ca-certificates.conf", "crypto-policies", "pki/ca-trust"),
    *("pki/tls/cert.pem", "pki/tls/certs", "pki/tls/openssl.cnf", "ssl/cert.pem", "ssl/certs"),
    *("ssl/openssl.cnf", "gai.conf", "host.conf", "nsswitch.conf", "networks", "protocols"),
    *("services", "rpc", "ethertypes", "ld.so.cache", "ld.so.conf", "ld.so.conf.d"),
    *("locale.alias", "locale.conf", "localtime", "timezone", "os-release", "debian_version"),
    *("redhat-release", "alpine-release", "lsb-release", "magic", "magic.mime", "mime.types"),
    *("bash.bashrc", "bashrc", "inputrc", "profile", "shells", "terminfo", "DIR_COLORS"),
    *("fonts", "ImageMagick-6", "ImageMagick-7", "glvnd", "OpenCL", "vulkan", "nvidia", "amdgpu"),
    *("python3", "python3.11", "python3.12", "python3.13", "python3.14", "java", "R", "julia"),
    *("java-8-openjdk", "java-11-openjdk", "java-17-openjdk", "java-21-openjdk", "perl", "maven"),
    *("opt/rocm", "sgml", "xml", "texmf", "libibverbs.d", "openmpi", "emacs", "vim", "nanorc"),
)

_CHANGING = ("resolv.conf",)  # while a session runs

# Too much to show because a command happens to name it.
_NEVER_WHOLE = (
    *("/", "/boot", "/dev", "/etc", "/home", "/media", "/mnt", "/opt", "/proc", "/root", "/run"),
    *("/srv", "/sys", "/tmp", "/var", "/var/lib", "/var/run", "/var/tmp"),
)

_GROUPS = "root:x:0:\nnogroup:x:65534:\nagent:x:{group}:\n"
_USERS = (
    "root:x:0:0:root:/:/usr/sbin/nologin\n"
    "agent:x:{user}:{group}:agent:{home}:/bin/sh\n"
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
)
_SHORT = 1 << 14  # bytes
_HOSTS = "127.0.0.1 localhost {name}\n::1 localhost ip6-localhost ip6-loopback\n"


def view(job: Job, workspace: Workspace, *, user: int | None, path: str) -> tuple[Step, ...]:
    """Return what a job's agent finds, in the order in which it is put in its place.

    *path* is where its programs are looked for.
    """
    made = _View(hidden_folders(job.hidden))
    made.host(workspace.home, user)
    for own in _agents_own(job, workspace, path):
        if not _bars_the_way(own, workspace.home, user):
            made.show(own)
    for mount in extra_mounts(job):
        made.add("show" if mount.read_only else "lend", mount.target, str(mount.source))
    made.cover()
    made.add("lend", str(workspace.home), str(workspace.home))
    made.add("show", str(workspace.home / "data"), str(job.data.resolve()))
    for device in gpu_devices(job.gpus) if job.limits.gpus else ():
        made.add("device", device, device)
    return tuple(made.steps)


def bare_view(home: Path, *, user: int | None) -> tuple[Step, ...]:
    """Return what every agent finds."""
    made = _View(set())
    made.host(home, user)
    made.add("lend", str(home), str(home))
    return tuple(made.steps)


def interpreter_view() -> tuple[Step, ...]:
    """Return what a Python needs of this host to start, with nothing of /etc."""
    made = _View(set())
    made.system()
    for path in own_environment():
        made.show(path)
    return tuple(made.steps)


def hosts_file(*, host: bool = True) -> str:
    """Return a table of host names: the agent's own, and what this *host* has in its own."""
    return _HOSTS.format(name=HOST_NAME) + (host_text("hosts") if host else "")


def host_text(name: str) -> str:
    """Return a small text of this host's /etc, nothing where it is not for everybody."""
    return _short_text(Path(os.path.realpath(f"/etc/{name}"))) or ""


class _View:
    """Steps, gathered so that nothing is shown twice and nothing hidden at all."""

    def __init__(self, hidden: set[Path]) -> None:
        self.steps: list[Step] = []
        self._hidden = hidden
        self.shown: list[Path] = []

    def add(self, kind: StepKind, target: str, source: str = "", size: int = 0) -> None:
        self.steps.append(Step(kind, target, source, size))

    def host(self, home: Path, user: int | None) -> None:
        """Show what programs need of this host; temporary files go to the workspace."""
        for target in ("/tmp", "/var/tmp"):  # first: there may be something to show in them
            self.add("lend", target, str(home / "tmp"))
        steps, shown = _of_every_host()
        self.steps += steps
        self.shown += shown
        for name in _CHANGING:
            self.setting(name)
        group = os.getgid() if user is None else user
        user = os.getuid() if user is None else user
        values = {"user": user, "group": group, "home": home, "name": HOST_NAME}
        self.add("file", "/etc/passwd", _USERS.format(**values))
        self.add("file", "/etc/group", _GROUPS.format(**values))
        self.add("file", "/etc/hosts", hosts_file())
        self.add("empty", "/run", size=4096)

    def system(self) -> None:
        """Show programs and libraries, and what the kernel tells about the hardware."""
        for name in (*_SYSTEM, *KERNEL):
            path = Path("/", name)
            if path.is_symlink():
                self.add("link", str(path), str(path.readlink()))
            elif path.is_dir():
                self._show_at(path, path)

    def setting(self, name: str) -> None:
        """Show a part of /etc, if it is there."""
        path = Path("/etc", name)
        found = Path(os.path.realpath(path))
        if path.is_symlink() and self._is_shown(found):
            self.add("link", str(path), str(found))
        elif (text := _short_text(found)) is not None:  # a copy is cheaper than a mount
            self.add("file", str(path), text)
        elif found.exists():
            self.add("show", str(path), str(found))

    def show(self, path: Path) -> None:
        """Show a file or a folder of the host, at its own place and where links to it lead."""
        real = Path(os.path.realpath(path))
        if any(real == other or other in real.parents for other in self._hidden):
            return
        if real.is_dir() and _is_too_much(real):
            return
        self._show_at(real, real)
        self._show_at(path.absolute(), real)

    def _show_at(self, place: Path, real: Path) -> None:
        if not self._is_shown(place):
            self.shown.append(place)
            self.add("show", str(place), str(real))

    def cover(self) -> None:
        """Put nothing wherever what is hidden would be seen in a folder that is shown."""
        shown = [step for step in self.steps if step.kind in {"show", "lend"}]
        for hidden in sorted(self._hidden):
            for step in shown:
                if hidden.is_relative_to(step.source) and hidden.is_dir():
                    place = Path(step.target) / hidden.relative_to(step.source)
                    self.add("empty", str(place), size=4096)

    def _is_shown(self, path: Path) -> bool:
        return any(path == other or other in path.parents for other in self.shown)


def _is_too_much(folder: Path) -> bool:
    """Tell whether a folder is one of the system's own, or holds somebody's home."""
    return str(folder) in _NEVER_WHOLE or Path.home().resolve().is_relative_to(folder)


def _bars_the_way(folder: Path, home: Path, user: int | None) -> bool:
    """Tell whether the agent's own user could not pass through a folder to the workspace."""
    if user is None or not home.is_relative_to(folder.resolve()):
        return False
    return not folder.stat().st_mode & stat.S_IXOTH


def _agents_own(job: Job, workspace: Workspace, path: str) -> Iterator[Path]:
    """Yield the agent's own program, and the files and folders that its command names."""
    agent = job.agent
    if agent.function is not None:
        yield from _module_of(agent.function)
    if agent.folder is not None:
        for prefix in workspace.environments:
            yield from environment_in(prefix, agent.folder)
    program = shutil.which(agent.command[0], path=path) if agent.command else None
    if program is not None:
        yield from environment_of(Path(program))
        yield Path(program)
    for named in named_paths(agent.command):
        yield named
        yield from modules_beside(named)


def _module_of(function: Function) -> Iterator[Path]:
    """Yield the package or file that a function comes from: it may import more of it."""
    name = getattr(function, "__module__", "")
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None:
        return
    path = Path(file)
    while (path.parent / "__init__.py").is_file():
        path = path.parent
    yield path


@lru_cache(maxsize=1)
def _of_every_host() -> tuple[list[Step], list[Path]]:
    """Return the steps that are the same for all attempts of a session, and what they show."""
    made = _View(set())
    made.system()
    for name in _SETTINGS:
        made.setting(name)
    for path in own_environment():
        made.show(path)
    return made.steps, made.shown


def _short_text(path: Path) -> str | None:
    """Return what is in a small text file, None if it is not one that everybody may read."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or not status.st_mode & stat.S_IROTH:
            return None
        return path.read_text(encoding="utf-8") if status.st_size < _SHORT else None
    except (OSError, UnicodeDecodeError):
        return None
