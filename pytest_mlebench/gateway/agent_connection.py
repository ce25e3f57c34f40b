"""The agent's side of a call: its body as it comes in, and the answer as it goes out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from aiohttp import web
from multidict import CIMultiDict

from pytest_mlebench.gateway.refusal import CallRefusal

MAX_REQUEST_BYTES = 64 << 20
MAX_BUFFERED_BYTES = 256 << 20  # in all requests that are under way
PATIENCE_SECONDS = 600.0  # after which an agent that does not take its answer is given up
SILENCE_SECONDS = 60.0  # after which a request that does not go on is given up


class Buffers:
    """The memory that the requests of an attempt take together."""

    def __init__(self) -> None:
        self.used = 0

    @asynccontextmanager
    async def body_of(self, request: web.BaseRequest) -> AsyncIterator[bytes]:
        """Yield the body of a request; its memory is taken until the block ends."""
        if request.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise CallRefusal("bad_request", "the body must not be compressed")
        if request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = bytearray()
        try:
            async for piece in _pieces(request):
                body += piece
                self.used += len(piece)
                if len(body) > MAX_REQUEST_BYTES:
                    raise CallRefusal(
                        "too_large", f"a call has at most {MAX_REQUEST_BYTES >> 20} MB"
                    )
                if self.used > MAX_BUFFERED_BYTES:
                    raise CallRefusal(
                        "busy", "the calls under way are too large: wait for some to end"
                    )
            yield bytes(body)
        finally:
            self.used -= len(body)


class AgentConnection:
    """Where an answer goes; once the agent is gone, nowhere."""

    def __init__(self, request: web.BaseRequest) -> None:
        self._request = request
        self._response: web.StreamResponse | None = None
        self._has_failed = False

    @property
    def is_gone(self) -> bool:
        """Tell whether nobody reads any more."""
        transport = self._request.transport
        return self._has_failed or transport is None or transport.is_closing()

    async def begin(
        self, status: int, reason: str | None, headers: Iterable[tuple[str, str]], size: int | None
    ) -> None:
        """Send the head of an answer."""
        if self.is_gone:
            return
        response = web.StreamResponse(status=status, reason=reason, headers=CIMultiDict(headers))
        response.content_length = size
        try:
            await response.prepare(self._request)
        except ConnectionError:
            self._has_failed = True
        else:
            self._response = response

    async def write(self, data: bytes) -> None:
        """Send a piece of the body."""
        if not data or self._response is None or self.is_gone:
            return
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._response.write(data)
        except (ConnectionError, TimeoutError):
            self.hang_up()

    async def end(self) -> web.StreamResponse:
        """Send the end of the answer."""
        if self._response is None or self.is_gone:
            return self.hang_up()
        try:
            await self._response.write_eof()
        except ConnectionError:
            return self.hang_up()
        return self._response

    def hang_up(self) -> web.StreamResponse:
        """Break the connection off; what was written before still arrives."""
        self._has_failed = True
        if self._request.transport is not None:
            self._request.transport.close()
        return self._response or web.Response()  # for the server's own records: it goes nowhere


async def _pieces(request: web.BaseRequest) -> AsyncIterator[bytes]:
    while not request.content.at_eof():
        async with asyncio.timeout(SILENCE_SECONDS):
            piece = await request.content.readany()
        yield piece
