"""Receive one uploaded file over HTTP: streamed to disk, bounded in size, whatever is sent."""

from __future__ import annotations

from collections.abc import Iterator
from email.message import Message
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header

from pytest_mlebench._units import show_size

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

FIELD = b"file"  # the form field that `curl -F file=@submission.csv` fills
CHUNK = 1 << 16
_ENVELOPE = 1 << 20  # what a form may add around its file
_LINE = 1 << 10  # the longest line that may announce a chunk


class _Source(Protocol):
    """The two ways in which a request's body is read."""

    def read(self, size: int = ..., /) -> bytes: ...
    def readline(self, size: int = ..., /) -> bytes: ...


class BadUpload(Exception):
    """Say with which HTTP status and in which words a request is turned down."""

    def __init__(self, status: HTTPStatus, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def receive(headers: Message, source: _Source, target: Path, *, max_bytes: int) -> int:
    """Write the uploaded file to *target* and return its size; raise BadUpload otherwise."""
    kind, options = parse_options_header(headers.get("Content-Type"))
    with target.open("wb") as file:
        sink = _Sink(file, max_bytes)
        body = _body(headers, source, max_bytes + _ENVELOPE)
        if kind == b"multipart/form-data":
            _receive_form(options.get(b"boundary", b""), body, sink)
        else:
            for chunk in body:
                sink.write(chunk)
    return sink.size


class _Sink:
    """A file that takes so many bytes and no more."""

    def __init__(self, file: BinaryIO, max_bytes: int) -> None:
        self.size = 0
        self._file = file
        self._max_bytes = max_bytes

    def write(self, data: bytes) -> None:
        """Append *data*, or refuse a file that has become too large."""
        self.size += len(data)
        if self.size > self._max_bytes:
            raise _too_large(self._max_bytes)
        self._file.write(data)


class _Form:
    """The parts of a form as they stream by; only the first one named FIELD is kept."""

    def __init__(self, sink: _Sink) -> None:
        self.found = False
        self.complete = False
        self._sink = sink
        self._wanted = False
        self._header = self._value = b""

    def callbacks(self) -> MultipartCallbacks:
        """Return what the parser calls."""
        return {
            "on_header_begin": self._begin_header,
            "on_header_field": self._add_to_header,
            "on_header_value": self._add_to_value,
            "on_header_end": self._end_header,
            "on_part_data": self._part_data,
            "on_part_end": self._end_part,
            "on_end": self._end,
        }

    def _begin_header(self) -> None:
        self._header = self._value = b""

    def _add_to_header(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _add_to_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _end_header(self) -> None:
        if self._header.lower() == b"content-disposition":
            name = parse_options_header(self._value)[1].get(b"name")
            self._wanted = name == FIELD and not self.found

    def _part_data(self, data: bytes, start: int, end: int) -> None:
        if self._wanted:
            self._sink.write(data[start:end])

    def _end_part(self) -> None:
        self.found = self.found or self._wanted
        self._wanted = False

    def _end(self) -> None:
        self.complete = True


def _receive_form(boundary: bytes, body: Iterator[bytes], sink: _Sink) -> None:
    form = _Form(sink)
    try:
        parser = MultipartParser(boundary, form.callbacks())
        for chunk in body:
            parser.write(chunk)
    except FormParserError as problem:
        raise BadUpload(
            HTTPStatus.BAD_REQUEST, f"the form cannot be read: {str(problem).lower()}"
        ) from None
    if not (form.found and form.complete):
        raise BadUpload(
            HTTPStatus.BAD_REQUEST,
            "the form has no complete field 'file': send it as curl -F file=@submission.csv does",
        )


def _body(headers: Message, source: _Source, max_bytes: int) -> Iterator[bytes]:
    if headers.get("Transfer-Encoding", "").strip().lower() == "chunked":
        return _chunked(source, max_bytes)
    announced = headers.get("Content-Length", "").strip()
    if not announced:
        raise BadUpload(HTTPStatus.LENGTH_REQUIRED, "the request has no Content-Length")
    if not (announced.isascii() and announced.isdecimal()):
        raise BadUpload(HTTPStatus.BAD_REQUEST, f"Content-Length is no number: {announced[:40]!r}")
    if int(announced) > max_bytes:
        raise _too_large(max_bytes - _ENVELOPE)
    return _exactly(source, int(announced))


def _exactly(source: _Source, size: int) -> Iterator[bytes]:
    while size:
        chunk = source.read(min(CHUNK, size))
        if not chunk:
            raise BadUpload(HTTPStatus.BAD_REQUEST, "the upload ended before its announced length")
        size -= len(chunk)
        yield chunk


def _chunked(source: _Source, max_bytes: int) -> Iterator[bytes]:
    left = max_bytes
    while size := _chunk_size(source.readline(_LINE)):
        left -= size
        if left < 0:
            raise _too_large(max_bytes - _ENVELOPE)
        yield from _exactly(source, size)
        source.readline(_LINE)
    while source.readline(_LINE).strip():  # trailers say nothing about the file
        left -= _LINE
        if left < 0:
            raise _too_large(max_bytes - _ENVELOPE)


def _chunk_size(line: bytes) -> int:
    digits = line.split(b";")[0].strip()
    if not digits or len(digits) > 16 or digits.strip(b"0123456789abcdefABCDEF"):
        raise BadUpload(HTTPStatus.BAD_REQUEST, "the chunked upload is broken")
    return int(digits, 16)


def _too_large(max_bytes: int) -> BadUpload:
    return BadUpload(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"the file is larger than a submission may be: {show_size(max_bytes)}",
    )
