"""Requests to a proxy: taken apart strictly, passed on in a form that cannot mean anything else."""

from __future__ import annotations

import re
from dataclasses import dataclass
from http import HTTPStatus

import h11

from pytest_mlebench.sandbox.http_server import HttpRefusal

_AUTHORITY = re.compile(r"(?P<host>[A-Za-z0-9._-]{1,255})(?::(?P<port>[0-9]{1,5}))?")
_URL = re.compile(r"http://(?P<authority>[^/?#]*)(?P<path>[/?][^#]*)?", re.IGNORECASE)

# Between the agent and the proxy alone (RFC 9110, 7.6.1), or made anew for the host.
_HOP = {
    *(b"connection", b"keep-alive", b"proxy-authorization", b"proxy-connection"),
    *(b"te", b"trailer", b"upgrade", b"host", b"content-length", b"transfer-encoding"),
}


@dataclass(frozen=True)
class ProxyRequest:
    """What an agent asks of the proxy: a tunnel, or a request that is passed on."""

    method: str
    host: str
    port: int
    forwarded: h11.Request | None  # what the host is sent; None for a tunnel

    @property
    def is_tunnel(self) -> bool:
        """Tell whether the agent asks for a connection rather than for a page."""
        return self.forwarded is None

    @property
    def address(self) -> str:
        """Return host and port."""
        return f"{self.host}:{self.port}"


def parse_proxy_request(request: h11.Request) -> ProxyRequest:
    """Take a request apart; raise Refusal if it is not one for a proxy."""
    method, target = request.method.decode("ascii"), request.target.decode("ascii")
    if method == "CONNECT":
        if _framing(request) not in ([], [(b"Content-Length", b"0")]):
            raise HttpRefusal(HTTPStatus.BAD_REQUEST, "a request for a tunnel has no body")
        host, port = _authority(target, None)
        return ProxyRequest(method, host, port, None)
    url = _URL.fullmatch(target)
    if url is None:
        raise HttpRefusal(
            HTTPStatus.BAD_REQUEST, "a proxy wants http://HOST/PATH, or CONNECT HOST:PORT"
        )
    host, port = _authority(url["authority"], 80)
    path = "/" + (url["path"] or "").removeprefix("/")
    return ProxyRequest(method, host, port, _forwarded(request, host, port, path))


def _authority(text: str, default: int | None) -> tuple[str, int]:
    match = _AUTHORITY.fullmatch(text)
    port = None if match is None else int(match["port"]) if match["port"] else default
    if match is None or port is None or not 0 < port < 65_536:
        raise HttpRefusal(HTTPStatus.BAD_REQUEST, "this is not HOST:PORT")
    return match["host"].lower().rstrip("."), port


def _forwarded(request: h11.Request, host: str, port: int, path: str) -> h11.Request:
    """Return what the host is sent: one request, for the host that was looked at, then the end.

    A second request on the same connection would go out without having been looked at.
    """
    nominated = {
        option.strip().lower()
        for name, value in request.headers
        if name == b"connection"
        for option in value.split(b",")
    }
    kept = [
        (name, value)
        for name, value in request.headers.raw_items()
        if name.lower() not in _HOP | nominated
    ]
    authority = (host if port == 80 else f"{host}:{port}").encode()
    return h11.Request(
        method=request.method,
        target=path,
        headers=[
            (b"Host", authority),
            *kept,
            *_framing(request),
            (b"Connection", b"close"),
        ],
    )


def _framing(request: h11.Request) -> list[tuple[bytes, bytes]]:
    """Return the one header that says how long the body is, if there is a body."""
    headers = dict(request.headers)
    if b"transfer-encoding" in headers:
        return [(b"Transfer-Encoding", b"chunked")]
    if b"content-length" in headers:
        return [(b"Content-Length", headers[b"content-length"])]
    return []
