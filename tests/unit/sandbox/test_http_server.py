"""A server for agents is bounded in time and in number, and answers one request a connection."""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Iterator
from http import HTTPStatus

import pytest
from http_conversation import Client
from sandbox_job import wait_until

from pytest_mlebench.sandbox.http_server import HttpConnection, HttpRefusal, HttpServer


class Echo(HttpServer):
    """Answer with what was sent."""

    async def answer(self, connection: HttpConnection) -> None:
        request = await connection.request()
        if request.target == b"/broken":
            raise ZeroDivisionError
        content = b""
        try:
            while piece := await connection.read_body():
                content += piece
            await connection.respond(HTTPStatus.OK, "text/plain", content)
        except HttpRefusal as refusal:
            await connection.respond(refusal.status, "text/plain", str(refusal).encode())


@pytest.fixture
def echo() -> Iterator[Echo]:
    with Echo() as server:
        yield server


def connect(server: HttpServer) -> socket.socket:
    listener = socket.create_server(("127.0.0.1", 0))
    server.serve(listener)
    return socket.create_connection(listener.getsockname(), timeout=20)


def test_one_request_is_answered(echo: Echo) -> None:
    request = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
    answer = Client(echo).send([request + request])
    assert answer == (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n"
        b"Connection: close\r\n\r\nabc"
    )


def test_the_answer_to_head_has_no_body(echo: Echo) -> None:
    request = b"HEAD / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
    answer = Client(echo).send([request])
    assert b"Content-Length: 3\r\n" in answer
    assert answer.endswith(b"\r\n\r\n")


def test_an_upload_that_comes_to_a_standstill_is_refused(echo: Echo) -> None:
    echo.silence_seconds = 0.1
    with connect(echo) as connection:
        connection.sendall(b"POST / HTTP/1.0\r\nContent-Length: 3\r\n\r\nab")
        assert connection.recv(100).startswith(b"HTTP/1.1 408 ")


def test_a_client_that_says_nothing_is_cut_off(echo: Echo) -> None:
    echo.silence_seconds = 0.1
    with connect(echo) as connection:
        assert connection.recv(100) == b""


def test_a_head_must_come_to_an_end_however_slowly_it_comes(
    echo: Echo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_mlebench.sandbox.http_server._HEAD_SECONDS", 0.1)
    with connect(echo) as connection:
        connection.sendall(b"GET /")
        assert connection.recv(100) == b""


def test_an_answer_is_not_lost_on_a_client_that_sends_on(echo: Echo) -> None:
    with connect(echo) as connection:
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n" + b"x" * 5_000_000)
        assert connection.recv(15) == b"HTTP/1.1 200 OK"


def test_too_many_connections_are_turned_away_until_there_is_room(echo: Echo) -> None:
    echo.max_connections = 1
    client = Client(echo)
    with connect(echo) as first:
        first.sendall(b"POST / HTTP/1.0\r\nContent-Length: 3\r\n\r\n")
        assert wait_until(lambda: not client.send([b"GET / HTTP/1.0\r\n\r\n"]))
        first.sendall(b"abc")
        assert first.recv(15) == b"HTTP/1.1 200 OK"
    assert wait_until(lambda: client.send([b"GET / HTTP/1.0\r\n\r\n"]))


def test_a_fault_of_our_own_is_logged_and_harms_no_other_connection(
    echo: Echo, caplog: pytest.LogCaptureFixture
) -> None:
    client = Client(echo)
    with caplog.at_level(logging.ERROR):
        assert client.send([b"GET /broken HTTP/1.0\r\n\r\n"]) == b""
    assert "a connection of an agent could not be served" in caplog.text
    assert client.send([b"GET / HTTP/1.0\r\n\r\n"])


def test_open_connections_do_not_hold_up_the_end() -> None:
    with Echo() as echo:
        connection = connect(echo)
        connection.sendall(b"POST / HTTP/1.0\r\nContent-Length: 3\r\n\r\n")
    with connection, contextlib.suppress(ConnectionResetError):
        assert connection.recv(100) == b""
