"""Reading a submission, which comes from a hostile place: regular files only, bounded, UTF-8.

Everything that can be wrong with the file itself is said here in one sentence; what is wrong with
its rows and columns is said in ``align``.
"""

from __future__ import annotations

import codecs
import csv
import errno
import io
import os
import stat
import warnings
from collections import Counter
from collections.abc import Container
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pandas as pd

from pytest_mlebench._csv import read_frame
from pytest_mlebench._units import show_size
from pytest_mlebench.archives.archive import read_single
from pytest_mlebench.errors import InvalidSubmission

if TYPE_CHECKING:
    from pytest_mlebench.grading.rules import Rules

HEADER_BYTES = 1 << 20
MAX_COLUMNS = 10_000
CHUNK = 1 << 20
FLOOR_BYTES = 256 * 10**6  # any submission may be this large
FACTOR = 50  # and this many times as large as the file it must look like

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_MAGIC = (
    (b"\x1f\x8b", "a gzip archive"),
    (b"PK\x03\x04", "a zip archive (or a spreadsheet)"),
    (b"PAR1", "a parquet file"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ", "an xz archive"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
)


def read_submission(path: Path, *, like: Path, rules: Rules) -> pd.DataFrame:
    """Return the table in *path*, which must resemble the file *like* in size."""
    bound = max(FLOOR_BYTES, FACTOR * like.stat().st_size)
    with open_regular(path, max_bytes=bound) as file:
        _scan(file, path.name)
        _check_header(file, path.name, rules)
        return _parse(file, path.name, rules)


def read_own(path: Path, rules: Rules, only: Container[str] | None = None) -> pd.DataFrame:
    """Return the table in a file of ours, also one alone in a zip or 7z, by the same rules.

    Columns that are not in *only* are left out, which may be gigabytes of text.
    """
    file = io.BytesIO(read_single(path)) if path.suffix == ".7z" else path
    return _read_csv(file, rules, usecols=only and only.__contains__)


def open_regular(path: Path, *, max_bytes: int) -> IO[bytes]:
    """Open a regular, unlinked, bounded file, or say in one sentence what it is instead."""
    try:
        # O_NONBLOCK: opening a pipe or a device must not hang
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise InvalidSubmission(_why_not_open(path.name, error)) from None
    problem = _why_not_read(os.fstat(handle), path.name, max_bytes)
    if problem is not None:
        os.close(handle)
        raise InvalidSubmission(problem)
    return os.fdopen(handle, "rb")


def _why_not_open(name: str, error: OSError) -> str:
    if error.errno == errno.ELOOP:
        return f"{name} is a symbolic link, expected a regular file"
    if error.errno == errno.ENOENT:
        return f"there is no {name}"
    if error.errno in {errno.EACCES, errno.EPERM}:
        return f"{name} is not readable (permission denied)"
    if error.errno == errno.ENXIO:
        return f"{name} is a socket, expected a regular file"
    return f"{name} cannot be opened ({os.strerror(error.errno or 0).lower()})"


def _why_not_read(status: os.stat_result, name: str, max_bytes: int) -> str | None:
    for test, kind in _KINDS:
        if test(status.st_mode):
            return f"{name} is {kind}, expected a regular file"
    if status.st_nlink > 1:
        return f"{name} is a hard link to another file, expected a file of its own"
    if status.st_size == 0:
        return f"{name} is empty (0 bytes)"
    if status.st_size > max_bytes:
        return f"{name} has {show_size(status.st_size)}, at most {show_size(max_bytes)} are read"
    return None


def _scan(file: IO[bytes], name: str) -> None:
    """Refuse what is not UTF-8 text, in one bounded pass."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    position = 0
    while chunk := file.read(CHUNK):
        if position == 0:
            _refuse_magic(chunk, name)
        if (zero := chunk.find(b"\0")) >= 0:
            raise InvalidSubmission(f"{name} has a NUL byte at byte {position + zero}")
        try:
            if not chunk.isascii() or decoder.getstate()[0]:
                decoder.decode(chunk)
        except UnicodeDecodeError as error:
            where = position + error.start
            raise InvalidSubmission(f"{name} is not UTF-8 text (near byte {where})") from None
        position += len(chunk)
    if decoder.getstate()[0]:
        raise InvalidSubmission(f"{name} is not UTF-8 text (it ends within a character)")
    file.seek(0)


def _refuse_magic(start: bytes, name: str) -> None:
    for magic, kind in _MAGIC:
        if start.startswith(magic):
            raise InvalidSubmission(f"{name} is {kind}, expected a plain csv file")


def _check_header(file: IO[bytes], name: str, rules: Rules) -> None:
    """Refuse what is too wide, and two columns of one name."""
    start = file.read(HEADER_BYTES + 1)
    file.seek(0)
    line = start.lstrip(b"\r\n")
    if b"\n" not in line and b"\r" not in line and len(start) > HEADER_BYTES:
        raise InvalidSubmission(
            f"the header line of {name} is longer than {show_size(HEADER_BYTES)}"
        )
    text = start.decode("utf-8-sig", errors="ignore")
    rows = filter(None, csv.reader(io.StringIO(text, newline=None)))  # line ends of any kind
    try:
        header = next(rows, [])
    except csv.Error as error:
        raise InvalidSubmission(f"the header of {name} cannot be read: {error}") from None
    if len(header) > MAX_COLUMNS:
        raise InvalidSubmission(f"{name} has {len(header)} columns, at most {MAX_COLUMNS} are read")
    repeated = [column for column, count in Counter(header).items() if column and count > 1]
    if repeated and rules.same_names == "reject":
        raise InvalidSubmission(f"{name} has two columns called {repeated[0]!r}")
    with suppress(csv.Error):  # a field may be too long for this reader, not for that of pandas
        if len(next(rows, header)) > len(header):  # which would take the first for row names
            raise InvalidSubmission(_too_wide(name))


def _parse(file: IO[bytes], name: str, rules: Rules) -> pd.DataFrame:
    """Return the table; of two columns with one name the first keeps it."""
    try:
        with warnings.catch_warnings():
            # pandas warns, and drops data, where rows are longer than the header
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return _read_csv(file, rules)
    except pd.errors.EmptyDataError:
        raise InvalidSubmission(f"{name} has no header line") from None
    except pd.errors.ParserWarning:
        raise InvalidSubmission(_too_wide(name)) from None
    except pd.errors.ParserError as error:
        raise InvalidSubmission(f"{name} is not a regular csv file: {_reason(error)}") from None
    except (ValueError, OverflowError) as error:
        raise InvalidSubmission(f"{name} cannot be read as csv: {_reason(error)}") from None


def _too_wide(name: str) -> str:
    return f"{name} has rows with more fields than the header"


def _read_csv(file: Path | IO[bytes], rules: Rules, **options: Any) -> pd.DataFrame:
    return read_frame(
        file,
        index_col=False,
        **options,
        dtype=dict.fromkeys(rules.as_written, object) or None,
    )


def _reason(error: Exception) -> str:
    """Return the core of a parser's message: 'expected 2 fields in line 3, saw 3'."""
    text = " ".join(str(error).split())
    text = text.removeprefix("Error tokenizing data. C error: ")
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]
