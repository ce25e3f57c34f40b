"""A share in the run's dollars on a machine that does not have the run's account.

The gateway of an attempt asks the worker that waits for it, through a socket in the attempt's
folder, and that asks the controller. Whenever nobody answers, calls are refused. What calls have
cost is written to a file beside the socket and numbered by its lines: it is booked as soon as
somebody answers, and each line once, whoever delivers it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from pytest_mlebench.errors import InfrastructureError
from pytest_mlebench.gateway.refusal import CallRefusal

ANSWER_SECONDS = 120.0
SETTLED, SOCKET = ".settled", ".account"  # in the folder of an attempt
HELD, FULL, EXHAUSTED, AWAY = "held", "full", "exhausted", "away"  # what is answered

# how many lines were delivered before, what further lines say, the dollars that are held and
# those that are wanted, if any are -> what is answered, and why
Exchange = Callable[[int, list[str], str, str | None], tuple[str, str]]


class HostAccount:
    """The gateway's end; it is used by the process that holds the attempt."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._holding = Decimal(0)

    async def try_to_hold(self, usd: Decimal) -> bool:
        """Hold some dollars if they are left beside what others hold; refuse if none are left."""
        return await asyncio.to_thread(self._try_to_hold, usd)

    async def settle(self, held: Decimal, usd: Decimal) -> None:
        """Let go of what was held, and book what was spent, now or when somebody answers."""
        await asyncio.to_thread(self._settle, held, usd)

    async def close(self) -> None:
        """Let go of whatever is still held."""
        await asyncio.to_thread(self._settle, None, Decimal(0))

    def _try_to_hold(self, usd: Decimal) -> bool:
        with self._lock:
            answer, text = self._ask(usd)
            if answer == EXHAUSTED:
                raise CallRefusal("budget", text)
            if answer == AWAY:
                raise CallRefusal(
                    "busy",
                    "the budget of the whole run is kept on another host, which does not answer "
                    f"now ({text}): try again later",
                )
            if answer == HELD:
                self._holding += usd
            return answer == HELD

    def _settle(self, held: Decimal | None, usd: Decimal) -> None:
        with self._lock:
            self._holding -= self._holding if held is None else held
            if usd:
                with (self._folder / SETTLED).open("a", encoding="utf-8") as file:
                    file.write(f"{usd}\n")
            self._ask(None)

    def _ask(self, wanted: Decimal | None) -> tuple[str, str]:
        request = {"holding": str(self._holding), "wanted": None if wanted is None else str(wanted)}
        try:
            with _short_path(self._folder) as path, socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(ANSWER_SECONDS)
                connection.connect(path)
                connection.sendall(json.dumps(request).encode() + b"\n")
                with connection.makefile("rb") as lines:
                    answer, text = json.loads(lines.readline())
        except (OSError, ValueError) as problem:
            return AWAY, getattr(problem, "strerror", None) or "its connection is lost"
        return str(answer), str(text)


@contextlib.contextmanager
def answering(folder: Path, exchange: Exchange) -> Iterator[None]:
    """Answer the gateway of an attempt for a block, from a thread."""
    (folder / SOCKET).unlink(missing_ok=True)  # an earlier worker's
    with _short_path(folder) as path, _AccountServer(path, folder, exchange) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
            (folder / SOCKET).unlink(missing_ok=True)


def settle_rest(folder: Path, exchange: Exchange) -> None:
    """Book what an attempt that is over has spent, if not all of it has been."""
    if (folder / SETTLED).is_file():
        exchange(0, _settled(folder), "0", None)
        (folder / SETTLED).unlink(missing_ok=True)


class _AccountServer(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True

    def __init__(self, path: str, folder: Path, exchange: Exchange) -> None:
        self.folder = folder
        self.delivered = 0  # lines
        self.exchange = exchange
        super().__init__(path, _Question)


class _Question(socketserver.StreamRequestHandler):
    server: _AccountServer

    def handle(self) -> None:
        server, before = self.server, self.server.delivered
        try:
            request: dict[str, Any] = json.loads(self.rfile.readline())
            lines = _settled(server.folder)
            answer = server.exchange(before, lines[before:], request["holding"], request["wanted"])
            server.delivered = max(server.delivered, len(lines))
        except (InfrastructureError, ValueError, KeyError) as problem:
            answer = (AWAY, str(problem))
        with contextlib.suppress(OSError):  # nobody waits any more
            self.wfile.write(json.dumps(answer).encode() + b"\n")


def _settled(folder: Path) -> list[str]:
    """Return what is written of an attempt's spending; a line without an end is none yet."""
    try:
        text = (folder / SETTLED).read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    return text.split("\n")[:-1]


@contextlib.contextmanager
def _short_path(folder: Path) -> Iterator[str]:
    """Yield a path to the socket that is short enough: 107 characters at most (man 7 unix)."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{SOCKET}"
    finally:
        os.close(descriptor)
