"""Archives: unpack any safely, write some reproducibly."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, Literal

from pytest_mlebench._files import atomic_file
from pytest_mlebench.archives.damage import damage, missing_member
from pytest_mlebench.archives.deflate import in_blocks, in_threads
from pytest_mlebench.archives.entries import MAX_ENTRIES, ArchiveEntry, check_entries, check_total
from pytest_mlebench.archives.seven_zip_reader import extract_7z, names_in_7z, read_from_7z
from pytest_mlebench.archives.seven_zip_writer import write_files
from pytest_mlebench.archives.unzip import unzip
from pytest_mlebench.archives.zip_members import ZipMember, packed_reader
from pytest_mlebench.archives.zip_writer import SmallFile, ZipWriter, file_blocks, read_small
from pytest_mlebench.errors import PreparationError

Kind = Literal["zip", "7z", "tar"]
Members = Path | Mapping[str, Path] | Mapping[str, ZipMember] | Mapping[str, Path | ZipMember]

BUFFER_BYTES = 4 << 20
CHUNK_BYTES = 1 << 20
FILES_AHEAD = 16  # that a thread reads and packs at a time, small ones

_COMPRESSED: dict[bytes, Callable[[IO[bytes]], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}


def kind(archive: Path) -> Kind:
    """Tell by its content what sort of archive a file is."""
    try:
        with archive.open("rb") as file:
            magic = file.read(6)
    except FileNotFoundError:
        raise PreparationError(f"{archive}: no such archive") from None
    except IsADirectoryError:
        raise PreparationError(f"{archive}: is a folder, not an archive") from None
    if magic[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return "zip"
    if magic == b"7z\xbc\xaf\x27\x1c":
        return "7z"
    if _is_tar(archive):
        return "tar"
    raise PreparationError(f"{archive}: neither zip, 7z nor tar, it begins with {magic!r}")


def extract(archive: Path, target: Path) -> None:
    """Unpack *archive* into the folder *target*, which may exist already.

    Absolute names, names that lead out of the folder, links, devices and bombs are refused
    before anything is written; a damaged archive raises PreparationError with its name.
    """
    archive, target = Path(archive), Path(target)
    what = kind(archive)
    if what == "zip":
        unzip(archive, target)
    elif what == "7z":
        extract_7z(archive, target)
    else:
        _extract_tar(archive, target)


def read_member(archive: Path, name: str) -> bytes:
    """Return the content of one member."""
    archive = Path(archive)
    what = kind(archive)
    if what == "7z":
        return read_from_7z(archive, name)
    if what == "zip":
        with damage(archive), zipfile.ZipFile(archive) as opened:
            return opened.read(name) if name in opened.NameToInfo else missing_member(archive, name)
    with _tape(archive) as tape:
        found = None
        for info in tape:
            file = tape.extractfile(info) if info.isreg() and info.name == name else None
            found = file.read() if file is not None else found
    return missing_member(archive, name) if found is None else found


def read_single(archive: Path) -> bytes:
    """Return the content of the only file in a zip or 7z."""
    archive = Path(archive)
    if kind(archive) == "zip":
        with damage(archive), zipfile.ZipFile(archive) as opened:
            names = [info.filename for info in opened.infolist() if not info.is_dir()]
    else:
        names = names_in_7z(archive)
    if len(names) != 1:
        raise PreparationError(f"{archive}: has {len(names)} files, expected a single one")
    return read_member(archive, names[0])


def list_tar(archive: Path) -> list[str]:
    """Return the names of the files in a tar, compressed or not."""
    with _tape(Path(archive)) as tape:
        return [info.name for info in tape if info.isreg()]


def write_zip(target: Path, files: Members, *, prefix: str = "", compress: bool = True) -> None:
    """Write a zip of a folder, or of files and members of other zips by their new names.

    *prefix* goes before every name (``"train/"``); ``compress=False`` stores pictures and sound as
    they are, which is faster and no larger. Members of other zips stay as they are there.
    """
    with (
        atomic_file(Path(target)) as temporary,
        temporary.open("wb", buffering=BUFFER_BYTES) as file,
        packed_reader() as reader,
    ):
        writer = ZipWriter(file)
        read = partial(_read_some, compress=compress)
        for name, source, small in chain.from_iterable(in_threads(read, _some_each(files))):
            if isinstance(source, ZipMember):
                writer.copy(prefix + name, source, reader.read(source))
            elif small is not None:
                writer.add_small(prefix + name, small)
            else:
                size = source.stat().st_size
                writer.add(prefix + name, file_blocks(source), size, compress=compress)
        writer.close()


def repack_tar(archive: Path, parts: Mapping[Path, Mapping[str, str]]) -> None:
    """Copy members into new uncompressed tars, by old and new member name, in a single pass."""
    archive = Path(archive)
    kind(archive)
    wanted = {old: (part, new) for part, names in parts.items() for old, new in names.items()}
    with ExitStack() as stack:
        sinks = {part: stack.enter_context(_new_tar(part)) for part in parts}
        for info in (tape := stack.enter_context(_tape(archive))):
            if not info.isreg() or info.name not in wanted:
                continue
            part, member = wanted.pop(info.name)
            copy = tarfile.TarInfo(member)  # of our own: no times, no owner
            copy.size = info.size
            sinks[part].addfile(copy, tape.extractfile(info))
        for name in wanted:
            missing_member(archive, name)


def write_zip_of(target: Path, name: str, blocks: Iterable[bytes], *, max_bytes: int) -> None:
    """Write a zip with a single file, which comes in blocks, of *max_bytes* at most."""
    with atomic_file(Path(target)) as temporary, temporary.open("wb", BUFFER_BYTES) as file:
        writer = ZipWriter(file)
        writer.add(name, in_blocks(blocks), max_bytes, compress=True)
        writer.close()


def write_7z(
    target: Path,
    files: Path | Mapping[str, Path] | Mapping[str, Iterable[bytes]],
    *,
    prefix: str = "",
    compress: bool = True,
) -> None:
    """Write a 7z of a folder, or of files or blocks of bytes by member name.

    With ``compress=False`` they are only stored.
    """
    named = {prefix + name: source for name, source in sorted(_by_name(files).items())}
    with atomic_file(Path(target)) as temporary, temporary.open("wb", BUFFER_BYTES) as file:
        write_files(file, named, compress=compress)


def _some_each(files: Members) -> Iterator[list[tuple[str, Path | ZipMember]]]:
    """Yield files by their names in a zip, sorted, some at a time."""
    rest = iter(sorted(_by_name(files).items()))
    while some := list(islice(rest, FILES_AHEAD)):
        yield some


def _read_some(
    some: list[tuple[str, Path | ZipMember]], *, compress: bool
) -> list[tuple[str, Path | ZipMember, SmallFile | None]]:
    """Return files with what is to be written of them, if they are small."""
    return [
        (name, source, read_small(source, compress=compress) if isinstance(source, Path) else None)
        for name, source in some
    ]


def _by_name(files: Path | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(files, Mapping):
        return {**files}
    folder = Path(files)
    if not folder.is_dir():
        raise PreparationError(f"{folder}: no such folder to pack")
    return {path[len(str(folder)) + 1 :]: Path(path) for path in _below(str(folder))}


def _below(folder: str) -> Iterator[str]:
    """Yield the files in a folder and those below it, by what the folders say of them."""
    folders = [folder]
    for each in folders:
        with os.scandir(each) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    yield entry.path


def _extract_tar(archive: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    total = 0
    with _tape(archive) as tape:
        # One pass: a compressed tape has no index, so each member is judged when it comes.
        for number, info in enumerate(tape, start=1):
            if number > MAX_ENTRIES:
                raise PreparationError(f"{archive}: refused, more than {MAX_ENTRIES} members")
            entry = ArchiveEntry(info.name, info.size, _tar_mode(info))
            check_entries(archive, [entry], target)
            total += info.size
            check_total(archive, total)
            place = target / info.name
            if entry.is_folder:
                place.mkdir(parents=True, exist_ok=True)
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            file = tape.extractfile(info)
            if file is not None:
                _copy(file, place)


@contextmanager
def _tape(archive: Path) -> Iterator[tarfile.TarFile]:
    """Open a tar, compressed or not, and read it to its very end, where its checksum is."""
    with damage(archive), archive.open("rb") as file:
        magic = file.read(6)
        file.seek(0)
        stream: Any = file
        for start, opener in _COMPRESSED.items():
            if magic.startswith(start):
                stream = opener(file)
        with tarfile.open(fileobj=stream, mode="r|") as tape:
            yield tape
        while rest := stream.read(CHUNK_BYTES):
            if rest.strip(b"\0"):
                raise tarfile.ReadError("a member's header cannot be read")


@contextmanager
def _new_tar(target: Path) -> Iterator[tarfile.TarFile]:
    with atomic_file(target) as temporary, tarfile.open(temporary, "w") as tape:
        yield tape


def _tar_mode(info: tarfile.TarInfo) -> int:
    if info.isdir():
        return stat.S_IFDIR
    return stat.S_IFREG if info.isreg() else stat.S_IFLNK


def _copy(source: IO[bytes], place: Path) -> None:
    out = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o644)
    with os.fdopen(out, "wb") as sink:
        shutil.copyfileobj(source, sink, CHUNK_BYTES)


def _is_tar(archive: Path) -> bool:
    try:
        return tarfile.is_tarfile(archive)
    except (EOFError, OSError, zlib.error, lzma.LZMAError):
        return archive.name.endswith((".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz"))
