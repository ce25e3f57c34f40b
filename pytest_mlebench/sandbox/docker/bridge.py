"""A way from inside a container to a socket of ours over the engine's own connection.

For an engine on another machine no socket of ours can be bound in. Its connection is there, though:
the helper listens inside and passes what it hears to its output, which the engine brings to us.
Connections are passed on one after the other; the framing is told in ``helper.c``.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

from pytest_mlebench.sandbox.docker.engine import Engine
from pytest_mlebench.sandbox.docker.prepared_image import HELPER

_PIECE = 16384  # the helper's buffer
_STDOUT = 1

logger = logging.getLogger(__name__)


class Bridge:
    """One socket inside a container, tied to what *connect* connects to on our side."""

    def __init__(
        self, engine: Engine, container: str, path: str, connect: Callable[[], socket.socket]
    ) -> None:
        self._engine = engine
        self._container = container
        self._path = path
        self._connect = connect
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            self._carry()
        except Exception:
            # The container has ended, or the engine: whoever watches the container tells.
            logger.debug("the bridge to %s broke", self._path, exc_info=True)

    def _carry(self) -> None:
        api = self._engine.streams
        process = api.exec_create(
            self._container, [HELPER, "stream", self._path], stdin=True, stdout=True, stderr=False
        )
        theirs = _plain_socket(api.exec_start(process["Id"], socket=True))
        conversation = _Conversation(self._connect, theirs)
        for piece in _pieces(_output(theirs)):
            if conversation.is_over:
                conversation = _Conversation(self._connect, theirs)
            conversation.hear(piece)


class _Conversation:
    """One connection: it is over when both sides have said so."""

    def __init__(self, connect: Callable[[], socket.socket], theirs: Any) -> None:
        self._connect = connect
        self._theirs = theirs
        self._ours: socket.socket | None = None
        self._asked = threading.Event()
        self._answered = threading.Event()

    @property
    def is_over(self) -> bool:
        return self._asked.is_set() and self._answered.is_set()

    def hear(self, piece: bytes) -> None:
        """Pass on what the other side says; nothing means that it has said all."""
        if self._ours is None:
            self._ours = self._connect()
            threading.Thread(target=self._answer, args=(self._ours,), daemon=True).start()
        with contextlib.suppress(OSError):  # whom we talk to need not hear us out
            if piece:
                self._ours.sendall(piece)
            else:
                self._ours.shutdown(socket.SHUT_WR)
        if not piece:
            self._asked.set()

    def _answer(self, ours: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := ours.recv(_PIECE):
                self._theirs.sendall(struct.pack(">I", len(piece)) + piece)
        ours.close()
        self._answered.set()  # before the other side hears of it and begins anew
        with contextlib.suppress(OSError):
            self._theirs.sendall(struct.pack(">I", 0))


def _plain_socket(stream: Any) -> Any:
    """Return what can be written to: the package hands out readers for some connections."""
    return getattr(stream, "_sock", stream)


def _output(theirs: Any) -> Iterator[bytes]:
    """Yield what a process says, out of the engine's own frames."""
    buffer = _Reader(theirs)
    while header := buffer.take(8):
        kind, size = struct.unpack(">BxxxI", header)
        data = buffer.take(size)
        if kind == _STDOUT:
            yield data


def _pieces(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the helper's pieces, however the engine has cut them."""
    data = b""
    for chunk in chunks:
        data += chunk
        while len(data) >= 4:
            (size,) = struct.unpack(">I", data[:4])
            if len(data) < 4 + size:
                break
            yield data[4 : 4 + size]
            data = data[4 + size :]


class _Reader:
    """Takes exact numbers of bytes from a socket; nothing at its end."""

    def __init__(self, theirs: Any) -> None:
        self._theirs = theirs

    def take(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            chunk = self._theirs.recv(size - len(data))
            if not chunk:
                return b""
            data += chunk
        return data
