"""HTTP for agents: one request per connection, read by h11, bounded in size, time and number.

The format check and the proxy are such servers: each says how to answer. Connections are coroutines
in one thread of the server's own rather than threads: hundreds of them may wait at a time, and all
of them can be cancelled when the attempt ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from http import HTTPStatus
from typing import Any, Self, TypeVar

import h11

CHUNK_BYTES = 1 << 16

_MAX_HEAD_BYTES = 1 << 16  # a head that comes in one piece may have CHUNK_BYTES more
_MAX_HEADERS = 100
_HEAD_SECONDS = 60.0  # for the head of a request to arrive
_LINGER_SECONDS = 0.5  # without a byte, after the answer
_LINGER_READS = 256
_FLUSH_SECONDS = 60.0  # for a client to read the last of an answer
_PAUSE_SECONDS = 1.0  # after a connection that could not be accepted
_CALL_SECONDS = 30.0  # for the server's thread to do as it is asked

_Result = TypeVar("_Result")

logger = logging.getLogger(__name__)


class HttpRefusal(Exception):
    """Say with which HTTP status and in which words a request is turned down."""

    def __init__(self, status: HTTPStatus, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class HttpConnection:
    """A connection on which an agent makes one request."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, silence_seconds: float
    ) -> None:
        self.reader = reader
        self.writer = writer
        self._silence_seconds = silence_seconds
        self._protocol = h11.Connection(h11.SERVER, _MAX_HEAD_BYTES)
        self._answer_has_body = True

    @property
    def unread(self) -> bytes:
        """Return what has arrived behind the request."""
        return self._protocol.trailing_data[0]

    async def request(self) -> h11.Request:
        """Read the head of the request."""
        try:
            async with asyncio.timeout(_HEAD_SECONDS):
                event = await self._next_event()
        except h11.RemoteProtocolError as problem:
            raise _not_understood(problem) from None
        if not isinstance(event, h11.Request):
            raise ConnectionAbortedError("the connection was closed without a request")
        self._answer_has_body = event.method != b"HEAD"
        _check(event)
        return event

    def invite_body(self) -> None:
        """Let a client that asked first (``Expect: 100-continue``) send its body."""
        if self._protocol.they_are_waiting_for_100_continue:
            invitation = h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")
            self.writer.write(self._protocol.send(invitation))

    async def read_body(self) -> bytes:
        """Return the next piece of the body; an empty one is its end."""
        try:
            event = await self._next_event()
        except TimeoutError:
            raise HttpRefusal(
                HTTPStatus.REQUEST_TIMEOUT, "the upload came to a standstill"
            ) from None
        except h11.RemoteProtocolError:
            sentence = "the chunked upload is broken"
            if self._protocol.trailing_data[1]:  # the client has closed its side
                sentence = "the upload ended before its announced length"
            raise HttpRefusal(HTTPStatus.BAD_REQUEST, sentence) from None
        return bytes(event.data) if isinstance(event, h11.Data) else b""

    async def respond(self, status: HTTPStatus, content_type: str, content: bytes) -> None:
        """Answer the request."""
        head = h11.Response(
            status_code=status,
            reason=status.phrase.encode(),
            headers=[
                ("Content-Type", content_type),
                ("Content-Length", str(len(content))),
                ("Connection", "close"),
            ],
        )
        self.writer.write(self._protocol.send(head))
        if self._answer_has_body:
            self.writer.write(self._protocol.send(h11.Data(data=content)))
        await self.writer.drain()

    async def finish(self) -> None:
        """Close, but read on for a moment: closing on unread bytes would lose the answer."""
        with contextlib.suppress(OSError):
            self.writer.write_eof()
            for _ in range(_LINGER_READS):
                async with asyncio.timeout(_LINGER_SECONDS):
                    if not await self.reader.read(CHUNK_BYTES):
                        break
        self.writer.close()
        async with asyncio.timeout(_FLUSH_SECONDS):
            await self.writer.wait_closed()

    async def _next_event(self) -> object:
        while (event := self._protocol.next_event()) is h11.NEED_DATA:
            async with asyncio.timeout(self._silence_seconds):
                self._protocol.receive_data(await self.reader.read(CHUNK_BYTES))
        return event


class HttpServer(ABC):
    """Answer connections in a thread of its own until the block ends."""

    max_connections = 64
    silence_seconds = 60.0  # after which a client that sends nothing is cut off

    def __init__(self) -> None:
        self._listeners: list[socket.socket] = []
        self._open: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @abstractmethod
    async def answer(self, connection: HttpConnection) -> None:
        """Answer what is asked on a connection."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CALL_SECONDS)
        self._loop.close()

    def serve(self, listener: socket.socket) -> None:
        """Serve on a socket that listens already, TCP or unix; it is closed at the end."""
        listener.setblocking(False)
        self._listeners.append(listener)
        self._loop.call_soon_threadsafe(self._listen, listener)

    def call(self, coroutine: Coroutine[Any, Any, _Result]) -> _Result:
        """Run a coroutine in the server's thread and wait for its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(_CALL_SECONDS)

    async def _end(self) -> None:
        for listener in self._listeners:
            self._loop.remove_reader(listener)
            listener.close()
        await asyncio.sleep(0)  # a task that has not begun would not close its connection
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def _listen(self, listener: socket.socket) -> None:
        self._loop.add_reader(listener, self._accept, listener)

    def _accept(self, listener: socket.socket) -> None:
        try:
            client, _ = listener.accept()
        except OSError:  # most likely no file descriptor is left: some will be given back
            logger.warning("a connection of an agent was not accepted", exc_info=True)
            self._loop.remove_reader(listener)
            self._loop.call_later(_PAUSE_SECONDS, self._listen, listener)
            return
        if len(self._open) >= self.max_connections:
            client.close()
            return
        task = self._loop.create_task(self._meet(client))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _meet(self, client: socket.socket) -> None:
        with client:
            try:
                reader, writer = await asyncio.open_connection(sock=client)
                try:
                    connection = HttpConnection(reader, writer, self.silence_seconds)
                    await self.answer(connection)
                    await connection.finish()
                finally:
                    writer.transport.abort()  # nothing happens if it is closed
            except OSError:  # a TimeoutError too: clients come and go
                logger.debug("a connection of an agent broke", exc_info=True)
            except Exception:
                logger.exception("a connection of an agent could not be served")


def _check(request: h11.Request) -> None:
    """Refuse what h11 lets through and the next server might read in another way."""
    names = [name for name, _ in request.headers]
    is_old = request.http_version == b"1.0"
    if not is_old and request.http_version != b"1.1":
        raise HttpRefusal(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "use HTTP/1.1 or HTTP/1.0")
    if len(names) > _MAX_HEADERS:
        raise HttpRefusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "too many headers")
    # RFC 9112, 6.1: a mistake, or an attempt to smuggle a second request past a server
    if b"transfer-encoding" in names and (is_old or b"content-length" in names):
        raise HttpRefusal(HTTPStatus.BAD_REQUEST, "the length of the body is not clear")


def _not_understood(problem: h11.RemoteProtocolError) -> HttpRefusal:
    status = HTTPStatus(problem.error_status_hint)
    if status is HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE:
        return HttpRefusal(status, "the head of the request is too long")
    # h11 quotes the line at fault, which may be the one with the agent's key
    reason = re.split(r": b\w*\W", str(problem))[0]
    return HttpRefusal(status, f"the request is not understood: {reason[:1].lower()}{reason[1:]}")
