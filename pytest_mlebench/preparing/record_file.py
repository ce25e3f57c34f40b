"""A JSON list of large records, of which only one or a few are in memory at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.host.crew import Crew
from pytest_mlebench.preparing import json_text
from pytest_mlebench.preparing.files import require
from pytest_mlebench.preparing.tables import reading

LOT_BYTES = 4 << 20  # of the records that are written in one go
_SPACE = b" \t\n\r"

Span = tuple[int, int]


@dataclass(frozen=True)
class RecordFile:
    """The records of a file: where each is, and what of them is known."""

    crew: Crew
    path: Path
    spans: list[Span]
    known: dict[str, list[Any]]  # the values under some keys

    def __len__(self) -> int:
        return len(self.spans)

    def text(self, rows: Sequence[int], keys: Sequence[str] | None = None) -> Iterator[bytes]:
        """Yield some records as ``json.dumps`` writes the list of them, with all or some keys."""
        lots = _lots([self.spans[row] for row in rows])
        yield b"["
        parts = self.crew.map(partial(records_text, self.path, lot, keys) for lot in lots)
        for number, part in enumerate(parts):
            yield b", " + part if number else part
        yield b"]"


@contextmanager
def open_records(path: Path, *, needs: Iterable[str], keep: Iterable[str]) -> Iterator[RecordFile]:
    """Open a list of objects that have the keys in *needs*; the values of *keep* are remembered."""
    needed, kept = list(needs), list(keep)
    known: dict[str, list[Any]] = {key: [] for key in kept}
    spans = []
    with reading(require(path)):
        for number, (span, record) in enumerate(_records(path.read_bytes(), path)):
            for key in needed:
                if not isinstance(record, dict) or key not in record:
                    raise PreparationError(f"{path}: entry {number} has no {key!r}")
            for key in kept:
                known[key].append(record[key])
            spans.append(span)
    with Crew() as crew:
        yield RecordFile(crew, path, spans, known)


def records_text(path: Path, spans: list[Span], keys: Sequence[str] | None) -> bytes:
    """Return records as ``json.dumps`` writes them, with a comma between two."""
    with path.open("rb") as file:
        texts = []
        for start, end in spans:
            file.seek(start)
            texts.append(file.read(end - start))
    records = json_text.loads(b"[" + b",".join(texts) + b"]")
    if keys is not None:
        records = [{key: record[key] for key in keys} for record in records]
    return json_text.dumps(records)[1:-1]


def _records(content: bytes, path: Path) -> Iterator[tuple[Span, Any]]:
    """Yield each record of a list with its place."""
    place = _after_space(content, 0)
    if content[place : place + 1] != b"[":
        json_text.loads(content)  # or an error that says what is wrong
        raise PreparationError(f"{path} is not a list of records")
    place = _after_space(content, place + 1)
    while content[place : place + 1] != b"]":
        record, end = _record(content, place)
        yield (place, end), record
        place = _after_space(content, end)
        if content[place : place + 1] == b",":
            place = _after_space(content, place + 1)
        elif content[place : place + 1] != b"]":
            raise ValueError(f"a comma or the end of the list is missing at byte {place}")


def _record(content: bytes, start: int) -> tuple[Any, int]:
    """Return the record that begins at *start*, and where it ends: after one of its braces."""
    end = start
    while end := content.find(b"}", end) + 1:
        try:
            return json_text.loads(content[start:end]), end
        except ValueError:
            continue  # a brace within it
    raise ValueError(f"the record at byte {start} does not end")


def _after_space(content: bytes, place: int) -> int:
    while content[place : place + 1] and content[place] in _SPACE:
        place += 1
    return place


def _lots(spans: list[Span]) -> Iterator[list[Span]]:
    lot: list[Span] = []
    size = 0
    for start, end in spans:
        lot.append((start, end))
        size += end - start
        if size >= LOT_BYTES:
            yield lot
            lot, size = [], 0
    if lot:
        yield lot
