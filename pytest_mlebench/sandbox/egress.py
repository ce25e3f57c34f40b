"""The one way out for an agent that may reach some hosts only: a proxy on our side of the wall.

    with Egress("allow:api.example.com,*.example.org,10.0.0.7:8000", job.folder) as egress:
        egress.serve(listening_socket)
        ...
    egress.summary()          # what was tried: counted, and in egress.jsonl one by one

The agent itself has no network at all, hence no addresses, no name service and no way to services
of the host; it reaches this proxy through a unix socket. Names are looked up here, and only those
that are allowed. A host without a port means the ports 80 and 443. A name that is allowed must not
lead to this machine or its link, unless it is ``host.docker.internal`` or a bare address; one that
only matches a ``*.`` must lead to a public address.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from http import HTTPStatus
from pathlib import Path
from typing import Any

import h11

from pytest_mlebench.sandbox.egress_rules import THIS_HOST, is_address, parse_rules
from pytest_mlebench.sandbox.http_server import CHUNK_BYTES, HttpConnection, HttpRefusal, HttpServer
from pytest_mlebench.sandbox.proxy_request import ProxyRequest, parse_proxy_request
from pytest_mlebench.sandbox.redact import redact

RECORD = "egress.jsonl"

_MAX_RECORDED = 10_000  # requests that are written down; the rest are only counted
_SHOWN_HOSTS = 50  # in the summary
_SHOWN_LETTERS = 20  # of a method, which may be any word
_CONNECT_SECONDS = 30.0  # for a host to answer
_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"

Resolve = Callable[[str, int], Awaitable[list[str]]]


class Egress(HttpServer):
    """A proxy for one attempt, until the block ends."""

    max_connections = 256
    silence_seconds = 3600.0  # a model may think for long

    def __init__(
        self,
        policy: str,
        folder: Path,
        *,
        secrets: Iterable[str] = (),
        resolve: Resolve | None = None,
    ) -> None:
        super().__init__()
        self._rules = parse_rules(policy)
        self._record = folder / RECORD
        self._resolve = resolve or _resolve
        self._secrets = {form for secret in secrets for form in (secret, secret.lower())}
        self._verdicts: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()

    def summary(self) -> dict[str, Any]:
        """Return what was tried, in figures; of the refused hosts the most wanted ones by name."""
        return {
            "allowed": self._verdicts["allowed"],
            "refused": self._verdicts["refused"],
            "failed": self._verdicts["failed"],
            "bytes_out": self._bytes["bytes_out"],
            "bytes_in": self._bytes["bytes_in"],
            "refused_hosts": redact(dict(self._refused.most_common(_SHOWN_HOSTS)), self._secrets),
        }

    async def answer(self, connection: HttpConnection) -> None:
        """Reach the host that an agent asks for, or refuse."""
        started = time.time()
        try:
            request = parse_proxy_request(await connection.request())
        except HttpRefusal as refusal:
            self._note(started, None, "refused", str(refusal))
            await _respond(connection, refusal.status, str(refusal))
            return
        try:
            theirs, them = await self._connect(request)
        except HttpRefusal as refusal:
            self._note(started, request, "refused", str(refusal))
            await _respond(connection, refusal.status, f"{request.address} is refused: {refusal}")
            return
        except OSError as problem:
            why = str(problem) or "no answer"
            self._note(started, request, "failed", why)
            sentence = f"{request.address} cannot be reached: {why}"
            await _respond(connection, HTTPStatus.BAD_GATEWAY, sentence)
            return
        carried: Counter[str] = Counter(bytes_out=0, bytes_in=0)
        try:
            await _carry(request, connection, theirs, them, carried)
        finally:
            them.close()
            self._note(started, request, "allowed", None, **carried)

    async def _connect(
        self, request: ProxyRequest
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        rule = next((r for r in self._rules if r.admits(request.host, request.port)), None)
        if rule is None:
            raise HttpRefusal(HTTPStatus.FORBIDDEN, "it is not on the list of --mle-network")
        async with asyncio.timeout(_CONNECT_SECONDS):
            found = await self._resolve(request.host, request.port)
            objections = {address: rule.objection(address) for address in found}
            addresses = [address for address, objection in objections.items() if not objection]
            if found and not addresses:
                raise HttpRefusal(HTTPStatus.FORBIDDEN, str(objections[found[0]]))
            problem: OSError = OSError("no such host")
            for address in addresses:  # the very ones that were looked at, not looked up again
                try:
                    return await asyncio.open_connection(address, request.port)
                except OSError as error:
                    problem = error
            raise problem

    def _note(
        self,
        started: float,
        request: ProxyRequest | None,
        verdict: str,
        why: str | None,
        **carried: int,
    ) -> None:
        """Write a request down, and only then count it: who sees the count finds the line."""
        line = {
            "time": round(started, 3),
            "seconds": round(time.time() - started, 3),
            "method": None if request is None else request.method[:_SHOWN_LETTERS],
            "host": None if request is None else request.host,
            "port": None if request is None else request.port,
            "verdict": verdict,
            "why": why,
        }
        try:
            if self._verdicts.total() < _MAX_RECORDED:
                with self._record.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(redact(line | carried, self._secrets)) + "\n")
        finally:
            self._bytes.update(carried)
            address = "?" if request is None else request.address
            if verdict == "refused" and (
                address in self._refused or len(self._refused) < _MAX_RECORDED
            ):
                self._refused[address] += 1
            self._verdicts[verdict] += 1


async def _carry(
    request: ProxyRequest,
    connection: HttpConnection,
    theirs: asyncio.StreamReader,
    them: asyncio.StreamWriter,
    carried: Counter[str],
) -> None:
    sending = asyncio.create_task(_send(request, connection, them, carried))
    try:
        await _pump(theirs, connection.writer, carried, "bytes_in")
        if request.is_tunnel:
            await sending
    finally:
        sending.cancel()
        with contextlib.suppress(Exception, asyncio.CancelledError):
            await sending


async def _send(
    request: ProxyRequest,
    connection: HttpConnection,
    them: asyncio.StreamWriter,
    carried: Counter[str],
) -> None:
    try:
        if request.forwarded is None:
            connection.writer.write(_ESTABLISHED)
            them.write(connection.unread)
            carried["bytes_out"] += len(connection.unread)
            await _pump(connection.reader, them, carried, "bytes_out")
        else:
            await _forward(request.forwarded, connection, them, carried)
    except BaseException:
        them.transport.abort()  # the host must not wait for the rest of what is half sent
        raise


async def _forward(
    head: h11.Request,
    connection: HttpConnection,
    writer: asyncio.StreamWriter,
    carried: Counter[str],
) -> None:
    """Send one request, and not a byte more; its body is framed anew, trailers stay here."""
    protocol = h11.Connection(h11.CLIENT)
    writer.write(protocol.send(head))
    while piece := await connection.read_body():
        carried["bytes_out"] += len(piece)
        writer.write(protocol.send(h11.Data(data=piece)))
        await writer.drain()
    writer.write(protocol.send(h11.EndOfMessage()))
    await writer.drain()


async def _pump(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, carried: Counter[str], way: str
) -> None:
    while True:
        async with asyncio.timeout(Egress.silence_seconds):
            piece = await reader.read(CHUNK_BYTES)
            if not piece:
                break
            carried[way] += len(piece)
            writer.write(piece)
            await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


async def _respond(connection: HttpConnection, status: HTTPStatus, sentence: str) -> None:
    content = f"{sentence}\n".encode("ascii", "backslashreplace")
    await connection.respond(status, "text/plain", content)


async def _resolve(host: str, port: int) -> list[str]:
    if host == THIS_HOST:
        return ["127.0.0.1"]
    if is_address(host):
        return [host]
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError:  # a label that is empty or has more than 63 letters
        return []
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))
