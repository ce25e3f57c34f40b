"""An image made ready for attempts: one thin layer on top, made once per image.

The layer gives the agent's user a name and a home, makes the contract's folders and gives them and
the image's own ``/home/agent`` to that user, and holds the static helper and
``validate_submission.sh``. So an attempt starts with nothing left to do, and an image runs
unchanged, even one that has no shell.
"""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_mlebench.errors import ConfigError, SandboxError
from pytest_mlebench.sandbox.account import (
    HOME,
    START,
    Account,
    accounts_in,
    choose_account,
    passwd_with,
)
from pytest_mlebench.sandbox.docker.engine import Engine, EngineFacts
from pytest_mlebench.sandbox.docker.images import REPOSITORY, Image, Images
from pytest_mlebench.sandbox.docker.labels import PREPARED, this_process
from pytest_mlebench.sandbox.validator import validate_script

HELPER = "/.mlebench/helper"
SOCKETS = "/.mlebench/run"  # where the sockets of our side are seen inside

_FOLDERS = ("data", "submission", "logs", "code", "agent")
_MACHINES = {"amd64": "x86_64", "x86_64": "x86_64", "arm64": "aarch64", "aarch64": "aarch64"}
_TEXT_LIMIT = 1 << 20


@dataclass(frozen=True)
class Prepared:
    """An image that is ready for attempts."""

    image: Image  # the agent's own
    name: str  # of the image to run
    account: Account
    start: tuple[str, ...]  # what runs if the agent names no command


class Preparer:
    """Makes images ready, each once per process, the layer once per engine."""

    def __init__(self, engine: Engine, images: Images) -> None:
        self._engine = engine
        self._images = images
        self._done: dict[str, Prepared] = {}

    def prepare(self, image: Image) -> Prepared:
        """Return *image* ready for attempts."""
        if image.id not in self._done or self._images.find(self._done[image.id].name) is None:
            self._done[image.id] = self._prepare(image)
        return replace(self._done[image.id], image=image)

    def _prepare(self, image: Image) -> Prepared:
        engine = self._engine
        with _scratch(engine, image) as container:
            passwd = _read(engine, container, "/etc/passwd") or ""
            has_script = _read(engine, container, START) is not None
        account = choose_account(passwd, image.user, user_id(engine.facts))
        layer = _layer(_read_helper(image), passwd, account)
        key = hashlib.sha256(f"{image.id} {account}".encode() + layer).hexdigest()[:20]
        name = f"{REPOSITORY}/prepared:{key}"
        with self._images.lock(key):
            if self._images.find(name) is None:
                self._add_layer(image, name, account, layer)
        return Prepared(image, name, account, ("bash", START) if has_script else image.command)

    def _add_layer(self, image: Image, name: str, account: Account, archive: bytes) -> None:
        engine = self._engine
        owner = (str(account.uid), str(account.gid))
        with _scratch(engine, image, "own", *owner, *_writable(account)) as container:
            engine.api.put_archive(container, "/", archive)
            _run_to_end(engine, container)
            # The layer outlives the process that makes it: it must not look like an orphan.
            labels = dict.fromkeys(this_process().labels(), "") | {PREPARED: image.id}
            repository, _, tag = name.partition(":")
            engine.api.commit(container, repository, tag, conf={"Labels": labels})


def user_id(facts: EngineFacts) -> tuple[int, int] | None:
    """Return the user whose files can be shared with us; None where the image may choose."""
    if facts.rootless and facts.name == "docker":
        return (0, 0)  # which is our own, unprivileged user outside
    if facts.local and os.getuid() != 0:
        return (os.getuid(), os.getgid())
    return None


def _read_helper(image: Image) -> bytes:
    machine = _MACHINES.get(image.architecture)
    if machine is None:
        raise ConfigError(
            f"the image {image.name!r} is for {image.architecture}: "
            "the docker sandbox runs images for amd64 and arm64"
        )
    return (Path(__file__).parent / "helper" / f"helper-{machine}").read_bytes()


def _writable(account: Account) -> list[str]:
    folders = [f"{HOME}/{name}" for name in _FOLDERS if name != "data"]
    return [SOCKETS, *folders, *([account.home] if account.home not in folders else [])]


def _layer(helper: bytes, passwd: str, account: Account) -> bytes:
    """Return the tar archive of everything that the layer adds."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        _add_folder(tar, ".mlebench")
        _add_folder(tar, SOCKETS)
        _add_file(tar, HELPER, helper, 0o755)
        _add_file(tar, f"{HOME}/validate_submission.sh", validate_script().encode(), 0o755)
        _add_file(tar, f"{HOME}/instructions.txt", b"", 0o644)
        for name in _FOLDERS:
            _add_folder(tar, f"{HOME}/{name}")
        _add_folder(tar, account.home)
        if account.uid not in {other.uid for other in accounts_in(passwd)}:
            _add_file(tar, "/etc/passwd", passwd_with(passwd, account).encode(), 0o644)
    return buffer.getvalue()


def _add_folder(tar: tarfile.TarFile, path: str) -> None:
    member = tarfile.TarInfo(path.lstrip("/"))
    member.type, member.mode = tarfile.DIRTYPE, 0o755
    tar.addfile(member)


def _add_file(tar: tarfile.TarFile, path: str, content: bytes, mode: int) -> None:
    member = tarfile.TarInfo(path.lstrip("/"))
    member.size, member.mode = len(content), mode
    tar.addfile(member, io.BytesIO(content))


@contextmanager
def _scratch(engine: Engine, image: Image, *command: str) -> Iterator[str]:
    """Yield the id of a container of an image, to be looked into and changed; no agent's."""
    api = engine.api
    container = api.create_container(
        image.id,
        entrypoint=[HELPER],
        command=list(command),
        user="0:0",
        labels=this_process().labels(),
        host_config=api.create_host_config(
            network_mode="none",
            cap_drop=["ALL"],
            cap_add=["CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER"],
        ),
    )["Id"]
    try:
        yield container
    finally:
        api.remove_container(container, force=True, v=True)


def _read(engine: Engine, container: str, path: str) -> str | None:
    """Return a small text file of a container; None where there is none."""
    try:
        chunks, facts = engine.api.get_archive(container, path)
    except engine.sdk.errors.NotFound:
        return None
    if facts["size"] > _TEXT_LIMIT:
        raise ConfigError(f"{path} of the image is not a small text file")
    with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as tar:
        member = tar.next()
        file = tar.extractfile(member) if member is not None and member.isfile() else None
        return None if file is None else file.read().decode(errors="replace")


def _run_to_end(engine: Engine, container: str) -> None:
    engine.api.start(container)
    status = engine.api.wait(container)["StatusCode"]
    if status != 0:
        log = engine.api.logs(container, tail=5).decode(errors="replace").strip()
        raise SandboxError(f"cannot prepare an image for attempts: exit code {status}: {log}")
