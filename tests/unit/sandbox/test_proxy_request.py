"""What a proxy passes on can be read in one way only; what can be read in two it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from http_conversation import Client, Host, read_strictly

from pytest_mlebench.sandbox.egress import Egress

HOST = b"Host: a\r\n"
SECOND = b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n"


class Wire:
    """An agent, the proxy, and a host that the agent may reach."""

    def __init__(self, egress: Egress, host: Host) -> None:
        host.start(egress)
        self.host = host
        self.agent = Client(egress)
        self.here = f"127.0.0.1:{host.port}".encode()

    def pass_on(self, request: bytes) -> bytes:
        """Return what becomes of a request to http://HERE/, in which HERE is the host."""
        answer = self.agent.send([request.replace(b"HERE", self.here)])
        assert answer.endswith(b"\r\n\r\nthanks\n"), answer
        (received,) = self.host.take()
        return received.replace(self.here, b"HERE")


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[Wire]:
    host = Host()
    with Egress(f"allow:127.0.0.1:{host.port}", tmp_path) as egress:
        yield Wire(egress, host)


@pytest.mark.parametrize(
    ("head", "status", "why"),
    [
        (b"nonsense\r\n\r\n", 400, "the request is not understood: illegal request line"),
        (b"\x16\x03\x01\x02", 400, "the request is not understood: illegal request line"),
        (b"GET http://a/ HTTP/1.1\r\n", 400, "peer unexpectedly closed connection"),
        (b"GET http://a/ HTTP/1.1\r\n\r\n", 400, "missing mandatory Host: header"),
        (b"GET http://a/ HTTP/1.1\r\n" + HOST * 2 + b"\r\n", 400, "found multiple Host: headers"),
        (b"GET http://a/ HTTP/2.0\r\n\r\n", 505, "use HTTP/1.1 or HTTP/1.0"),
        (b"CONNECT nowhere HTTP/1.1\r\n" + HOST + b"\r\n", 400, "this is not HOST:PORT"),
        (b"CONNECT a:99999 HTTP/1.1\r\n" + HOST + b"\r\n", 400, "this is not HOST:PORT"),
        (
            b"CONNECT a:443 HTTP/1.1\r\nContent-Length: 3\r\n" + HOST + b"\r\n",
            400,
            "a request for a tunnel has no body",
        ),
        (
            b"GET / HTTP/1.1\r\n" + HOST + b"\r\n",
            400,
            "a proxy wants http://HOST/PATH, or CONNECT HOST:PORT",
        ),
        (b"GET http://a:b@c/ HTTP/1.0\r\n\r\n", 400, "this is not HOST:PORT"),
        (b"GET http://a/" + b"x" * 140_000, 431, "the head of the request is too long"),
        (
            b"GET http://a/ HTTP/1.1\r\n" + HOST + b"X: y\r\n" * 100 + b"\r\n",
            431,
            "too many headers",
        ),
    ],
)
def test_what_is_not_for_a_proxy_is_refused_with_a_reason(
    wire: Wire, head: bytes, status: int, why: str
) -> None:
    answer = wire.agent.send([head])
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    assert answer.endswith(f"{why}\n".encode())
    assert wire.host.take() == []


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (b"Content-Length: 3\r\nTransfer-Encoding: chunked", "length of the body is not clear"),
        (b"Content-Length: 3\r\nContent-Length: 4", "conflicting Content-Length headers"),
        (b"Content-Length: 3, 4", "conflicting Content-Length headers"),
        (b"Content-Length: +3", "bad Content-Length"),
        (b"Content-Length: 0x3", "bad Content-Length"),
        (b"Content-Length: " + b"9" * 5000, "bad Content-Length"),
        (b"Transfer-Encoding: chunked, identity", "only Transfer-Encoding: chunked is supported"),
        (b"Transfer-Encoding: \x0bchunked", "illegal header line"),
        (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "multiple Transfer-Encoding"),
        (b"Content-Length : 3", "illegal header line"),
        (b"no header", "illegal header line"),
        (b"X: a\x00b", "illegal header line"),
        (b"X: a\rb", "illegal header line"),
    ],
)
def test_what_two_servers_would_read_in_two_ways_is_refused(
    wire: Wire, lines: bytes, why: str
) -> None:
    body = b"\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    answer = wire.agent.send(
        [b"POST http://" + wire.here + b"/ HTTP/1.1\r\n" + HOST + lines + body]
    )
    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 501 "))
    assert why.encode() in answer
    assert wire.host.take() == []


def test_a_chunked_body_in_an_old_request_is_refused(wire: Wire) -> None:
    request = b"POST http://a/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    assert b"the length of the body is not clear" in wire.agent.send([request])


def test_a_line_that_is_not_understood_is_not_written_down(wire: Wire, tmp_path: Path) -> None:
    request = b"GET http://a/ HTTP/1.1\r\nAuthorization Bearer sk-secret\r\n\r\n"
    assert b"secret" not in wire.agent.send([request])
    assert "secret" not in (tmp_path / "egress.jsonl").read_text()


def test_a_request_is_passed_on_in_one_form(wire: Wire) -> None:
    request = (
        b"POST HTTP://HERE?q=1 HTTP/1.0\n"
        b"host: evil.example\n"
        b"X-Folded: one\r\n"
        b"\t two\r\n"
        b"Content-Length:3\r\n"
        b"content-length: 3\r\n"
        b"Connection: keep-alive, x-mine\r\n"
        b"Proxy-Connection: keep-alive\r\n"
        b"Proxy-Authorization: Basic secret\r\n"
        b"X-Mine: 1\r\n"
        b"Upgrade: h2c\r\n"
        b"TE: trailers\r\n"
        b"X-Last:  \xe9 \r\n"
        b"\r\nabc" + SECOND
    )
    assert wire.pass_on(request) == (
        b"POST /?q=1 HTTP/1.1\r\n"
        b"Host: HERE\r\n"
        b"X-Folded: one two\r\n"
        b"X-Last: \xe9\r\n"
        b"Content-Length: 3\r\n"
        b"Connection: close\r\n"
        b"\r\nabc"
    )


def test_a_chunked_body_is_chunked_anew_without_extensions_and_trailers(wire: Wire) -> None:
    request = (
        b"PUT http://HERE/x HTTP/1.1\r\nHost: HERE\r\nTransfer-Encoding: Chunked\r\n\r\n"
        b"0003;name=value\r\nabc\r\n0a\r\n0123456789\r\n000\r\nHost: evil.example\r\n\r\n" + SECOND
    )
    received = wire.pass_on(request)
    head = (
        b"PUT /x HTTP/1.1\r\nHost: HERE\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    )
    assert received == head + b"3\r\nabc\r\na\r\n0123456789\r\n0\r\n\r\n"
    assert read_strictly(received)[2] == b"abc0123456789"


def test_headers_that_frame_a_request_cannot_be_nominated_away(wire: Wire) -> None:
    request = (
        b"POST http://HERE/ HTTP/1.1\r\nHost: HERE\r\nContent-Length: 3\r\n"
        b"Connection: content-length, host, connection\r\n\r\nabc"
    )
    line, headers, body = read_strictly(wire.pass_on(request))
    assert (line, body) == (b"POST / HTTP/1.1", b"abc")
    assert headers == {b"host": b"HERE", b"content-length": b"3", b"connection": b"close"}


@pytest.mark.parametrize(
    ("framing", "body"),
    [(b"Content-Length: 99", b"3\r\nabc\r\nzz"), (b"Transfer-Encoding: chunked", b"abc")],
)
def test_half_a_request_does_not_keep_a_host_waiting(
    wire: Wire, framing: bytes, body: bytes
) -> None:
    start = b"POST http://" + wire.here + b"/ HTTP/1.1\r\n" + HOST + framing + b"\r\n\r\n"
    assert wire.agent.send([start + b"3\r\nabc\r\nzz"]) == b""
    (received,) = wire.host.take()
    assert read_strictly(received)[2] == body
