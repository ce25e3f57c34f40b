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
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO

import pandas as pd

from pytest_mlebench._csv import TooManyRows
from pytest_mlebench._units import show_size
from pytest_mlebench.archives.archive import read_single
from pytest_mlebench.errors import GraderError, InvalidSubmission
from pytest_mlebench.grading.rules import Rules
from pytest_mlebench.grading.table import CsvTable

HEADER_BYTES = 1 << 20
PLAIN_BYTES = 1 << 14  # in which most headers and first rows are
CHUNK_BYTES = 1 << 20
FLOOR_BYTES = 256 * 10**6  # any submission may be this large
FACTOR = 50  # and this many times as large as the file it must look like
SPARE_COLUMNS = 1000  # a submission may have so many that nobody asked for
SPARE_ROWS = 1000

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


def read_submission(path: Path, *, like: Path, rows: int, rules: Rules) -> CsvTable:
    """Return the table in *path*, which must resemble the file *like*, and its *rows*, in size."""
    bound = max(FLOOR_BYTES, FACTOR * like.stat().st_size)
    with open_regular(path, max_bytes=bound) as file:
        data = file.read(bound)
    _scan(data, path.name)
    _check_header(data, path.name, rules)
    blame = partial(_why_not_parsed, path.name, rows)
    # where further rows are ignored there may be many of them, as in a sample of all that is asked
    most = (2 if rules.rows == "exact" else FACTOR) * rows + SPARE_ROWS
    return CsvTable(data, rules, blame, max_rows=most)


def read_own(path: Path, rules: Rules) -> CsvTable:
    """Return the table in a file of ours, also one alone in a zip or 7z, by the same rules."""
    data = read_single(path) if path.suffix in {".7z", ".zip"} else path.read_bytes()
    return CsvTable(data, rules, partial(_why_not_our_own, path))


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


def _scan(data: bytes, name: str) -> None:
    """Refuse what is not UTF-8 text."""
    _refuse_magic(data, name)
    if (zero := data.find(b"\0")) >= 0:
        raise InvalidSubmission(f"{name} has a NUL byte at byte {zero}")
    if data.isascii():
        return
    decoder = codecs.getincrementaldecoder("utf-8")()
    for position in range(0, len(data), CHUNK_BYTES):
        try:
            decoder.decode(data[position : position + CHUNK_BYTES])
        except UnicodeDecodeError as error:
            where = position + error.start
            raise InvalidSubmission(f"{name} is not UTF-8 text (near byte {where})") from None
    if decoder.getstate()[0]:
        raise InvalidSubmission(f"{name} is not UTF-8 text (it ends within a character)")


def _refuse_magic(start: bytes, name: str) -> None:
    for magic, kind in _MAGIC:
        if start.startswith(magic):
            raise InvalidSubmission(f"{name} is {kind}, expected a plain csv file")


def _check_header(data: bytes, name: str, rules: Rules) -> None:
    """Refuse what is too wide, and two columns of one name."""
    start = data[: HEADER_BYTES + 1]
    line = start.lstrip(b"\r\n")
    if b"\n" not in line and b"\r" not in line and len(start) > HEADER_BYTES:
        raise InvalidSubmission(
            f"the header line of {name} is longer than {show_size(HEADER_BYTES)}"
        )
    text = _first_lines(start).decode("utf-8-sig", errors="ignore")
    rows = filter(None, csv.reader(io.StringIO(text, newline=None)))  # line ends of any kind
    try:
        header = next(rows, [])
    except csv.Error as error:
        raise InvalidSubmission(f"the header of {name} cannot be read: {error}") from None
    _check_names(header, name, rules)
    with suppress(csv.Error):  # a field may be too long for this reader, not for that of pandas
        if len(next(rows, header)) > len(header):  # which would take the first for row names
            raise InvalidSubmission(_too_wide(name))


def _first_lines(start: bytes) -> bytes:
    """Return the header and the first row where they are plainly two lines, else all."""
    piece = start[:PLAIN_BYTES]
    header, _, rest = piece.partition(b"\n")
    row, newline, _ = rest.partition(b"\n")
    is_plain = header.strip() and row.strip() and newline and b'"' not in piece
    return header + b"\n" + row if is_plain else start


def _check_names(header: list[str], name: str, rules: Rules) -> None:
    if header and not "".join(header).strip():
        raise InvalidSubmission(
            f"the first line of {name} has nothing but {'commas' if header[1:] else 'spaces'}, "
            f"expected the names of the columns"
        )
    most = len(rules.id) + len(rules.targets) + SPARE_COLUMNS
    if len(header) > most:
        raise InvalidSubmission(f"{name} has {len(header)} columns, at most {most} are read")
    repeated = [column for column, count in Counter(header).items() if column and count > 1]
    if repeated and rules.same_names == "reject":
        raise InvalidSubmission(f"{name} has two columns called {repeated[0]!r}")


def _why_not_parsed(name: str, rows: int, error: Exception) -> Exception:
    """Return a verdict on a submission that the parser refuses."""
    if isinstance(error, pd.errors.EmptyDataError):
        return InvalidSubmission(f"{name} has no header line")
    if isinstance(error, pd.errors.ParserWarning):
        return InvalidSubmission(_too_wide(name))
    if isinstance(error, pd.errors.ParserError):
        return InvalidSubmission(f"{name} is not a regular csv file: {_reason(error)}")
    if isinstance(error, TooManyRows):
        return InvalidSubmission(f"{name} has more than {error} rows, expected {rows}")
    if isinstance(error, ValueError | OverflowError):
        return InvalidSubmission(f"{name} cannot be read as csv: {_reason(error)}")
    return error


def _why_not_our_own(path: Path, error: Exception) -> Exception:
    return GraderError(f"{path} is damaged, prepare the dataset again: {_reason(error)}")


def _too_wide(name: str) -> str:
    return f"{name} has rows with more fields than the header"


def _reason(error: Exception) -> str:
    """Return the core of a parser's message: 'expected 2 fields in line 3, saw 3'."""
    text = " ".join(str(error).split())
    text = text.removeprefix("Error tokenizing data. C error: ")
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]
