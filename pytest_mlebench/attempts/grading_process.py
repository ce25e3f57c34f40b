"""Check and score in a process of its own, behind walls: what an agent left is hostile.

    score_apart(competition, submission, private)      # as Competition.score
    check_apart(competition, submission, public)       # as Competition.check

A server that has everything loaded starts with the first request, is copied for each one, and ends
with the session. The copy can neither write nor reach a network, and has so much memory and time
as the sizes of the files allow. If it is killed, that is the benchmark's error, and the session
lives.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from pytest_mlebench.competition import Competition
from pytest_mlebench.errors import DatasetError, GraderError, InvalidSubmission

BASE_BYTES = 2 * 10**9  # of memory for any file
BYTES_PER_BYTE = 16  # more for each byte of the files
BASE_SECONDS = 600.0  # for any file
BYTES_PER_SECOND = 10**6  # a second more for each of so many

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from pytest_mlebench.attempts import grading_server; grading_server.main()"
)
_LOADER = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")  # by which compiled modules find their libraries


def score_apart(competition: Competition, submission: Path, private: Path) -> float:
    """Return the unrounded score, or raise InvalidSubmission with one sentence."""
    if type(competition) is not Competition:  # it may be in memory only
        return competition.score(submission, private)
    return float(_server.ask("score", competition, submission, private)["score"])


def check_apart(competition: Competition, submission: Path, public: Path) -> None:
    """Raise InvalidSubmission if the file's form alone, without answers, rules it out."""
    if type(competition) is not Competition:
        competition.check(submission, public)
    else:
        _server.ask("check", competition, submission, public)


def start_early() -> None:
    """Let the server load what grading needs while there is nothing to grade yet."""
    _server.start()


class GradingServer:
    """The session's side: a server that starts when it is first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._door: socket.socket | None = None
        self._owner = 0  # a copy of the session must not talk to its server

    def start(self) -> None:
        """Start it and wait for nothing; the first request does, too."""
        with self._lock:
            if self._door is None or self._owner != os.getpid():
                self._door = self._start()

    def ask(
        self, task: str, competition: Competition, submission: Path, data: Path
    ) -> dict[str, Any]:
        """Return the answer to a request, or raise what it says went wrong."""
        expected = competition.answers if task == "score" else competition.sample
        size = _size(submission) + _size(data / expected)
        request = {
            "task": task,
            "competition": str(competition.folder.absolute()),
            "submission": str(submission.absolute()),
            "data": str(data.absolute()),
            "memory": BASE_BYTES + BYTES_PER_BYTE * size,
            "seconds": BASE_SECONDS + size / BYTES_PER_SECOND,
        }
        with self._lock:
            try:
                answer = self._exchange(json.dumps(request).encode() + b"\n")
            except BaseException:  # also an interrupt: nobody will read the answer
                self._close()
                raise
        if answer is None:
            raise GraderError(f"{competition.id}: the process that grades was lost, try again")
        return _verdict(answer)

    def _exchange(self, line: bytes) -> dict[str, Any] | None:
        """Send a request and return the answer, None if the server is lost."""
        for _ in range(2):  # somebody may have killed it since the last one
            if self._door is None or self._owner != os.getpid():
                self._door = self._start()
            answer = b""
            with contextlib.suppress(OSError):
                self._door.sendall(line)
                with self._door.makefile("rb") as answers:
                    answer = answers.readline()
            if answer.endswith(b"\n"):
                found: dict[str, Any] = json.loads(answer)
                return found
            self._close()
        return None

    def _start(self) -> socket.socket:
        self._close()
        ours, theirs = socket.socketpair()
        self._owner = os.getpid()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-I", "-c", _START, json.dumps(_search_path())],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C at the terminal is for the session
                cwd="/",
                env=_environment(),
            )
        atexit.register(_end, ours, process, os.getpid())
        return ours

    def _close(self) -> None:
        if self._door is not None and self._owner == os.getpid():
            self._door.close()
        self._door = None


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except (OSError, ValueError):  # whoever reads it says what is wrong
        return 0


def _search_path() -> list[str]:
    """Return where modules are found here: a grader of the user's may import the user's own."""
    return [str(Path(entry).absolute()) for entry in sys.path]


def _environment() -> dict[str, str]:
    """Return what an interpreter needs; whatever else is in ours may be a key."""
    kept = {name: os.environ[name] for name in _LOADER if name in os.environ}
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # threads do not survive a fork
    return {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", **threads, **kept}


def _verdict(answer: dict[str, Any]) -> dict[str, Any]:
    for key, kind in (
        ("invalid", InvalidSubmission),
        ("dataset", DatasetError),
        ("error", GraderError),
    ):
        if key in answer:
            raise kind(answer[key])
    return answer


def _end(door: socket.socket, process: subprocess.Popen[bytes], owner: int) -> None:
    if os.getpid() == owner:
        with contextlib.suppress(OSError):
            door.close()
        process.wait()


_server = GradingServer()  # starts nothing before it is needed
