"""Our side of the way to an upstream: one pool of connections per attempt, and faults in words."""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from pytest_mlebench.gateway.model_request import ModelRequest
from pytest_mlebench.gateway.routes import Route

CONNECT_SECONDS = 30.0

_PEEK_BYTES = 1 << 16
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_AUTOMATIC = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
_HEADER_BYTES = 1 << 16


class UpstreamFault(Exception):
    """Say what happened instead of an answer, or of its second half."""

    def __init__(self, problem: str, *, was_sent: bool = True) -> None:
        super().__init__(problem)
        self.was_sent = was_sent  # so that it may have cost something


@dataclass(frozen=True)
class Answer:
    """An upstream's answer as it begins."""

    host: str
    response: aiohttp.ClientResponse
    peeked: bytes = b""  # of the body, read already

    @property
    def status(self) -> int:
        """Return the status."""
        return self.response.status

    @property
    def reason(self) -> str | None:
        """Return what stands beside the status."""
        return self.response.reason

    @property
    def headers(self) -> Iterable[tuple[str, str]]:
        """Return the headers, which may be there several times."""
        return self.response.headers.items()

    @property
    def content_type(self) -> str:
        """Return the type of the body, without its parameters."""
        return self.response.content_type

    @property
    def length(self) -> int | None:
        """Return the length of the body, if that is what we shall read."""
        coded = self.response.headers.get("Content-Encoding", "identity") != "identity"
        return None if coded else self.response.content_length

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body as it comes."""
        if self.peeked:
            yield self.peeked
        with _faults(self.host):
            async for piece in self.response.content.iter_any():
                yield piece


class UpstreamClient:
    """Passes calls on; to be made and closed in the event loop."""

    def __init__(self) -> None:
        self._proxies = getproxies()  # what a client on this host would use, too
        self._without_usage: set[str] = set()  # upstreams that refuse to be asked for it
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),  # calls are bounded where they arrive
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=_AUTOMATIC,
            max_line_size=_HEADER_BYTES,
            max_field_size=_HEADER_BYTES,
        )

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()

    @asynccontextmanager
    async def ask(
        self, model_request: ModelRequest, headers: Iterable[tuple[str, str]], query: str
    ) -> AsyncIterator[tuple[ModelRequest, Answer]]:
        """Yield the answer to a call, and the call as it was passed on in the end.

        A stream is asked for its usage; an upstream that will not have that is asked again without.
        """
        name = model_request.route.upstream.name
        asked = (
            model_request if name in self._without_usage else model_request.with_usage_asked_for()
        )
        async with self._asked(asked, headers, query) as answer:
            if not (asked.asks_for_usage and answer.status in {400, 422}):
                yield asked, answer
                return
            peeked = await _peek(answer)
            if b"stream_options" not in peeked:
                yield asked, Answer(answer.host, answer.response, peeked)
                return
        self._without_usage.add(name)
        async with self._asked(model_request, headers, query) as answer:
            yield model_request, answer

    @asynccontextmanager
    async def _asked(
        self, model_request: ModelRequest, headers: Iterable[tuple[str, str]], query: str
    ) -> AsyncIterator[Answer]:
        route = model_request.route
        host = urlsplit(route.upstream.url).netloc
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_SECONDS, sock_read=route.upstream.timeout_seconds
        )
        with _faults(host):
            response = await self._session.request(
                model_request.method,
                URL(route.url(query), encoded=True),
                headers=CIMultiDict([*headers, ("Accept-Encoding", "identity")]),
                data=model_request.body or None,
                allow_redirects=False,
                timeout=timeout,
                proxy=self._proxy(route),
            )
        try:
            yield Answer(host, response)
        finally:
            # an answer that was read to its end gives its connection back, any other closes it
            response.release() if response.content.at_eof() else response.close()

    def _proxy(self, route: Route) -> str | None:
        parts = urlsplit(route.upstream.url)
        host = parts.hostname or ""
        proxy = self._proxies.get(parts.scheme) or self._proxies.get("all")
        if proxy is None or host in _LOOPBACK or proxy_bypass(host):
            return None
        return proxy


async def _peek(answer: Answer) -> bytes:
    """Return the beginning of a body."""
    peeked = b""
    with _faults(answer.host):
        while len(peeked) < _PEEK_BYTES and not answer.response.content.at_eof():
            peeked += await answer.response.content.readany()
    return peeked


@contextmanager
def _faults(host: str) -> Iterator[None]:
    """Turn what goes wrong on the way into one sentence, in which there is no URL and no key."""
    try:
        yield
    except ssl.SSLError as problem:  # aiohttp's own are of this kind, too
        raise _tls(host, problem) from None
    except aiohttp.ClientConnectorError as problem:
        why = _system_words(problem.os_error)
        raise UpstreamFault(f"cannot connect to {host}: {why}", was_sent=False) from None
    except aiohttp.ConnectionTimeoutError:
        raise UpstreamFault(f"cannot connect to {host}: time-out", was_sent=False) from None
    except TimeoutError:
        raise UpstreamFault(f"{host} fell silent") from None
    except aiohttp.ClientPayloadError:
        raise UpstreamFault(f"{host} broke its answer off") from None
    except aiohttp.ServerDisconnectedError:
        raise UpstreamFault(f"{host} closed the connection without an answer") from None
    except (aiohttp.ClientError, OSError, ValueError) as problem:
        raise UpstreamFault(f"the way to {host} broke: {type(problem).__name__}") from None


def _system_words(problem: OSError) -> str:
    """Return the system's own words: asyncio has words of its own for a failed connection."""
    number = problem.errno or 0  # below zero in errors of the name service
    return (os.strerror(number) if number > 0 else problem.strerror or "failed").lower()


def _tls(host: str, problem: ssl.SSLError) -> UpstreamFault:
    inside = getattr(problem, "certificate_error", None) or getattr(problem, "os_error", problem)
    reason = getattr(inside, "verify_message", "") or getattr(inside, "reason", "") or "failed"
    why = str(reason).lower().replace("_", " ")
    return UpstreamFault(f"no TLS with {host}: {why}", was_sent=False)
