"""``transcripts.jsonl.gz``: what was asked and answered, if it is to be kept.

Every call is a line of JSON and a gzip member of its own, so that a killed session leaves all but
the last one readable (``zcat``, or ``read_transcripts``). Keys are masked, long texts are cut, and
the file is bounded.
"""

from __future__ import annotations

import gzip
import json
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from pytest_mlebench.sandbox.redact import Mask

FILE = "transcripts.jsonl.gz"
MAX_TEXT_BYTES = 1 << 20  # of a request, and of an answer
MAX_FILE_BYTES = 256 << 20

MAX_LINE_BYTES = 16 * MAX_TEXT_BYTES  # of two texts in JSON, where a letter has up to six bytes

_CHUNK = 1 << 16
_MAX_TIME = 1e11  # in seconds, a long way ahead


@dataclass(frozen=True)
class Transcript:
    """One call with its contents."""

    time: float
    upstream: str
    model: str
    method: str
    path: str
    status: int | None
    request: str
    response: str
    request_bytes: int  # before anything was cut
    response_bytes: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for a line."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Transcript:
        """Return the transcript that ``to_dict`` wrote; anything else is a TypeError."""
        found = cls(**data)
        texts = [found.upstream, found.model, found.method, found.path]
        texts += [found.request, found.response]
        if not all(isinstance(text, str) for text in texts) or not 0 <= found.time < _MAX_TIME:
            raise TypeError("no transcript of ours")
        return found


class KeptText:
    """The beginning of something that passes by, and how long it was."""

    def __init__(self) -> None:
        self.size = 0
        self._kept = bytearray()

    def add(self, data: bytes) -> None:
        """Take a piece."""
        self.size += len(data)
        self._kept += data[: MAX_TEXT_BYTES - len(self._kept)]

    def text(self, secrets: Iterable[str]) -> str:
        """Return what is kept, without secrets, not even one that was cut in two."""
        mask = Mask(secrets)
        text = mask.feed(bytes(self._kept))
        text += mask.finish() if self.size == len(self._kept) else b""
        return text.decode(errors="replace")


class TranscriptLog:
    """A file that grows by a member per call, up to a bound; for any thread."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._lock = threading.Lock()
        self._bytes = 0
        self.dropped = 0

    def write(self, transcript: Transcript) -> None:
        """Add a call, if there is room."""
        line = json.dumps(transcript.to_dict(), ensure_ascii=False) + "\n"
        member = gzip.compress(line.encode(errors="replace"), compresslevel=6)
        with self._lock:
            if self._bytes + len(member) > MAX_FILE_BYTES:
                self.dropped += 1
                return
            self._bytes += len(member)
            with self._path.open("ab") as file:
                file.write(member)


def read_transcripts(folder: Path) -> Iterator[Transcript]:
    """Yield the transcripts of an attempt; one that a killed session left unfinished is none."""
    path = folder / FILE
    if path.is_file() and not path.is_symlink():
        with path.open("rb") as file:
            yield from transcripts_in(file)


def transcripts_in(file: BinaryIO) -> Iterator[Transcript]:
    """Yield the transcripts of an open file, which may be anybody's: whatever is none ends them."""
    try:
        for line in _members(file):
            yield Transcript.from_dict(json.loads(line))
    except (ValueError, TypeError, KeyError, zlib.error, RecursionError):
        return


def _members(file: BinaryIO) -> Iterator[bytes]:
    """Yield the content of each gzip member that is whole and not too large."""
    rest = b""
    while rest or (rest := file.read(_CHUNK)):
        member, content = zlib.decompressobj(wbits=31), bytearray()
        while rest and not member.eof:
            content += member.decompress(rest, MAX_LINE_BYTES)
            if len(content) > MAX_LINE_BYTES:
                raise ValueError("larger than what is written")
            rest = member.unused_data or member.unconsumed_tail or file.read(_CHUNK)
        if member.eof:
            yield bytes(content)
