"""Datasets on an engine elsewhere: copied into a volume once, by one process alone."""

from __future__ import annotations

import hashlib
import os
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

from pytest_mlebench._files import write_text
from pytest_mlebench.sandbox.docker.engine import Engine
from pytest_mlebench.sandbox.docker.images import Images
from pytest_mlebench.sandbox.docker.labels import COPIED, this_process

_TARGET = "/data"
_CHUNK = 1 << 20


class DataVolumes:
    """The volumes of one engine that hold datasets; *cache* tells which of them are complete."""

    def __init__(self, engine: Engine, images: Images, cache: Path) -> None:
        self._engine = engine
        self._images = images
        self._cache = cache

    def ensure(self, data: Path, image: str) -> str:
        """Return the volume that holds *data*, copied by way of a container of *image*."""
        name = f"pytest-mlebench-data-{_fingerprint(data)}"
        # A copy that broke off looks like any other from outside: only we know which one did not.
        engine_id = hashlib.sha256(self._engine.facts.id.encode()).hexdigest()[:12]
        complete = self._cache / "volumes" / engine_id / name
        with self._images.lock(name):
            if not (complete.exists() and self._exists(name)):
                self._copy(data, name, image)
                write_text(complete, f"{data}\n")
        return name

    def _exists(self, name: str) -> bool:
        try:
            self._engine.api.inspect_volume(name)
        except self._engine.sdk.errors.NotFound:
            return False
        return True

    def _copy(self, data: Path, name: str, image: str) -> None:
        api, types = self._engine.api, self._engine.sdk.types
        if self._exists(name):
            api.remove_volume(name)
        api.create_volume(name, labels={COPIED: data.parts[-3] if len(data.parts) > 3 else "data"})
        container = api.create_container(
            image,
            entrypoint=["-"],  # it is never started
            labels=this_process().labels(),
            host_config=api.create_host_config(
                network_mode="none", mounts=[types.Mount(_TARGET, name, type="volume")]
            ),
        )["Id"]
        try:
            # As long as the data take: the answer comes after the last byte.
            self._engine.streams.put_archive(container, _TARGET, _archive(data))
        finally:
            api.remove_container(container, force=True)


def _fingerprint(data: Path) -> str:
    """Return what changes when a file of a folder does, without reading them all."""
    digest = hashlib.sha256(str(data.resolve()).encode())
    for folder, names, files in os.walk(data):
        names.sort()
        for name in sorted(files):
            status = os.lstat(Path(folder, name))
            line = f"{Path(folder, name).relative_to(data)}\0{status.st_size}\0{status.st_mtime_ns}"
            digest.update(f"{line}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()[:20]


def _archive(data: Path) -> Iterator[bytes]:
    """Yield a folder as a tar archive that everybody may read, made as it is sent."""
    read, write = os.pipe()
    problems: list[BaseException] = []

    def admit(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        member.mode |= 0o555 if member.isdir() else 0o444
        return member

    def fill() -> None:
        try:
            with os.fdopen(write, "wb") as pipe, tarfile.open(fileobj=pipe, mode="w|") as tar:
                tar.add(data, arcname=".", filter=admit)
        except BaseException as problem:
            problems.append(problem)

    writer = threading.Thread(target=fill, daemon=True)
    writer.start()
    with os.fdopen(read, "rb") as pipe:
        while chunk := pipe.read(_CHUNK):
            yield chunk
    writer.join()
    if problems:
        raise problems[0]  # a copy that is not complete must not look so
