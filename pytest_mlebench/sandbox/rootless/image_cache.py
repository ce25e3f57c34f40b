"""Images that are unpacked: each once, by its digest, whole or not at all.

    CACHE/<sha256>/root        the image's files
    CACHE/<sha256>/image.json  what it says of itself; written last
    CACHE/engine/<id>          which of them an image of a container engine is

A shared lock on ``<sha256>/in-use`` keeps an image from being removed while a session uses it.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tarfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock

from pytest_mlebench._files import write_text
from pytest_mlebench.agent import Agent
from pytest_mlebench.errors import ConfigError, InfrastructureError
from pytest_mlebench.sandbox.account import START
from pytest_mlebench.sandbox.rootless.image_archive import (
    ImageArchive,
    ImageFacts,
    host_architecture,
    opened_archive,
)
from pytest_mlebench.sandbox.rootless.layer_tree import LayerTree
from pytest_mlebench.sandbox.rootless.mount_points import make_mount_points, read_text

if TYPE_CHECKING:
    from pytest_mlebench.sandbox.docker.engine import Engine
    from pytest_mlebench.sandbox.docker.images import Image

FOLDER = ".images"  # in the dataset store

Bring = Callable[[], Iterator[bytes]]  # returns an image of another host, saved

_FACTS, _IN_USE, _ENGINE, _LOCKS = "image.json", "in-use", "engine", "locks"


@dataclass(frozen=True)
class UnpackedImage:
    """An image that is ready for attempts."""

    name: str  # as the user knows it
    facts: ImageFacts
    root: Path

    @property
    def start(self) -> tuple[str, ...]:
        """Return what runs if the agent names no command."""
        has_script = read_text(self.root, START) is not None
        return ("bash", START) if has_script else self.facts.command

    @property
    def passwd(self) -> str:
        """Return the image's table of users."""
        return read_text(self.root, "/etc/passwd") or ""


class ImageCache:
    """The unpacked images of one store; *hidden* is never built into one."""

    def __init__(self, folder: Path, hidden: Sequence[Path] = ()) -> None:
        self._folder = folder
        self._hidden = hidden
        self._held: dict[Path, int] = {}  # descriptors with a shared lock

    def ensure(self, agent: Agent) -> UnpackedImage:
        """Return the agent's image, unpacked by one process alone unless it is there."""
        with self._writing():
            if (archive := agent.image_archive) is not None:
                return self._from_archive(archive, str(archive))
            return self._from_engine(agent)

    def ensure_same(self, agent: Agent, digest: str, bring: Bring) -> UnpackedImage:
        """Return the very image that another host has: unpacked or in a file here, else sent."""
        place, name = self._place(digest), agent.image or agent.name
        with self._writing(), self._lock(f"sent-{place.name}"):
            with self._lock(place.name):
                if (place / _FACTS).is_file():
                    return self._hold(place, name)
            archive = agent.image_archive
            if archive is not None and archive.exists() and self.digest(agent) == digest:
                return self._from_archive(archive, name)
            found = self._from_sent(place, name, bring)
        if found.facts.digest != digest:
            raise ConfigError(f"the image {found.facts.digest} was sent in the place of {digest}")
        return found

    def save(self, agent: Agent, path: Path) -> None:
        """Write an agent's image to a file, for another host to unpack."""
        path.unlink(missing_ok=True)
        archive = agent.image_archive
        if archive is None:
            self._save_from_engine(*self._engine_image(agent), path)
        elif archive.is_dir():
            with tarfile.open(path, "w") as tar:
                tar.add(archive, arcname=".")
        else:
            try:
                os.link(archive, path)
            except OSError:  # on another disk
                shutil.copyfile(archive, path)

    def digest(self, agent: Agent) -> str:
        """Return what identifies an agent's image; an archive need not be unpacked for that."""
        if (archive := agent.image_archive) is None:
            return self.ensure(agent).facts.digest
        with opened_archive(archive) as found:
            return found.facts.digest

    def _from_archive(self, path: Path, name: str) -> UnpackedImage:
        with opened_archive(path) as archive:
            facts, own = archive.facts, host_architecture()
            if facts.architecture != own:
                raise ConfigError(
                    f"the image {name} is for {facts.architecture}, and this machine is {own}"
                )
            place = self._place(facts.digest)
            with self._lock(place.name):
                if not (place / _FACTS).is_file():
                    self._unpack(archive, place, name)
                return self._hold(place, name)

    def _unpack(self, archive: ImageArchive, place: Path, name: str) -> None:
        partial = place.with_name(f".{place.name}.partial")  # of a process that was killed, or ours
        for path in (partial, place):
            shutil.rmtree(path, ignore_errors=True)
        root = partial / "root"
        try:
            root.mkdir(parents=True)
            tree = LayerTree(root, name)
            for layer in archive.layers:
                with archive.layer(layer) as file:
                    tree.apply(file)
            make_mount_points(root)
            root.chmod(0o755)
            (partial / _IN_USE).touch()
            write_text(partial / _FACTS, json.dumps(archive.facts.to_dict()))
            partial.rename(place)
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def _from_sent(self, place: Path, name: str, bring: Bring) -> UnpackedImage:
        saved = place.with_name(f".{place.name}.sent")
        try:
            with saved.open("wb") as file:
                for piece in bring():
                    file.write(piece)
            return self._from_archive(saved, name)
        except InfrastructureError as problem:
            raise ConfigError(
                f"the image {name} is not here, and was not sent ({problem}): put it where the "
                "agent's image= says"
            ) from None
        finally:
            saved.unlink(missing_ok=True)

    def _engine_image(self, agent: Agent) -> tuple[Engine, Image]:
        """Return an image that a container engine has, pulls or builds, and the engine."""
        # late on purpose: heavy
        from pytest_mlebench.sandbox.docker.engine import Engine
        from pytest_mlebench.sandbox.docker.images import Images

        try:
            engine = Engine()
        except ConfigError as problem:
            raise ConfigError(
                f"agent {agent.name!r} has its image on a container engine ({problem}); without "
                "one, give agent.toml image= a file that docker save -o FILE.tar has written"
            ) from None
        return engine, Images(engine, self._folder / _ENGINE, self._hidden).ensure(agent)

    def _save_from_engine(self, engine: Engine, image: Image, path: Path) -> None:
        with engine.asked("cannot save the image"), path.open("wb") as file:
            for chunk in engine.streams.get_image(image.id):
                file.write(chunk)

    def _from_engine(self, agent: Agent) -> UnpackedImage:
        engine, image = self._engine_image(agent)
        key = image.id.removeprefix("sha256:")
        known = self._folder / _ENGINE / key
        with self._lock(f"engine-{key}"):
            if known.is_file():
                place = self._place(known.read_text(encoding="ascii"))
                with self._lock(place.name):
                    if (place / _FACTS).is_file():
                        return self._hold(place, image.name)
            saved = self._folder / f".{key}.tar"
            try:
                self._save_from_engine(engine, image, saved)
                found = self._from_archive(saved, image.name)
                known.parent.mkdir(exist_ok=True)
                write_text(known, found.facts.digest)
                return found
            finally:
                saved.unlink(missing_ok=True)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Make the cache, and say of a disk that cannot be written to what is wrong."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            yield
        except OSError as problem:
            raise ConfigError(
                f"cannot keep an unpacked image in {self._folder}: {problem.strerror or problem}: "
                "choose another --mle-data-dir"
            ) from None

    def _hold(self, place: Path, name: str) -> UnpackedImage:
        """Return an image that nobody removes while this process lives."""
        if place not in self._held:
            descriptor = os.open(place / _IN_USE, os.O_RDONLY | os.O_CLOEXEC)
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            self._held[place] = descriptor
        facts = ImageFacts.from_dict(json.loads((place / _FACTS).read_text(encoding="utf-8")))
        return UnpackedImage(name, facts, (place / "root").resolve())

    def _place(self, digest: str) -> Path:
        return self._folder / digest.removeprefix("sha256:")

    def _lock(self, key: str) -> FileLock:
        return _lock(self._folder, key)


def find_unused(folder: Path) -> Iterator[Path]:
    """Yield the unpacked images that no session uses."""
    for facts in sorted(folder.glob(f"*/{_FACTS}")):
        with _alone(facts.parent) as free:
            if free:
                yield facts.parent


def remove_unused(folder: Path) -> Iterator[Path]:
    """Remove the unpacked images that no session uses, and yield each."""
    for facts in sorted(folder.glob(f"*/{_FACTS}")):
        place = facts.parent
        with _lock(folder, place.name), _alone(place) as free:
            if free:
                facts.unlink()  # what is left is made anew
                shutil.rmtree(place)
        if free:
            yield place


@contextmanager
def _alone(place: Path) -> Iterator[bool]:
    """Yield whether nobody uses an image, and nobody will while the block lasts."""
    with (place / _IN_USE).open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def _lock(folder: Path, key: str) -> FileLock:
    locks = folder / _LOCKS
    locks.mkdir(exist_ok=True)
    return FileLock(locks / f"{key}.lock")
