"""Both ends of a conversation with an HTTP server of ours, byte for byte."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
from collections.abc import Iterable

import h11

from pytest_mlebench.sandbox.http_server import HttpServer

_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+): ([^\x00\r\n]*)")


class Client:
    """Send bytes to a server in any pieces; a server that hangs is a TimeoutError."""

    def __init__(self, server: HttpServer) -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        self._server = server
        self._address = listener.getsockname()
        server.serve(listener)

    def send(self, pieces: Iterable[bytes]) -> bytes:
        """Send piece by piece, then no more, and return all that is answered."""
        return self._server.call(self._converse(pieces))

    async def _converse(self, pieces: Iterable[bytes]) -> bytes:
        loop = asyncio.get_running_loop()
        with socket.socket() as connection:
            connection.setblocking(False)
            await loop.sock_connect(connection, self._address)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            answer = b""
            with contextlib.suppress(OSError):  # whoever is refused need not be heard out
                for piece in pieces:
                    await loop.sock_sendall(connection, piece)
                    for _ in range(3):  # the server, in the same loop, reads piece by piece
                        await asyncio.sleep(0)
                connection.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionError):
                while data := await loop.sock_recv(connection, 1 << 16):
                    answer += data
        return answer


class Host:
    """A server that keeps every byte which it is sent; it lives in the loop of the proxy."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._received: list[bytes] = []
        self._open: set[asyncio.Task[None]] = set()

    def start(self, server: HttpServer) -> None:
        """Listen in the loop of *server*."""
        self._server = server
        self._listening = server.call(asyncio.start_server(self._meet, sock=self._listener))

    def take(self) -> list[bytes]:
        """Return what has come over each connection, and forget it."""
        self._server.call(self._rest())
        taken, self._received = self._received, []
        return taken

    async def _rest(self) -> None:
        await asyncio.gather(*self._open)

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        received = b""
        protocol = h11.Connection(h11.SERVER, 1 << 20)
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                received += data
                if protocol.their_state in (h11.IDLE, h11.SEND_BODY) and _is_whole(protocol, data):
                    writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nthanks\n")
                    writer.write_eof()
        self._received.append(received)
        writer.close()
        self._open.discard(task)


def _is_whole(protocol: h11.Connection, data: bytes) -> bool:
    protocol.receive_data(data)
    with contextlib.suppress(h11.RemoteProtocolError):  # a tunnel carries anything
        while isinstance(protocol.next_event(), h11.Request | h11.Data):
            pass
    return protocol.their_state not in (h11.IDLE, h11.SEND_BODY, h11.ERROR)


def read_strictly(request: bytes) -> tuple[bytes, dict[bytes, bytes], bytes]:
    """Return line, headers and body of a request that every server reads in the same way."""
    head, end, body = request.partition(b"\r\n\r\n")
    assert end
    line, *lines = head.split(b"\r\n")
    assert re.fullmatch(rb"[!-~]+ /[!-~]* HTTP/1\.1", line), line
    matches = [_HEADER.fullmatch(text) for text in lines]
    pairs = [(match[1].lower(), match[2]) for match in matches if match]
    assert len(pairs) == len(lines), lines
    headers = dict(pairs)
    for name in (b"host", b"connection", b"content-length", b"transfer-encoding"):
        assert [key for key, _ in pairs].count(name) <= 1, lines
    assert headers[b"connection"] == b"close"
    assert not {b"content-length", b"transfer-encoding"} <= headers.keys()
    if b"transfer-encoding" in headers:
        assert headers[b"transfer-encoding"] == b"chunked"
        body = _chunks(body)
    else:
        assert len(body) <= int(headers.get(b"content-length", b"0")), "a second request"
    return line, headers, body


def _chunks(data: bytes) -> bytes:
    """Join the chunks of a body, which may end too early, but has nothing behind its end."""
    body = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        assert re.fullmatch(rb"[0-9a-f]+", size), size
        if size == b"0":
            assert data == b"\r\n", "trailers or a second request"
            break
        body += data[: int(size, 16)]
        data = data[int(size, 16) :].removeprefix(b"\r\n")
    return body
