"""Agents and competitions as they travel: a tar of their files, known by its sha256.

The same files make the same tar, so that a host that has it once needs it no more. Secrets take no
part in it: they travel by value, to the memory of workers only.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import os
import pickle
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_mlebench.agent import Agent
from pytest_mlebench.agents.command_files import modules_beside
from pytest_mlebench.agents.content import agent_files, is_environment
from pytest_mlebench.competition import RAW
from pytest_mlebench.errors import ConfigError, InfrastructureError
from pytest_mlebench.machines.posting import Parcel

AGENT = "agent.pickle"  # from the controller, which the worker trusts with all it does
PYTHON = "{python}"  # in a command: the interpreter that runs us, on whichever host
MAX_RAW_BYTES = 100 << 20  # of a competition of one's own: more is data, which does not travel


@dataclass(frozen=True)
class Package:
    """Files that are ready to travel."""

    data: bytes
    sha256: str

    @property
    def parcel(self) -> Parcel:
        """Return what a worker has to know in order to fetch it."""
        return Parcel(self.sha256, len(self.data))


def pack_agent(agent: Agent, hidden: tuple[Path, ...] = ()) -> Package:
    """Return an agent with all of its files."""
    with _packing() as (tar, packed):
        _add(tar, AGENT, _pickled(agent, tar, hidden))
    return packed()


def pack_competitions(folders: Iterable[Path]) -> Package:
    """Return the definitions of competitions, with their raw files where these are small."""
    with _packing() as (tar, packed):
        for folder in sorted(folders):
            raw = folder / RAW
            size = sum(path.stat().st_size for path in raw.rglob("*") if path.is_file())
            hidden = (raw,) if size > MAX_RAW_BYTES else ()
            _add_folder(tar, folder, folder.name, f"competition {folder.name!r}", hidden)
    return packed()


def unpack(data: bytes, sha256: str, cache: Path) -> Path:
    """Unpack what has travelled, once, and return its folder."""
    place = unpacked_folder(cache, sha256)
    if place.is_dir():
        return place
    if hashlib.sha256(data).hexdigest() != sha256:
        raise InfrastructureError("a package arrived damaged")
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=".part-", dir=cache))
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            tar.extractall(part, filter="tar")
        part.rename(place)
    except OSError:
        shutil.rmtree(part, ignore_errors=True)
        if not place.is_dir():  # else another worker was faster
            raise
    return place


def unpacked_folder(cache: Path, sha256: str) -> Path:
    """Return where a package is, once it is unpacked."""
    return cache / sha256[:32]


def read_agent(place: Path) -> Agent:
    """Return the agent that was unpacked, with the paths that it has here."""
    try:
        agent: Agent = pickle.loads((place / AGENT).read_bytes())
    except (ImportError, AttributeError) as problem:
        raise ConfigError(
            f"the agent needs Python code that this host has not ({problem}): install it there"
        ) from None
    words = (sys.executable if word == PYTHON else _here(place, word) for word in agent.command)
    return replace(
        agent,
        command=tuple(words),
        folder=agent.folder and place / agent.folder,
        build=agent.build and place / agent.build,
    )


@contextlib.contextmanager
def _packing() -> Iterator[tuple[tarfile.TarFile, Callable[[], Package]]]:
    """Yield a tar to be filled, and what returns it as a package when it is closed."""
    buffer = io.BytesIO()

    def packed() -> Package:
        data = buffer.getvalue()
        return Package(data, hashlib.sha256(data).hexdigest())

    with (
        gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w") as tar,
    ):
        yield tar, packed


def _here(place: Path, word: str) -> str:
    prefix = "{files}/"
    return str(place / word.removeprefix(prefix)) if word.startswith(prefix) else word


def _pickled(agent: Agent, tar: tarfile.TarFile, hidden: tuple[Path, ...]) -> bytes:
    """Return the agent with paths inside of the tar, having put its files there."""
    roots: dict[Path, str] = {}
    hidden = agent.without_image(hidden)
    for path, name in ((agent.folder, "folder"), (agent.build, "build")):
        if path is not None:
            roots[path] = name
            _add_folder(tar, path, name, f"agent {agent.name!r}", hidden)
    words = [_word(word, roots, tar, number) for number, word in enumerate(agent.command)]
    travelling = replace(
        agent,
        command=tuple(words),
        folder=None if agent.folder is None else Path(roots[agent.folder]),
        build=None if agent.build is None else Path(roots[agent.build]),
    )
    try:
        return pickle.dumps(travelling, protocol=4)
    except (pickle.PicklingError, AttributeError, TypeError):
        raise ConfigError(
            f"agent {agent.name!r} is a Python function that cannot travel to other hosts: define "
            "it in a module that is installed there, or give it a command"
        ) from None


def _word(word: str, roots: dict[Path, str], tar: tarfile.TarFile, number: int) -> str:
    """Return a word of the command as it is to be on the other host."""
    if word == sys.executable:
        return PYTHON
    path = Path(word)
    if not path.is_absolute() or not path.exists():
        return word
    for root, name in roots.items():
        if path.is_relative_to(root):
            return f"{{files}}/{name}/{path.relative_to(root)}"
    if number == 0 or not path.is_file():
        return word  # a program of the system
    place = f"file{number}"
    _add_file(tar, f"{place}/{path.name}", path)
    for module in modules_beside(path):
        if module.is_dir():
            _add_folder(tar, module, f"{place}/{module.name}", f"the agent's {path.name}", ())
        elif module != path:
            _add_file(tar, f"{place}/{module.name}", module)
    return f"{{files}}/{place}/{path.name}"


def _add_folder(
    tar: tarfile.TarFile, folder: Path, name: str, whose: str, hidden: tuple[Path, ...]
) -> None:
    for inner, path in agent_files(folder, hidden):
        if is_environment(path):
            raise ConfigError(
                f"{whose} has a virtual environment in its folder, {path}, which "
                "cannot travel to other hosts: put what it needs into an image, or install it there"
            )
        if path.is_symlink():
            link = tarfile.TarInfo(f"{name}/{inner}")
            link.type, link.linkname = tarfile.SYMTYPE, str(path.readlink())
            tar.addfile(link)
        elif path.is_file():
            _add_file(tar, f"{name}/{inner}", path)


def _add_file(tar: tarfile.TarFile, name: str, path: Path) -> None:
    _add(tar, name, path.read_bytes(), executable=os.access(path, os.X_OK))


def _add(tar: tarfile.TarFile, name: str, data: bytes, *, executable: bool = False) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    entry.mode = 0o755 if executable else 0o644
    tar.addfile(entry, io.BytesIO(data))
