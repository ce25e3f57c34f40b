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


def serve(work: Callable[..., None]) -> int:
    """Be the child: do the work, say in one line of JSON what went wrong, die with the parent."""
    lifeline, *arguments = sys.argv[1:]
    threading.Thread(target=_die_with_parent, args=(int(lifeline),), daemon=True).start()
    try:
        work(*arguments)
    except MlebenchError as error:
        sys.stdout.write(json.dumps({"error": str(error)}) + "\n")
        sys.stdout.flush()
        return 1
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
    try:
        return str(json.loads(done.stdout.splitlines()[-1])["error"])
    except (IndexError, ValueError, KeyError, TypeError):
        return None


def _die_with_parent(lifeline: int) -> None:
    os.read(lifeline, 1)
    os._exit(1)
