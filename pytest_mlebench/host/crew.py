"""Work shared with child processes: many calls, their results in the same order."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any

from pytest_mlebench.errors import MlebenchError, PreparationError
from pytest_mlebench.host.child_process import serve, started
from pytest_mlebench.host.hardware import host_cpus
from pytest_mlebench.host.shared_cpus import further_cpus

MAX_CREW = 16  # more would wait for the one that hands out and takes in
AHEAD = 2  # calls for each process that may be made before their turn: results use memory

Call = Callable[[], Any]  # a partial of a function that a child can import


class Crew:
    """This process and its children; they start with the first calls and end with the block.

    Where the CPUs are shared with others, there are no more children than CPUs that are free.
    """

    def __init__(self, size: int | None = None) -> None:
        """Work in *size* processes, this one included; by default as many as there are cores."""
        self.size = min(size or host_cpus(), MAX_CREW)
        self._stack = ExitStack()
        self._children: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._children:  # whatever they are doing, nobody waits for it
            child.kill()
        self._stack.close()

    def map(self, calls: Iterable[Call]) -> Iterator[Any]:
        """Yield the results in the order of the calls, of which a few are made ahead."""
        queue = _Queue(calls, AHEAD * self.size)
        for child in self._started():
            threading.Thread(target=_hand_out, args=(queue, child), daemon=True).start()
        try:
            while True:
                while queue.ready():
                    yield queue.pop()
                numbered = queue.take()
                if numbered is not None:
                    queue.put(numbered[0], numbered[1]())
                elif not queue.wait():
                    return
        finally:
            queue.close()

    def _started(self) -> list[subprocess.Popen[bytes]]:
        missing = self.size - 1 - len(self._children)
        for _ in range(self._stack.enter_context(further_cpus(missing))):
            self._children.append(self._stack.enter_context(started(__name__)))
        return self._children


class _Queue:
    """Calls to be made and results that wait for their turn."""

    def __init__(self, calls: Iterable[Call], ahead: int) -> None:
        self._calls = iter(calls)
        self._ahead = ahead
        self._results: dict[int, Any] = {}
        self._taken = 0  # calls so far
        self._turn = 0  # the number of the next result
        self._over = False  # no more calls
        self._changed = threading.Condition()

    def take(self, *, wait: bool = False) -> tuple[int, Call] | None:
        """Return the next call with its number, or none if there is none, or none yet."""
        with self._changed:
            while not self._over and self._taken >= self._turn + self._ahead:
                if not wait:
                    return None
                self._changed.wait()
            if self._over:
                return None
            number = self._taken
            try:
                call = next(self._calls)
            except StopIteration:
                self._over = True
            except BaseException as error:  # whoever asks first, the one who reads must know
                self._over, self._taken, self._results[number] = True, number + 1, error
            else:
                self._taken += 1
                return number, call
            self._changed.notify_all()
            return None

    def put(self, number: int, result: Any) -> None:
        with self._changed:
            self._results[number] = result
            self._changed.notify_all()

    def ready(self) -> bool:
        with self._changed:
            return self._turn in self._results

    def wait(self) -> bool:
        """Wait for the next result; return whether there will be one."""
        with self._changed:
            self._changed.wait_for(lambda: self._turn in self._results or self._done())
            return not self._done()

    def pop(self) -> Any:
        """Return the next result; raise it if it is an error."""
        with self._changed:
            result = self._results.pop(self._turn)
            self._turn += 1
            self._changed.notify_all()
        if isinstance(result, BaseException):
            raise result
        return result

    def close(self) -> None:
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def _done(self) -> bool:
        return self._over and self._turn == self._taken


def _hand_out(queue: _Queue, child: subprocess.Popen[bytes]) -> None:
    """Have a child make one call after the other."""
    while (numbered := queue.take(wait=True)) is not None:
        number, call = numbered
        queue.put(number, _ask(child, call))


def _ask(child: subprocess.Popen[bytes], call: Call) -> Any:
    """Return what a call in a child returns, or the error that it ended in."""
    if child.stdin is None or child.stdout is None:
        raise ValueError("a child without pipes")  # never: they were asked for
    try:
        pickle.dump(call, child.stdin, pickle.HIGHEST_PROTOCOL)
        child.stdin.flush()
        is_error, result = pickle.load(child.stdout)
    except (OSError, EOFError, ValueError, pickle.UnpicklingError):
        return PreparationError("a process that helped was killed: out of memory?")
    return PreparationError(result) if is_error else result


def _work() -> None:
    """Be a child: make the calls that come in."""
    calls, results = sys.stdin.buffer, sys.stdout.buffer
    while True:
        try:
            call = pickle.load(calls)
        except EOFError:
            return
        try:
            answer = (False, call())
        except MlebenchError as error:
            answer = (True, str(error))
        except Exception as error:
            answer = (True, f"{type(error).__name__}: {error}")
        pickle.dump(answer, results, pickle.HIGHEST_PROTOCOL)
        results.flush()


if __name__ == "__main__":
    sys.exit(serve(_work))
