"""Receive one uploaded file over HTTP: streamed to disk, bounded in size, whatever is sent."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import h11
from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header

from pytest_mlebench._units import show_size
from pytest_mlebench.sandbox.http_server import HttpConnection, HttpRefusal

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

FIELD = b"file"  # the form field that `curl -F file=@submission.csv` fills

_ENVELOPE_BYTES = 1 << 20  # what a form may add around its file


async def receive(
    connection: HttpConnection, request: h11.Request, target: Path, *, max_bytes: int
) -> int:
    """Write the uploaded file to *target* and return its size; raise Refusal otherwise."""
    headers = dict(request.headers)
    _check_announcement(headers, max_bytes + _ENVELOPE_BYTES)
    kind, options = parse_options_header(headers.get(b"content-type"))
    with target.open("wb") as file:
        sink = _Sink(file, max_bytes)
        form = None
        try:
            if kind == b"multipart/form-data":
                form = _Form(sink, options.get(b"boundary", b""))
            connection.invite_body()
            while chunk := await connection.read_body():
                (form or sink).write(chunk)
        except FormParserError as problem:
            sentence = f"the form cannot be read: {str(problem).lower()}"
            raise HttpRefusal(HTTPStatus.BAD_REQUEST, sentence) from None
    if form is not None and not form.has_file:
        raise HttpRefusal(
            HTTPStatus.BAD_REQUEST,
            "the form has no complete field 'file': send it as curl -F file=@submission.csv does",
        )
    return sink.size


class _Sink:
    """A file that takes so many bytes and no more."""

    def __init__(self, file: BinaryIO, max_bytes: int) -> None:
        self.size = 0
        self.max_bytes = max_bytes
        self._file = file

    def write(self, data: bytes) -> None:
        """Append *data*, or refuse a file that has become too large."""
        self.size += len(data)
        if self.size > self.max_bytes:
            raise _too_large(self.max_bytes)
        self._file.write(data)


class _Form:
    """The parts of a form as they stream by; only the first one named FIELD is kept."""

    def __init__(self, sink: _Sink, boundary: bytes) -> None:
        self._sink = sink
        self._left = sink.max_bytes + _ENVELOPE_BYTES
        self._found = self._complete = self._wanted = False
        self._header = self._value = b""
        callbacks: MultipartCallbacks = {
            "on_header_begin": self._begin_header,
            "on_header_field": self._add_to_header,
            "on_header_value": self._add_to_value,
            "on_header_end": self._end_header,
            "on_part_data": self._part_data,
            "on_part_end": self._end_part,
            "on_end": self._end,
        }
        self._parser = MultipartParser(boundary, callbacks)

    @property
    def has_file(self) -> bool:
        """Tell whether the form came to its end and the file was in it."""
        return self._found and self._complete

    def write(self, data: bytes) -> None:
        """Take the next piece, or refuse a form that has become too large."""
        self._left -= len(data)
        if self._left < 0:
            raise _too_large(self._sink.max_bytes)
        self._parser.write(data)

    def _begin_header(self) -> None:
        self._header = self._value = b""

    def _add_to_header(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _add_to_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _end_header(self) -> None:
        if self._header.lower() == b"content-disposition":
            name = parse_options_header(self._value)[1].get(b"name")
            self._wanted = name == FIELD and not self._found

    def _part_data(self, data: bytes, start: int, end: int) -> None:
        if self._wanted:
            self._sink.write(data[start:end])

    def _end_part(self) -> None:
        self._found = self._found or self._wanted
        self._wanted = False

    def _end(self) -> None:
        self._complete = True


def _check_announcement(headers: dict[bytes, bytes], max_bytes: int) -> None:
    """Turn down what is announced as too large before it is sent."""
    if b"transfer-encoding" in headers:
        return
    if b"content-length" not in headers:
        raise HttpRefusal(HTTPStatus.LENGTH_REQUIRED, "the request has no Content-Length")
    if int(headers[b"content-length"]) > max_bytes:
        raise _too_large(max_bytes - _ENVELOPE_BYTES)


def _too_large(max_bytes: int) -> HttpRefusal:
    return HttpRefusal(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"the file is larger than a submission may be: {show_size(max_bytes)}",
    )
