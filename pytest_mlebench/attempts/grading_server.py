"""The process that checks and scores for a session: it is copied for each request.

Requests and answers are lines of JSON through descriptor 0. A copy confines itself before it opens
the submission, and its answer is taken as it is: a score, or a sentence.
"""

from __future__ import annotations

import contextlib
import gc
import json
import math
import os
import resource
import select
import signal
import socket
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from pytest_mlebench.competition import read_competition
from pytest_mlebench.errors import DatasetError, InvalidSubmission, MlebenchError
from pytest_mlebench.sandbox.process import kernel, landlock, seccomp
from pytest_mlebench.sandbox.process.launch import forget_descriptors

MAX_ANSWER_BYTES = 1 << 20

# What some graders need: loaded here for the next request once one was seen to need it. A copy
# says which, so there is a list: it must not be able to make this process import anything else.
_LOADED_LATER = (
    "sklearn.metrics",
    "scipy.stats",
    "scipy.ndimage",
    "scipy.spatial",
    "rapidfuzz.process",
    "rapidfuzz.distance",
)


def main() -> None:
    """Answer requests until the session closes its end."""
    from pytest_mlebench.grading import align, read  # late on purpose: heavy

    del align, read
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    kernel.adopt_orphans()
    with socket.socket(fileno=os.dup(0)) as door, door.makefile("rb") as requests:
        for line in requests:
            gc.freeze()  # copies of this process share what nobody touches
            answer = _answer(json.loads(line))
            needed = answer.pop("modules", ())
            door.sendall(json.dumps(answer).encode() + b"\n")
            for name in _LOADED_LATER:  # while the session does something else
                if name in needed and name not in sys.modules:
                    import_module(name)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    """Let a copy of this process do the work, and see that it ends."""
    seconds = request["seconds"]
    results, write_results = os.pipe()
    child = os.fork()
    if child == 0:
        _work(request, write_results)
    os.close(write_results)
    try:
        text = _read(results, time.monotonic() + seconds)
    finally:
        os.close(results)
        status = _end(child)
    name = Path(request["competition"]).name
    if text is None:
        return {"error": f"{name}: grading took more than {seconds:.0f} s and was stopped"}
    with contextlib.suppress(ValueError):
        answer = json.loads(text)
        if isinstance(answer, dict):
            return answer
    return {"error": f"{name}: the process that grades was {_how_ended(status)}"}


def _how_ended(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return "ended without an answer"
    hint = ": out of memory?" if -code == signal.SIGKILL else ""
    return f"killed by {signal.Signals(-code).name}{hint}"


def _read(descriptor: int, deadline: float) -> bytes | None:
    """Return a line, or what there is of it, None if it takes too long."""
    text = b""
    while not text.endswith(b"\n") and len(text) <= MAX_ANSWER_BYTES:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            return None
        piece = os.read(descriptor, 1 << 16)
        if not piece:
            break
        text += piece
    return text


def _end(child: int) -> int:
    """Kill the copy and whatever it may have started, and return how the copy has ended."""
    ended = os.waitpid(child, os.WNOHANG)
    if not ended[0]:
        os.kill(child, signal.SIGKILL)
        ended = os.waitpid(child, 0)
    with contextlib.suppress(ChildProcessError):  # sooner or later there is none
        while kernel.LINUX:
            for orphan in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
                os.kill(int(orphan), signal.SIGKILL)
            os.waitpid(-1, 0)
    return ended[1]


def _work(request: dict[str, Any], results: int) -> NoReturn:
    """Be the copy: never return."""
    try:
        kernel.die_with_parent(signal.SIGKILL)
        forget_descriptors(results)
        _confine(request["memory"], request["seconds"])
        answer = _judged(request)
        answer["modules"] = [name for name in _LOADED_LATER if name in sys.modules]
        text = json.dumps(answer).encode() + b"\n"
        while text:
            text = text[os.write(results, text) :]
    finally:
        os._exit(0)


def _confine(memory: int, seconds: float) -> None:
    """Give up what grading does not need: writing, networks, and more than its share."""
    with contextlib.suppress(OSError):  # if the host runs out of memory, this one goes first
        Path("/proc/self/oom_score_adj").write_text("1000")
    cpu_seconds = math.ceil(seconds) * (os.cpu_count() or 1)
    for limit, most in (
        (resource.RLIMIT_DATA, _data_bytes() + memory),
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(limit)[1]
        within = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(limit, (within, within))
    if not kernel.LINUX:
        return
    rules = landlock.rules(readable=["/"], writable=[]) if landlock.version() else None
    kernel.forbid_new_privileges()
    if seccomp.available():
        with contextlib.suppress(OSError):  # a kernel without it: what is left must do
            seccomp.enter(only_reading=True)
    if rules is not None:
        landlock.enter(rules)


def _data_bytes() -> int:
    """Return how much memory the limit counts already."""
    if not kernel.LINUX:
        return 0
    lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData:"))


def _judged(request: dict[str, Any]) -> dict[str, Any]:
    competition = read_competition(Path(request["competition"]))
    submission, data = Path(request["submission"]), Path(request["data"])
    try:
        if request["task"] == "score":
            return {"score": competition.score(submission, data)}
        competition.check(submission, data)
        return {}
    except InvalidSubmission as problem:
        return {"invalid": str(problem)}
    except DatasetError as problem:
        return {"dataset": str(problem)}
    except MlebenchError as problem:
        return {"error": str(problem)}
    except BaseException as problem:
        return {"error": f"{competition.id}: the grader failed: {type(problem).__name__}"}
