"""The conversation of a worker with its controller, on a channel beside xdist's own.

The worker asks and is answered, in the order of its questions; the controller, unasked, sends
heartbeats and the order to stop. Pieces of files are questions too, of which only so many may wait
for their answers: no side ever sends faster than the other one takes in.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from typing import Any

from pytest_mlebench.errors import InfrastructureError

ANSWER, REFUSAL, UNWANTED, BEAT, STOP = "answer", "refusal", "unwanted", "beat", "stop"
WATCH_SECONDS = 1.0  # between looks for a silence
_END = "end of the channel"
_LOST = "the connection to the controller is lost"


class LinkRefused(InfrastructureError):
    """The controller does not want what a worker offers, or has not what it asks for."""


class AttemptUnwanted(LinkRefused):
    """The controller does not want an attempt of this machine any more."""


class Reply:
    """What the controller is going to answer."""

    def __init__(self) -> None:
        self.come: SimpleQueue[tuple[str, Any]] = SimpleQueue()

    def wait(self) -> Any:
        """Return the answer when it is there."""
        kind, answer = self.come.get()
        if kind in _REFUSALS:
            raise _REFUSALS[kind](answer)
        if kind == _END:
            raise InfrastructureError(_LOST)
        return answer


_REFUSALS = {REFUSAL: LinkRefused, UNWANTED: AttemptUnwanted}


class Link:
    """A worker's end. On another machine (*silence* seconds are given) it ends the worker when the
    controller is gone: what is worth keeping is kept by a process of its own."""

    def __init__(self, channel: Any, *, silence: float | None = None) -> None:
        self.is_stopping = False
        self.on_beat: Callable[[], None] = _nothing
        self.on_stop: Callable[[], None] = _nothing
        self._channel = channel
        self._waiting: deque[Reply] = deque()
        self._ended = False
        self._lock = threading.Lock()
        self._heard = _now()
        self._silence = silence
        self._closed = False
        channel.setcallback(self._receive, endmarker=_END)
        if silence is not None:
            threading.Thread(target=self._watch, name="mlebench-link", daemon=True).start()

    def ask(self, question: str, **data: Any) -> Any:
        """Ask the controller and return its answer."""
        return self.post(question, **data).wait()

    def post(self, question: str, **data: Any) -> Reply:
        """Ask the controller, and return what its answer comes to."""
        reply = Reply()
        with self._lock:
            if self._ended:
                raise InfrastructureError(_LOST)
            self._waiting.append(reply)
            try:
                self._channel.send((question, data))
            except OSError:
                self._waiting.pop()
                raise InfrastructureError(_LOST) from None
        return reply

    def close(self) -> None:
        """Let the end of the channel mean nothing any more."""
        self._closed = True

    def _receive(self, message: Any) -> None:
        self._heard = _now()
        if message == _END:
            self._lose()
            return
        kind, data = message
        if kind == ANSWER or kind in _REFUSALS:
            self._waiting.popleft().come.put((kind, data))
        elif kind == BEAT:
            self.on_beat()
        elif kind == STOP and not self.is_stopping:
            self.is_stopping = True
            self.on_stop()  # first of all: this process may not live much longer
            os.kill(os.getpid(), signal.SIGINT)  # as Ctrl-C at a terminal would

    def _lose(self) -> None:
        self._ended = True
        while self._waiting:
            self._waiting.popleft().come.put((_END, None))
        if self._silence is not None and not self._closed:
            os._exit(1)  # at once: whoever comes next on this machine wants our locks

    def _watch(self) -> None:
        """Look for a silence of the controller; while this process is held up, nobody listens."""
        silent, heard, looked_at = 0.0, self._heard, _now()
        while not self._closed:
            time.sleep(WATCH_SECONDS)
            now = _now()
            listened = min(now - looked_at, 2 * WATCH_SECONDS)
            silent = silent + listened if self._heard == heard else 0.0
            heard, looked_at = self._heard, now
            if silent > (self._silence or 0):
                self._lose()
                return


def answer_questions(
    channel: Any, answers: Mapping[str, Callable[..., Any]], *about: Any
) -> Callable[[], None]:
    """Answer what comes through a channel, in the thread of its gateway, until it is closed."""

    def receive(message: Any) -> None:
        question, data = message
        try:
            reply = (ANSWER, answers[question](*about, **data))
        except AttemptUnwanted as problem:
            reply = (UNWANTED, str(problem))
        except (InfrastructureError, OSError, KeyError, ValueError, TypeError) as problem:
            reply = (REFUSAL, f"{question}: {problem}")
        tell(channel, *reply)

    channel.setcallback(receive)
    return channel.close  # type: ignore[no-any-return]  # execnet's channels have no types


def tell(channel: Any, kind: str, data: Any = None) -> None:
    """Send something to a worker, unless it is gone."""
    with contextlib.suppress(OSError):
        channel.send((kind, data))


def _now() -> float:
    """Return seconds that count on while the host sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _nothing() -> None:
    """Do nothing."""
