"""Images for the tests, made of this machine's own files: no registry is needed.

``BUSYBOX`` is a static busybox and nothing else; ``PYTHON`` adds the system's Python with its
libraries. Both are imported once per engine and found by their name afterwards. ``ensure_clients``
makes one with the Python that runs the tests and the real clients of models.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

import docker.errors
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

BUSYBOX = "mlebench-test/busybox:2"
PYTHON = "mlebench-test/python:2"

_CLIENTS = "mlebench-test/clients"
_CLIENTS_PYTHON = "opt/python"  # where that image has its Python, which finds its library itself

_LINKS = (("bin", "usr/bin"), ("sbin", "usr/sbin"), ("lib", "usr/lib"), ("lib64", "usr/lib64"))
_FOLDERS = ("usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "etc", "home", "root", "tmp", "var")
_LEFT_OUT = re.compile(
    r"/(test|tests|idlelib|lib2to3|ensurepip|tkinter|__pycache__|dist-packages)$"
)


def ensure_images(api: Any) -> None:
    """Import the images that the engine does not have yet."""
    ensure_busybox(api)
    if not _has(api, PYTHON):
        _import(api, PYTHON, _python_files())


def ensure_busybox(api: Any) -> None:
    """Import the small image alone."""
    if not _has(api, BUSYBOX):
        _import(api, BUSYBOX, ())


def ensure_clients(api: Any) -> str:
    """Import an image with OpenAI's and Anthropic's clients, and return its name."""
    packages = _with_requirements("openai", "anthropic")
    versions = [f"{one.name} {one.version}" for one in packages.values()]
    digest = hashlib.sha256("\n".join([sys.version, *sorted(versions)]).encode()).hexdigest()
    name = f"{_CLIENTS}:{digest[:12]}"
    if not _has(api, name):
        _import(api, name, _client_files(packages.values()), f"/{_CLIENTS_PYTHON}/bin")
    return name


def _has(api: Any, name: str) -> bool:
    try:
        api.inspect_image(name)
    except docker.errors.NotFound:
        return False
    return True


def _import(api: Any, name: str, files: Iterable[tuple[Path, str]], programs: str = "") -> None:
    repository, _, tag = name.partition(":")
    search = ":".join(filter(None, [programs, "/usr/bin", "/usr/sbin"]))
    answer = api.import_image_from_data(
        _packed(files), repository=repository, changes=[f"ENV PATH={search}"]
    )
    image = json.loads(answer.splitlines()[-1])["status"].removeprefix("Loaded image: ")
    api.tag(image, repository, tag)  # apart from the import, where Podman does not look at it


def files_of_image(*, python: bool) -> bytes:
    """Return the files of a test image as a tar, for which no engine is needed."""
    return _packed(_python_files() if python else ())


def _packed(files: Iterable[tuple[Path, str]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        _skeleton(tar)
        for path, target in files:
            tar.add(path, arcname=target, recursive=True, filter=_admit)
    return buffer.getvalue()


def _skeleton(tar: tarfile.TarFile) -> None:
    for name in _FOLDERS:
        _add(tar, name, tarfile.DIRTYPE, mode=0o1777 if name == "tmp" else 0o755)
    for name, target in _LINKS:
        _add(tar, name, tarfile.SYMTYPE, link=target)
    _add(tar, "etc/passwd", tarfile.REGTYPE, content=b"root:x:0:0:root:/root:/bin/sh\n")
    busybox = _program("busybox")
    _add(tar, "usr/bin/busybox", tarfile.REGTYPE, content=busybox.read_bytes(), mode=0o755)
    listing = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True)
    _add(tar, "usr/bin/bash", tarfile.REGTYPE, content=b'#!/bin/sh\nexec sh "$@"\n', mode=0o755)
    for applet in set(listing.stdout.split()) - {"busybox", "bash"}:
        _add(tar, f"usr/bin/{applet}", tarfile.SYMTYPE, link="busybox")


def _add(
    tar: tarfile.TarFile,
    name: str,
    kind: bytes,
    *,
    content: bytes = b"",
    link: str = "",
    mode: int = 0o644,
) -> None:
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.mode, member.size = kind, link, mode, len(content)
    tar.addfile(member, io.BytesIO(content))


def _python_files() -> Iterator[tuple[Path, str]]:
    python = Path("/usr/bin/python3").resolve()
    library = Path("/usr/lib") / python.name
    yield python, "usr/bin/python3"
    yield library, str(library).lstrip("/")
    yield from _libraries([python, *library.glob("lib-dynload/*.so")])


def _client_files(packages: Iterable[Distribution]) -> Iterator[tuple[Path, str]]:
    python = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    library = Path(sysconfig.get_path("stdlib"))
    target = f"{_CLIENTS_PYTHON}/lib/{library.name}"
    yield python.resolve(), f"{_CLIENTS_PYTHON}/bin/python3"
    for path in library.iterdir():
        if path.name != "site-packages":
            yield path, f"{target}/{path.name}"
    programs = [python, *library.glob("lib-dynload/*.so")]
    for package in packages:
        for file in package.files or ():
            path = Path(str(file.locate()))
            if ".." not in file.parts and path.is_file():
                yield path, f"{target}/site-packages/{file}"
                programs += [path] if path.suffix == ".so" else []
    yield from _libraries(programs)


def _with_requirements(*names: str) -> dict[str, Distribution]:
    """Return packages and all that they need, as they are installed here."""
    found: dict[str, Distribution] = {}
    wanted = list(names)
    while wanted:
        name = canonicalize_name(wanted.pop())
        if name in found:
            continue
        found[name] = distribution(name)
        needs = map(Requirement, found[name].requires or ())
        wanted += [
            one.name for one in needs if not one.marker or one.marker.evaluate({"extra": ""})
        ]
    return found


def _libraries(programs: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    text = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=True).stdout
    for name in sorted(set(re.findall(r"(/\S+\.so\S*) \(0x", text))):
        target = str(Path(name).parent.resolve() / Path(name).name).lstrip("/")
        yield Path(name).resolve(), target


def _admit(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if _LEFT_OUT.search(f"/{member.name}"):
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member


def _program(name: str) -> Path:
    path = shutil.which(name)
    if path is None:
        raise FileNotFoundError(f"the test images need {name} (Debian: busybox-static)")
    return Path(path)
