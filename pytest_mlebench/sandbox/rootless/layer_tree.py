"""Layers of an image, applied one after the other to a folder that nothing in them can leave.

What an image says of owners, setuid bits and devices is not done: everything belongs to whoever
unpacks it, can be read by everybody, and nothing else. Removals are written as OCI's image-spec
says: ``.wh.NAME`` for a name, ``.wh..wh..opq`` for all that was in a folder before.
"""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
import zlib
from pathlib import Path
from typing import IO, Protocol, cast

from pytest_mlebench._units import show_size
from pytest_mlebench.errors import ConfigError

RESERVE_BYTES = 1 << 30  # of the disk, which an image must not take

MAX_DEPTH, MAX_PATH_LENGTH = 128, 1024  # a path has 4096 bytes at most, see path_resolution(7)

_WHITEOUT, _OPAQUE, _AUFS = ".wh.", ".wh..wh..opq", ".wh..wh."
_CHUNK = 1 << 20
_BROKEN = (tarfile.TarError, EOFError, zlib.error, ValueError, OverflowError)


class Readable(Protocol):
    """Whatever can be read."""

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes, none at the end."""


class LayerTree:
    """The files of an image."""

    def __init__(self, root: Path, image: str) -> None:
        self._root = root
        self._image = image  # for people
        self._folders: set[Path] = set()  # known to be folders, and no links
        self._added: set[Path] = set()  # by the layer at hand, with the folders above
        self._room = 0  # bytes that may be written before the disk is asked again

    def apply(self, layer: Readable) -> None:
        """Put a layer on top of those before it."""
        self._added = set()
        try:
            with tarfile.open(
                fileobj=cast(IO[bytes], layer),
                mode="r|",
                encoding="utf-8",
                errors="surrogateescape",
            ) as tar:
                for member in tar:
                    self._take(tar, member)
        except _BROKEN as problem:
            raise self._error(f"has a layer that cannot be read: {problem}") from None
        except OSError as problem:
            raise self._error(f"cannot be unpacked: {problem.strerror or problem}") from None

    def _take(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        parts = self._parts(member.name)
        if not parts:
            return
        name = parts[-1]
        if name.startswith(_WHITEOUT):
            self._remove_as_told(parts)
        elif member.isdir():
            self._make_folder(self._place(parts), member.mode)
        elif member.issym():
            place = self._free(parts)
            place.symlink_to(member.linkname)
        elif member.islnk():
            self._link(parts, member)
        elif member.isreg():
            file = tar.extractfile(member)
            if file is not None:
                self._write(self._free(parts), file, member)
        # what is left are devices and pipes, which nobody needs in an image

    def _parts(self, name: str) -> list[str]:
        parts = [part for part in name.split("/") if part not in ("", ".")]
        if name.startswith("/") or ".." in parts:
            raise self._error(f"has a path that leads out of it: {name!r}")
        if len(parts) > MAX_DEPTH or len(name) > MAX_PATH_LENGTH:
            raise self._error(
                f"has a path of {len(parts)} names and {len(name)} letters: at most {MAX_DEPTH} "
                f"and {MAX_PATH_LENGTH} can be unpacked"
            )
        return parts

    def _place(self, parts: list[str]) -> Path:
        """Return where something goes; the folders above it are there, and are no links."""
        folder = self._root
        for part in parts[:-1]:
            folder /= part
            self._added.add(folder)
            if folder in self._folders:
                continue
            try:
                status = folder.lstat()
            except FileNotFoundError:
                folder.mkdir(mode=0o755)
            else:
                if not stat.S_ISDIR(status.st_mode):
                    raise self._error(f"has a path through a link or a file: {'/'.join(parts)!r}")
            self._folders.add(folder)
        place = folder / parts[-1]
        self._added.add(place)
        return place

    def _free(self, parts: list[str]) -> Path:
        place = self._place(parts)
        self._remove(place)
        return place

    def _make_folder(self, place: Path, mode: int) -> None:
        if not place.is_dir() or place.is_symlink():
            self._remove(place)
            place.mkdir()
        place.chmod(_readable(mode) | 0o755)
        self._folders.add(place)

    def _link(self, parts: list[str], member: tarfile.TarInfo) -> None:
        """Give a file a second name; what it names must be there, and no folder."""
        source = self._root
        for part in self._parts(member.linkname):
            if source.is_symlink():
                raise self._error(f"has a path through a link or a file: {member.linkname!r}")
            source /= part
        if not source.is_symlink() and not source.is_file():
            raise self._error(f"has a link to a file that is not there: {member.linkname!r}")
        place = self._place(parts)
        if place != source:
            self._remove(place)
            os.link(source, place, follow_symlinks=False)

    def _write(self, place: Path, file: IO[bytes], member: tarfile.TarInfo) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(place, flags, 0o600), "wb") as target:
            while chunk := file.read(_CHUNK):
                self._require_room(len(chunk))
                target.write(chunk)
            os.fchmod(target.fileno(), _readable(member.mode))
        moment = max(0, int(member.mtime))
        os.utime(place, (moment, moment))  # modules of Python are compiled anew otherwise

    def _require_room(self, size: int) -> None:
        self._room -= size
        if self._room < 0:
            free = shutil.disk_usage(self._root).free
            if free < RESERVE_BYTES + size:
                raise self._error(
                    f"does not fit on the disk of {self._root}, which has {show_size(free)} left"
                )
            self._room = min(free - RESERVE_BYTES, 64 * _CHUNK)

    def _remove_as_told(self, parts: list[str]) -> None:
        *above, name = parts
        folder = self._root.joinpath(*above)
        for place in (folder, *folder.parents):
            if place == self._root:
                break
            if place.is_symlink():
                raise self._error(f"has a path through a link or a file: {'/'.join(parts)!r}")
        if not folder.is_dir():
            return
        if name == _OPAQUE:
            self._empty(folder)
        elif not name.startswith(_AUFS):
            hidden = self._parts(name.removeprefix(_WHITEOUT))
            if len(hidden) == 1 and folder / hidden[0] not in self._added:
                self._remove(folder / hidden[0])

    def _empty(self, folder: Path) -> None:
        """Remove what earlier layers have put into a folder; this one's own stays."""
        for place in list(folder.iterdir()):
            if place not in self._added:
                self._remove(place)
            elif place.is_dir() and not place.is_symlink():
                self._empty(place)

    def _remove(self, place: Path) -> None:
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
            self._folders.clear()
        else:
            place.unlink(missing_ok=True)

    def _error(self, text: str) -> ConfigError:
        return ConfigError(f"the image {self._image} {text}")


def _readable(mode: int) -> int:
    """Return a mode that lets everybody read, and run what the owner may run; nothing setuid."""
    own = mode >> 6 & 0o7 | 0o6
    return own << 6 | (own & 0o5) << 3 | own & 0o5
