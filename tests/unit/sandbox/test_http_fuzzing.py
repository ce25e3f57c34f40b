"""Whatever bytes an agent sends, in whatever pieces: an answer or none, and never a surprise."""

from __future__ import annotations

import http.client
import io
import json
import logging
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from http_conversation import Client, Host, read_strictly
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_mlebench.errors import InvalidSubmission
from pytest_mlebench.sandbox.egress import Egress
from pytest_mlebench.sandbox.http_server import HttpServer
from pytest_mlebench.sandbox.validator import Validator

UPLOAD = b"POST /validate HTTP/1.1\r\nHost: x\r\n"
FORM = b"Content-Type: multipart/form-data; boundary=b\r\n"
BOUNDARY = b"--b\r\n"
DISPOSITION = b'Content-Disposition: form-data; name="file"; filename="s.csv"\r\n'

# Pieces of requests, of which a request or something like one is put together.
FRAGMENTS = [
    b"GET ",
    b"POST ",
    b"CONNECT ",
    b"/health",
    b"/validate",
    b"http://HERE/",
    b"HERE",
    b" HTTP/1.1\r\n",
    b" HTTP/1.0\r\n",
    b"\r\n",
    b"\r\n\r\n",
    b"\n",
    b" ",
    b"Host: x\r\n",
    b"Connection: close, content-length\r\n",
    b"Expect: 100-continue\r\n",
    b"Content-Length: 3\r\n",
    b"Content-Length: 40\r\n",
    b"Content-Length: 3\r\n folded\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: identity\r\n",
    FORM,
    b"Content-Type: multipart/form-data; boundary*=utf-8''%ff\r\n",
    BOUNDARY,
    b"--b--\r\n",
    DISPOSITION,
    b"3\r\nabc\r\n",
    b"3;x=y\r\nabc\r\n",
    b"0\r\n\r\n",
    b"0\r\nHost: y\r\n\r\n",
    b"abc",
]

fuzzed = settings(deadline=None, max_examples=100)


class Errors(logging.Handler):
    """Keep what the servers could not cope with."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(self.format(record))


class Fuzzed:
    """A server under fire."""

    def __init__(self, server: HttpServer, errors: Errors, here: bytes = b"127.0.0.1:1") -> None:
        self._client = Client(server)
        self._errors = errors
        self._here = here

    def send(self, pieces: list[bytes]) -> tuple[int, bytes]:
        """Return status and content of the answer, or (0, b"") if there is none."""
        self._errors.seen.clear()
        answer = self._client.send([piece.replace(b"HERE", self._here) for piece in pieces])
        assert self._errors.seen == []
        if not answer:
            return 0, b""
        return _parse(answer.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n"))


@pytest.fixture(scope="module")
def errors() -> Iterator[Errors]:
    handler = Errors()
    for name in ("pytest_mlebench", "asyncio"):
        logging.getLogger(name).addHandler(handler)
    yield handler
    for name in ("pytest_mlebench", "asyncio"):
        logging.getLogger(name).removeHandler(handler)


class Checked:
    """The format check, and the file that it has just seen."""

    def __init__(self) -> None:
        self.content: bytes | None = None

    def check(self, path: Path) -> None:
        self.content = path.read_bytes()
        if b"label" not in self.content:
            raise InvalidSubmission("no label")


checked = Checked()


@pytest.fixture(scope="module")
def validator(tmp_path_factory: pytest.TempPathFactory, errors: Errors) -> Iterator[Fuzzed]:
    folder = tmp_path_factory.mktemp("validator")
    with Validator(checked.check, folder=folder, max_bytes=1000) as server:
        yield Fuzzed(server, errors)


class Proxied(Fuzzed):
    """A proxy under fire, and a host behind it."""

    def __init__(self, server: HttpServer, errors: Errors, host: Host) -> None:
        super().__init__(server, errors, f"127.0.0.1:{host.port}".encode())
        host.start(server)
        self.host = host


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory, errors: Errors) -> Iterator[Proxied]:
    host = Host()
    folder = tmp_path_factory.mktemp("egress")
    with Egress(f"allow:127.0.0.1:{host.port}", folder) as server:
        yield Proxied(server, errors, host)


def in_pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    """Cut *data* at places that are counted from its beginning, over and over."""
    places = sorted({cut % (len(data) + 1) for cut in cuts} | {0, len(data)})
    return [data[start:end] for start, end in pairwise(places)]


cuts = st.lists(st.integers(0, 10_000), max_size=30)
noise = st.lists(st.sampled_from(FRAGMENTS) | st.binary(max_size=20), max_size=30)


@st.composite
def bodies(draw: st.DrawFn, content: bytes) -> bytes:
    """Return the end of a request: how long the body is, and the body."""
    if draw(st.booleans()):
        return b"Content-Length: %d\r\n\r\n%s" % (len(content), content)
    end = b"0\r\n" + draw(st.sampled_from([b"", b"X-Sum: 1\r\n"])) + b"\r\n"
    extension = draw(st.sampled_from([b"", b";a=b", b" "]))
    chunks = [chunk for chunk in in_pieces(content, draw(cuts)) if chunk]
    body = b"".join(b"%x%s\r\n%s\r\n" % (len(chunk), extension, chunk) for chunk in chunks)
    return b"Transfer-Encoding: chunked\r\n\r\n" + body + end


@st.composite
def nearly_requests(draw: st.DrawFn) -> bytes:
    """Return a request whose head is of the right form and says anything."""
    lines = [
        UPLOAD,
        UPLOAD + FORM,
        b"POST http://HERE/ HTTP/1.1\r\nHost: x\r\n",
        b"POST http://HERE/ HTTP/1.0\r\n",
        b"CONNECT HERE HTTP/1.0\r\n",
    ]
    headers = st.lists(st.sampled_from([text for text in FRAGMENTS if b": " in text]), max_size=4)
    head = draw(st.sampled_from(lines)) + b"".join(draw(headers))
    content = draw(st.sampled_from([b"", BOUNDARY, BOUNDARY + DISPOSITION]))
    content += b"".join(draw(noise))
    return head + draw(st.just(b"\r\n" + content) | bodies(content))


@fuzzed
@given(data=noise.map(b"".join) | nearly_requests(), cuts=cuts)
def test_the_format_check_answers_anything(validator: Fuzzed, data: bytes, cuts: list[int]) -> None:
    status, content = validator.send(in_pieces(data, cuts))
    assert status in (0, 200, 400, 404, 411, 413, 431, 501, 505)
    assert not status or json.loads(content).keys() & {"status", "result", "error"}
    assert validator.send([b"GET /health HTTP/1.0\r\n\r\n"])[0] == 200


@fuzzed
@given(data=noise.map(b"".join) | nearly_requests(), cuts=cuts)
def test_a_host_gets_one_clear_request_or_none(
    proxy: Proxied, data: bytes, cuts: list[int]
) -> None:
    proxy.send(in_pieces(data, cuts))
    received = proxy.host.take()
    assert len(received) <= 1
    if received and not data.startswith(b"CONNECT"):
        headers = read_strictly(received[0])[1]
        assert headers[b"host"] == f"127.0.0.1:{proxy.host.port}".encode()


@fuzzed
@given(data=st.data(), content=st.binary(max_size=800), is_form=st.booleans(), cuts=cuts)
def test_an_upload_is_the_same_in_any_pieces(
    validator: Fuzzed, data: Any, content: bytes, is_form: bool, cuts: list[int]
) -> None:
    body = content
    head = UPLOAD
    if is_form:
        content = content.replace(b"--b", b"")
        body = BOUNDARY + DISPOSITION + b"\r\n" + content + b"\r\n--b--\r\n"
        head += FORM
    request = head + data.draw(bodies(body))
    checked.content = None
    status, answer = validator.send(in_pieces(request, cuts))
    assert (status, checked.content) == (200, content)
    valid = "Submission is valid." if b"label" in content else "Submission invalid! no label"
    assert json.loads(answer) == {"result": valid}


@fuzzed
@given(data=st.data(), content=st.binary(max_size=2000), cuts=cuts)
def test_a_request_is_passed_on_the_same_in_any_pieces(
    proxy: Proxied, data: Any, content: bytes, cuts: list[int]
) -> None:
    head = b"POST http://HERE/a?b HTTP/1.1\r\nHost: x\r\nX-Key: k\r\n"
    request = head + data.draw(bodies(content))
    request = request.replace(b"HERE", f"127.0.0.1:{proxy.host.port}".encode())
    assert proxy.send(in_pieces(request, cuts)) == (200, b"thanks\n")
    (received,) = proxy.host.take()
    line, headers, body = read_strictly(received)
    assert (line, headers[b"x-key"], body) == (b"POST /a?b HTTP/1.1", b"k", content)


@fuzzed
@given(sent=st.binary(max_size=2000), cuts=cuts)
def test_a_tunnel_carries_the_same_in_any_pieces(
    proxy: Proxied, sent: bytes, cuts: list[int]
) -> None:
    head = f"CONNECT 127.0.0.1:{proxy.host.port} HTTP/1.0\r\n\r\n".encode()
    status, _ = proxy.send(in_pieces(head + sent, cuts))
    assert (status, proxy.host.take()) == (200, [sent])


def _parse(answer: bytes) -> tuple[int, bytes]:
    """Read an answer as Python's own client does."""
    response = http.client.HTTPResponse(_Answer(answer))  # type: ignore[arg-type]  # as a socket
    response.begin()
    return response.status, response.read()


class _Answer:
    def __init__(self, answer: bytes) -> None:
        self._answer = answer

    def makefile(self, *_: object) -> io.BytesIO:
        return io.BytesIO(self._answer)
