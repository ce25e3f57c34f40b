"""A local endpoint that speaks OpenAI's protocol, as far as those who ask it can tell."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Fault:
    """An answer that is not what it should be."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes = b""


class EndpointServer(ThreadingHTTPServer):
    """Answers every request by a function of its body, after the faults that are waiting."""

    def __init__(self, answer: Callable[[Json], Json]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.faults: list[Fault | None] = []  # None: one good answer in between
        self.seen: list[Json] = []  # bodies, each with the "key" that came along

    @property
    def url(self) -> str:
        """Return the address up to and including /v1."""
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: EndpointServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append(body | {"key": self.headers.get("Authorization")})
        fault = self.server.faults.pop(0) if self.server.faults else None
        if fault is None:
            fault = Fault(content=json.dumps(self.server.answer(body)).encode())
        self.send_response(fault.status)
        for name, value in fault.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(fault.content)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def serving(answer: Callable[[Json], Json]) -> Iterator[EndpointServer]:
    """Serve on the loopback until the block ends."""
    with EndpointServer(answer) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()
