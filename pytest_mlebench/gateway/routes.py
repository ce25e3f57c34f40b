"""Where a call goes: below the URL of one upstream, whatever the agent writes, and with its key.

Paths are compared in their decoded form and passed on as they were written; anything that a server
might read as a step upwards, as another host or as two requests is refused.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from pytest_mlebench.gateway.refusal import CallRefusal
from pytest_mlebench.upstream import Upstream

MAX_TARGET_LENGTH = 8_000

# RFC 3986, 3.3 and 3.4, and the characters that browsers and clients leave as they are
_TARGET = re.compile(r"/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*(\?[A-Za-z0-9._~!$&'()*+,;=:@%/?\[\]|-]*)?")
_DECODINGS = 4  # of a path; one that still changes hides something
_CONTROL = re.compile(r"[\x00-\x20\x7f\\]")

# RFC 9110, 7.6.1; and what only concerns the way between the agent and us.
HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
    | {"proxy-authenticate", "proxy-authorization", "proxy-connection"}
)
_NOT_PASSED_ON = HOP_BY_HOP | {"host", "content-length", "expect", "accept-encoding", "cookie"}
_NOT_PASSED_BACK = HOP_BY_HOP | {"content-length", "content-encoding", "alt-svc"}

# Where clients put their keys: OpenAI's, Anthropic's, Azure's, Google's.
KEY_HEADERS = frozenset({"authorization", "x-api-key", "api-key", "x-goog-api-key"})
_BEARER = re.compile(r"bearer +(.+)", re.IGNORECASE)

Headers = Iterable[tuple[str, str]]


@dataclass(frozen=True)
class Route:
    """A call's way: an upstream, and the path below its URL."""

    upstream: Upstream
    path: str  # as written, begins with a slash or is empty
    query: str  # as written, without the question mark
    decoded: str  # the path to be looked at

    def url(self, query: str) -> str:
        """Return the URL of the call."""
        return self.upstream.url + self.path + (f"?{query}" if query else "")


def prefix(upstream: Upstream) -> str:
    """Return the path of an upstream at the gateway: its name, then its own path."""
    return f"/{upstream.name}{urlsplit(upstream.url).path}"


def find_route(target: str, upstreams: Sequence[Upstream]) -> Route:
    """Return where a request's target leads, or refuse it."""
    if len(target) > MAX_TARGET_LENGTH or not _TARGET.fullmatch(target):
        raise CallRefusal("bad_request", "the path of the call is not understood")
    path, _, query = target.partition("?")
    decoded = _decode(path)
    for upstream in upstreams:
        start = prefix(upstream)
        if path == start or path.startswith(f"{start}/"):
            rest = path[len(start) :]
            return Route(upstream, rest, query, _decode(rest))
    names = ", ".join(prefix(upstream) for upstream in upstreams)
    raise CallRefusal("not_found", f"there is nothing at {decoded[:100]}: the gateway has {names}")


def swap_keys(
    headers: Headers, query: str, *, ours: str, real: str
) -> tuple[list[tuple[str, str]], str]:
    """Return what carries a key, with the real one wherever the agent's own one was.

    The real key goes where the agent's client puts a key, so that it arrives as that client means
    it. Any other key is dropped. Without the agent's own key, the call is refused.
    """
    found = False
    swapped: list[tuple[str, str]] = []
    for name, value in headers:
        if name.lower() not in KEY_HEADERS:
            continue
        bearer = _BEARER.fullmatch(value.strip())
        if _is_same(bearer[1].strip() if bearer else value.strip(), ours):
            found = True
            swapped.append((name, f"Bearer {real}" if bearer else real))
    parts = []
    for part in query.split("&") if query else ():
        name, _, value = part.partition("=")
        if unquote(name) != "key":
            parts.append(part)
        elif _is_same(unquote(value), ours):
            found = True
            parts += [f"key={real}"] if real else []
    if not found:
        raise CallRefusal(
            "authentication",
            "this is the gateway of the benchmark, and the key is not the one of this attempt: "
            "use the key that is in the environment, as it is",
        )
    return (swapped if real else []), "&".join(parts)


def headers_to_upstream(headers: Headers) -> list[tuple[str, str]]:
    """Return the headers of a request that are passed on; keys are not among them."""
    kept = list(headers)
    dropped = _NOT_PASSED_ON | KEY_HEADERS | _named_by_connection(kept)
    return [(name, value) for name, value in kept if name.lower() not in dropped]


def headers_to_agent(headers: Headers) -> list[tuple[str, str]]:
    """Return the headers of an answer that are passed back."""
    kept = list(headers)
    dropped = _NOT_PASSED_BACK | _named_by_connection(kept)
    return [(name, value) for name, value in kept if name.lower() not in dropped]


def _named_by_connection(headers: Headers) -> set[str]:
    """Return the headers that are for the next hop only, because ``Connection`` names them."""
    return {
        token.strip().lower()
        for name, value in headers
        if name.lower() == "connection"
        for token in value.split(",")
    }


def _decode(path: str) -> str:
    """Return a path with nothing left to decode, or refuse one that leads elsewhere."""
    decoded = path
    for _ in range(_DECODINGS):
        before, decoded = decoded, unquote(decoded)
        if before == decoded:
            break
    else:
        raise CallRefusal("bad_request", "the path of the call is encoded too often")
    # a server may take what is behind a semicolon for a parameter of the segment
    steps = {segment.partition(";")[0] for segment in decoded.split("/")}
    if _CONTROL.search(decoded) or steps & {".", ".."}:
        raise CallRefusal("bad_request", "the path of the call leads out of the upstream's")
    return decoded


def _is_same(one: str, other: str) -> bool:
    """Compare keys in a time that does not tell how much of them agrees."""
    return hmac.compare_digest(one.encode(errors="replace"), other.encode())
