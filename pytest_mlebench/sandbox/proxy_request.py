"""Requests to a proxy: read strictly, and passed on in a form that cannot mean anything else."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

_HEAD_BYTES = 1 << 16
_PIECE = 1 << 16
_LINE = re.compile(r"([A-Z]{1,20}) (\S{1,8192}) HTTP/1\.[01]")
_AUTHORITY = re.compile(r"(?P<host>[A-Za-z0-9._-]{1,255})(?::(?P<port>\d{1,5}))?")
_URL = re.compile(r"http://(?P<authority>[^/?#]*)(?P<path>[/?][^#]*)?", re.IGNORECASE)
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n\x00]*?)[ \t]*")

# Between the agent and us alone; the rest is passed on as it is.
_HOP = {"connection", "host", "keep-alive", "proxy-authorization", "proxy-connection", "upgrade"}


class BadRequest(Exception):
    """Say in a few words what a proxy cannot make sense of."""


@dataclass(frozen=True)
class Request:
    """A request as an agent sent it."""

    method: str
    host: str
    port: int
    path: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    length: int = 0  # of the body
    chunked: bool = False

    @property
    def is_tunnel(self) -> bool:
        """Tell whether the agent asks for a connection rather than for a page."""
        return self.method == "CONNECT"

    @property
    def where(self) -> str:
        """Return host and port."""
        return f"{self.host}:{self.port}"

    def head(self) -> bytes:
        """Return what the host is told: one request, for the host that was looked at, then the end.

        A second request on the same connection would go out without having been looked at.
        """
        host = self.host if self.port == 80 else self.where
        lines = [f"{self.method} {self.path or '/'} HTTP/1.1", f"Host: {host}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        lines += ["Connection: close", "", ""]
        return "\r\n".join(lines).encode("latin-1")


async def read_request(reader: asyncio.StreamReader) -> Request:
    """Read the head of a request."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise BadRequest("the head of the request is too long") from None
    if len(head) > _HEAD_BYTES:
        raise BadRequest("the head of the request is too long")
    first, *rest = head[:-4].decode("latin-1").split("\r\n")
    line = _LINE.fullmatch(first)
    if line is None:
        raise BadRequest("this is not a request to a proxy")
    method, target = line.groups()
    if method == "CONNECT":
        host, port = _authority(target, None)
        return Request(method, host, port)
    url = _URL.fullmatch(target)
    if url is None:
        raise BadRequest("a proxy wants http://HOST/PATH, or CONNECT HOST:PORT")
    host, port = _authority(url["authority"], 80)
    headers = [_header(text) for text in rest]
    path = url["path"] or "/"
    return Request(
        method,
        host,
        port,
        path if path.startswith("/") else f"/{path}",
        tuple((name, value) for name, value in headers if name.lower() not in _HOP),
        *_body(headers),
    )


async def forward_body(request: Request, reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield the body of a request as it is to be passed on, and not a byte more."""
    async for piece in _exactly(request.length, reader):
        yield piece
    while request.chunked:
        line = await reader.readuntil(b"\r\n")
        size = line.strip()
        if not re.fullmatch(rb"[0-9A-Fa-f]{1,8}", size):
            raise BadRequest("the body is cut into pieces in a way that is not understood")
        yield line
        if int(size, 16) == 0:
            yield b"\r\n"  # whatever trailers there are stay here
            return
        async for piece in _exactly(int(size, 16), reader):
            yield piece
        if await reader.readexactly(2) != b"\r\n":
            raise BadRequest("the body is cut into pieces in a way that is not understood")
        yield b"\r\n"


async def _exactly(size: int, reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield so many bytes piece by piece: an agent may announce more than fits into memory."""
    while size:
        piece = await reader.read(min(_PIECE, size))
        if not piece:
            raise asyncio.IncompleteReadError(b"", size)
        size -= len(piece)
        yield piece


def _authority(text: str, default: int | None) -> tuple[str, int]:
    match = _AUTHORITY.fullmatch(text)
    port = None if match is None else int(match["port"]) if match["port"] else default
    if match is None or port is None or not 0 < port < 65_536:
        raise BadRequest("this is not HOST:PORT")
    return match["host"].lower().rstrip("."), port


def _header(text: str) -> tuple[str, str]:
    match = _HEADER.fullmatch(text)
    if match is None:
        raise BadRequest("the request has a header that is not understood")
    return match[1], match[2]


def _body(headers: list[tuple[str, str]]) -> tuple[int, bool]:
    lengths = {value for name, value in headers if name.lower() == "content-length"}
    codings = [value.lower() for name, value in headers if name.lower() == "transfer-encoding"]
    if codings and (lengths or codings != ["chunked"]):
        raise BadRequest("the length of the body is not clear")
    if len(lengths) > 1 or any(not re.fullmatch(r"\d{1,18}", value) for value in lengths):
        raise BadRequest("the length of the body is not clear")
    return int(next(iter(lengths), "0")), bool(codings)
