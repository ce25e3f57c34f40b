"""Reading 7z archives, by py7zr."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

from pytest_mlebench.archives.damage import damage, missing_member
from pytest_mlebench.archives.entries import ArchiveEntry, check_entries, check_total
from pytest_mlebench.errors import ConfigError


class _Enough(Exception):
    """As many bytes of a member have come as were wanted."""


def names_in_7z(archive: Path) -> list[str]:
    """Return the names of the files in an archive."""
    with damage(archive), _py7zr().SevenZipFile(archive) as opened:
        return [info.filename for info in opened.list() if info.is_file]


def extract_7z(archive: Path, target: Path) -> None:
    """Unpack an archive, judged as a whole before anything is written."""
    py7zr = _py7zr()
    with damage(archive), py7zr.SevenZipFile(archive) as zipped:
        entries = [_entry(info) for info in zipped.list()]
        check_entries(archive, entries, target)
        target.mkdir(parents=True, exist_ok=True)
        zipped.extractall(target)
    for entry in entries:  # py7zr restores modes, down to files that nobody else may read
        (target / entry.name).chmod(0o755 if entry.is_folder else 0o644)


def read_from_7z(archive: Path, name: str) -> bytes:
    """Return the content of one member."""
    py7zr = _py7zr()
    with damage(archive), py7zr.SevenZipFile(archive) as zipped:
        size = _size(archive, zipped, name)
        factory = py7zr.io.BytesIOFactory(max(1, size))
        zipped.extract(targets=[name], factory=factory)
        file = factory.get(name)
        file.seek(0)
        return bytes(file.read())


def read_start_of_7z(archive: Path, name: str, size: int) -> bytes:
    """Return the first bytes of a member, of which the rest is not unpacked."""
    start = _Start(size)
    try:
        with damage(archive), _py7zr().SevenZipFile(archive) as zipped:
            _size(archive, zipped, name)
            zipped.extract(targets=[name], factory=start)
    except _Enough:
        pass
    return bytes(start.content[:size])


class _Start:
    """The beginning of a file, as py7zr writes it: both its factory and its file of bytes."""

    def __init__(self, wanted: int) -> None:
        self.content = bytearray()
        self.wanted = wanted

    def create(self, filename: str) -> _Start:
        del filename  # there is only one
        return self

    def write(self, data: bytes) -> int:
        self.content.extend(data)
        if len(self.content) >= self.wanted:
            raise _Enough
        return len(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        return offset + whence

    def flush(self) -> None: ...

    def close(self) -> None: ...


def _size(archive: Path, zipped: Any, name: str) -> int:
    sizes = {info.filename: info.uncompressed for info in zipped.list()}
    if name not in sizes:
        missing_member(archive, name)
    check_total(archive, sizes[name])
    return int(sizes[name])


def _entry(info: Any) -> ArchiveEntry:
    mode = stat.S_IFREG if info.is_file else stat.S_IFLNK  # a link, a junction, a socket
    return ArchiveEntry(
        info.filename, info.uncompressed or 0, stat.S_IFDIR if info.is_directory else mode
    )


def _py7zr() -> Any:
    try:
        import py7zr  # late on purpose: only few competitions have 7z archives
        import py7zr.io
    except ImportError:
        raise ConfigError(
            "7z archives need py7zr: pip install 'pytest-mlebench[competitions]'"
        ) from None
    return py7zr
