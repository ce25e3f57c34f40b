"""Work in child processes that end when their parent does, however it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from pytest_mlebench.errors import MlebenchError

Done = subprocess.CompletedProcess[bytes]


@contextmanager
def started(
    module: str, *arguments: str, inherited: Sequence[int] = ()
) -> Iterator[subprocess.Popen[bytes]]:
    """Start ``python -m module`` on a lifeline and wait for it when the block ends."""
    lifeline, held = os.pipe()  # its end, when nobody holds it any more, tells the child
    try:
        child = subprocess.Popen(
            [sys.executable, "-m", module, str(lifeline), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(lifeline, *inherited),
        )
        with child:
            try:
                yield child
            except BaseException:
                child.kill()
                raise
    finally:
        os.close(lifeline)
        os.close(held)


def run_apart(
    module: str,
    *arguments: str,
    inherited: Sequence[int] = (),
    beside: Callable[[int], AbstractContextManager[None]] | None = None,
) -> Done:
    """Run ``python -m module`` on a lifeline; it has the descriptors *inherited*, too.

    *beside* makes what goes on as long as the child of a number lives.
    """
    with (
        started(module, *arguments, inherited=inherited) as child,
        beside(child.pid) if beside else nullcontext(),
    ):
        out, err = child.communicate()
    return subprocess.CompletedProcess(child.args, child.returncode, out, err)


def serve(work: Callable[..., object]) -> int:
    """Be the child: do the work, die with the parent.

    What the work returns, or what went wrong, is said in one line of JSON.
    """
    lifeline, *arguments = sys.argv[1:]
    threading.Thread(target=_die_with_parent, args=(int(lifeline),), daemon=True).start()
    try:
        found = work(*arguments)
    except MlebenchError as error:
        _say({"error": str(error)})
        return 1
    if found is not None:
        _say({"result": found})
    return 0


def bytes_written(pid: int) -> int | None:
    """Return what a process and its children that have ended wrote to disk (proc(5), io)."""
    try:
        lines = Path(f"/proc/{pid}/io").read_text(encoding="ascii").splitlines()
    except OSError:  # it has ended, or this system has no such file
        return None
    return next(int(line.split()[1]) for line in lines if line.startswith("write_bytes:"))


def problem(done: Done) -> str | None:
    """Return what a child said before it ended in error, if it did."""
    found = _said(done, "error")
    return None if found is None else str(found)


def result(done: Done) -> Any:
    """Return what the work of a child returned, or none if it said nothing of it."""
    return _said(done, "result")


def _say(answer: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _said(done: Done, key: str) -> Any:
    try:
        return json.loads(done.stdout.splitlines()[-1])[key]
    except (IndexError, ValueError, KeyError, TypeError):
        return None


def _die_with_parent(lifeline: int) -> None:
    os.read(lifeline, 1)
    os._exit(1)
