"""The one way out for an agent that may reach some hosts only: a proxy on our side of the wall.

    with Egress("allow:api.example.com,*.example.org,10.0.0.7:8000", job.folder) as egress:
        egress.serve(listening_socket)
        ...
    egress.summary()          # what was tried: counted, and in egress.jsonl told one by one

The agent itself has no network at all, hence no addresses, no name service and no way to services
of the host; it reaches this proxy through a unix socket. Names are looked up here, and only those
that are allowed. A host without a port means the ports 80 and 443. A name that is allowed must not
lead to this machine or its link, unless it is ``host.docker.internal`` or a bare address; one that
only matches a ``*.`` must lead to a public address.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import logging
import socket
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_mlebench.sandbox.proxy_request import BadRequest, Request, forward_body, read_request

RECORD = "egress.jsonl"
THIS_HOST = "host.docker.internal"
PORTS = (80, 443)

_CONNECTIONS = 256
_RECORDED = 10_000  # requests that are written down; the rest are only counted
_NAMED = 50  # hosts that the summary names
_HEAD = 60.0  # seconds for a request to be said
_CONNECT = 30.0  # seconds for a host to answer
_SILENCE = 3600.0  # seconds without a byte: a model may think for long
_CHUNK = 1 << 16

Resolve = Callable[[str, int], Awaitable[list[str]]]

_MUDDLED = (BadRequest, asyncio.LimitOverrunError)

logger = logging.getLogger(__name__)


class RequestRefused(Exception):
    """Say in a few words why a request does not go out."""


@dataclass(frozen=True)
class Rule:
    """A host that may be reached, or all below a domain."""

    host: str
    port: int | None = None

    @property
    def is_wildcard(self) -> bool:
        """Tell whether the rule is for all names below a domain."""
        return self.host.startswith("*.")

    def admits(self, host: str, port: int) -> bool:
        """Tell whether a host and port are meant."""
        if port != self.port if self.port else port not in PORTS:
            return False
        return host.endswith(self.host[1:]) if self.is_wildcard else host == self.host

    def trusts(self, address: str) -> bool:
        """Tell whether the host may be at an address."""
        found = ipaddress.ip_address(address.partition("%")[0])
        found = getattr(found, "ipv4_mapped", None) or found
        if self.host == THIS_HOST or _is_address(self.host):
            return True
        if self.is_wildcard:
            return found.is_global
        return not (
            found.is_loopback
            or found.is_link_local
            or found.is_unspecified
            or found.is_multicast
            or found.is_reserved
        )


def parse_rules(policy: str) -> tuple[Rule, ...]:
    """Return the rules of a policy ``allow:HOST[:PORT],…``."""
    rules = []
    for text in policy.removeprefix("allow:").split(","):
        host, _, port = text.partition(":")
        rules.append(Rule(host.lower().rstrip("."), int(port) if port else None))
    return tuple(rules)


class Egress:
    """A proxy for one attempt, until the block ends."""

    def __init__(self, policy: str, folder: Path, *, resolve: Resolve | None = None) -> None:
        self._rules = parse_rules(policy)
        self._record = folder / RECORD
        self._resolve = resolve or _resolve
        self._verdicts: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()
        self._open: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Egress:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(timeout=30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=30)
        self._loop.close()

    def serve(self, listener: socket.socket) -> None:
        """Serve on a socket that listens already; it is closed at the end."""

        async def start() -> None:
            listener.setblocking(False)
            kind = (
                asyncio.start_unix_server
                if listener.family == socket.AF_UNIX
                else asyncio.start_server
            )
            self._server = await kind(self._meet, sock=listener)

        asyncio.run_coroutine_threadsafe(start(), self._loop).result(timeout=30)

    def summary(self) -> dict[str, Any]:
        """Return what was tried, in figures; of the refused hosts the most wanted ones by name."""
        return {
            "allowed": self._verdicts["allowed"],
            "refused": self._verdicts["refused"],
            "failed": self._verdicts["failed"],
            "bytes_out": self._bytes["bytes_out"],
            "bytes_in": self._bytes["bytes_in"],
            "refused_hosts": dict(self._refused.most_common(_NAMED)),
        }

    async def _end(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(self._open) >= _CONNECTIONS:
            writer.close()
            return
        self._open.add(task)
        try:
            await self._answer(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, *_MUDDLED):
            logger.debug("a connection of an agent broke", exc_info=True)
        except asyncio.CancelledError:
            pass  # the attempt is over
        finally:
            self._open.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        started = time.time()
        try:
            async with asyncio.timeout(_HEAD):
                request = await read_request(reader)
        except BadRequest as problem:
            self._note(started, None, "refused", str(problem))
            await _say(writer, 400, str(problem))
            return
        try:
            theirs, them = await self._connect(request)
        except RequestRefused as problem:
            self._note(started, request, "refused", str(problem))
            await _say(writer, 403, f"{request.where} is refused: {problem}")
            return
        except (OSError, TimeoutError) as problem:
            why = str(problem) or "no answer"
            self._note(started, request, "failed", why)
            await _say(writer, 502, f"{request.where} cannot be reached: {why}")
            return
        carried: Counter[str] = Counter(bytes_out=0, bytes_in=0)
        try:
            await self._carry(request, (reader, writer), (theirs, them), carried)
        finally:
            them.close()
            self._bytes += carried
            self._note(started, request, "allowed", None, **carried)

    async def _connect(self, request: Request) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        rule = next((r for r in self._rules if r.admits(request.host, request.port)), None)
        if rule is None:
            raise RequestRefused("it is not on the list of --mle-network")
        async with asyncio.timeout(_CONNECT):
            found = await self._resolve(request.host, request.port)
            addresses = [address for address in found if rule.trusts(address)]
            if found and not addresses:
                raise RequestRefused("its name leads to an address that is not public")
            problem: OSError = OSError("no such host")
            for address in addresses:  # the very ones that were looked at, not looked up again
                try:
                    return await asyncio.open_connection(address, request.port)
                except OSError as error:
                    problem = error
            raise problem

    async def _carry(
        self,
        request: Request,
        ours: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        theirs: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        carried: Counter[str],
    ) -> None:
        if request.is_tunnel:
            ours[1].write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await ours[1].drain()
            out = _pump(ours[0], theirs[1], carried, "bytes_out")
        else:
            theirs[1].write(request.head())
            out = _send_body(request, ours[0], theirs[1], carried)
        sending = asyncio.create_task(out)
        try:
            await _pump(theirs[0], ours[1], carried, "bytes_in")
            if request.is_tunnel:
                await sending
        finally:
            sending.cancel()
            with contextlib.suppress(Exception, asyncio.CancelledError):
                await sending

    def _note(
        self, started: float, request: Request | None, verdict: str, why: str | None, **more: int
    ) -> None:
        self._verdicts[verdict] += 1
        where = "?" if request is None else request.where
        if verdict == "refused" and (where in self._refused or len(self._refused) < _RECORDED):
            self._refused[where] += 1
        if self._verdicts.total() > _RECORDED:
            return
        line = {
            "time": round(started, 3),
            "seconds": round(time.time() - started, 3),
            "method": None if request is None else request.method,
            "host": None if request is None else request.host,
            "port": None if request is None else request.port,
            "verdict": verdict,
            "why": why,
        }
        with self._record.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line | more) + "\n")


async def _send_body(
    request: Request,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    carried: Counter[str],
) -> None:
    async for piece in forward_body(request, reader):
        carried["bytes_out"] += len(piece)
        writer.write(piece)
        await writer.drain()


async def _pump(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, carried: Counter[str], way: str
) -> None:
    while True:
        async with asyncio.timeout(_SILENCE):
            piece = await reader.read(_CHUNK)
        if not piece:
            break
        carried[way] += len(piece)
        writer.write(piece)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


async def _say(writer: asyncio.StreamWriter, status: int, sentence: str) -> None:
    phrase = {400: "Bad Request", 403: "Forbidden", 502: "Bad Gateway"}[status]
    body = f"{sentence}\n".encode("ascii", "backslashreplace")
    writer.write(
        f"HTTP/1.1 {status} {phrase}\r\nContent-Type: text/plain\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
        + body
    )
    await writer.drain()


async def _resolve(host: str, port: int) -> list[str]:
    if host == THIS_HOST:
        return ["127.0.0.1"]
    if _is_address(host):
        return [host]
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
