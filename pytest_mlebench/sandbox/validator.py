"""The format check that an agent may ask for over HTTP while it runs.

    with Validator(job.check, folder=job.folder, max_bytes=10**9) as validator:
        url = validator.listen_tcp()          # http://127.0.0.1:PORT/validate
        validator.listen_unix(path)           # the same over a unix socket, for a container
        validator.serve(listening_socket)     # or on any socket that listens already
        ...
    validator.calls                           # how often a file was checked

``POST /validate`` takes a form with the field ``file`` (``curl -F file=@submission.csv``) or the
file itself as the body, and answers ``{"result": "Submission is valid."}`` or
``{"result": "Submission invalid! <why>"}``; ``GET /health`` answers ``{"status": "running"}``.
A container without network reaches the unix socket through anything that forwards its port 5000,
or directly: ``curl --unix-socket PATH http://localhost/validate``. The socket is created with mode
0666, so that a container's user may connect; the folder it lies in decides who sees it.

The server knows the check and nothing else: no answers, no grader, no path but its own scratch
folder inside *folder*, where ``validations.jsonl`` keeps an account of the calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from http import HTTPStatus
from pathlib import Path
from typing import Self

import h11

from pytest_mlebench.errors import InvalidSubmission, SandboxError
from pytest_mlebench.sandbox.http_server import HttpConnection, HttpRefusal, HttpServer
from pytest_mlebench.sandbox.upload import receive

VALID = "Submission is valid."
INVALID = "Submission invalid! "
RECORD = "validations.jsonl"

_MAX_UPLOADS = 4  # at a time; one of them is being checked
_MAX_RECORDED = 10_000  # calls that are written down; the rest are only counted
_PATIENCE_SECONDS = 10.0  # for the last check to end with the attempt

# Plain sh, for whatever image it runs in: curl, else python3, else wget (busybox has one too).
_SCRIPT = r"""#!/bin/sh
# Ask whether a submission has the right form: validate_submission.sh FILE
if [ "$#" -ne 1 ]; then echo "usage: $0 FILE" >&2; exit 2; fi
if [ ! -f "$1" ]; then echo "no such file: $1" >&2; exit 2; fi
url="${MLE_VALIDATE_URL:-@URL@}"
unset http_proxy HTTP_PROXY all_proxy ALL_PROXY
if command -v curl >/dev/null 2>&1; then
    exec curl -sS -g -X POST -H "Content-Type: text/csv" -T "$1" "$url"
elif command -v python3 >/dev/null 2>&1; then
    exec python3 -c '
import os, sys, urllib.error, urllib.request
file = open(sys.argv[1], "rb")
length = {"Content-Type": "text/csv", "Content-Length": str(os.fstat(file.fileno()).st_size)}
request = urllib.request.Request(sys.argv[2], data=file, headers=length, method="POST")
try:
    print(urllib.request.urlopen(request).read().decode().strip())
except urllib.error.HTTPError as answer:
    print(answer.read().decode().strip())
except OSError as problem:
    sys.exit("cannot reach %s: %s" % (sys.argv[2], problem))
' "$1" "$url"
elif command -v wget >/dev/null 2>&1; then
    exec wget -q -O - --header "Content-Type: text/csv" --post-file "$1" "$url"
fi
echo "validate_submission.sh needs curl, python3 or wget" >&2
exit 127
"""

logger = logging.getLogger(__name__)


class Validator(HttpServer):
    """Serve one job's format check until the block ends."""

    def __init__(self, check: Callable[[Path], None], *, folder: Path, max_bytes: int) -> None:
        super().__init__()
        self.calls = 0
        self._check = check
        self._folder = folder
        self._max_bytes = max_bytes
        self._uploads = 0
        self._one_at_a_time = asyncio.Lock()

    def __enter__(self) -> Self:
        self._scratch = tempfile.TemporaryDirectory(
            prefix=".validator.", dir=self._folder, ignore_cleanup_errors=True
        )
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        self.call(self._last_check())
        super().__exit__()
        self._scratch.cleanup()

    def listen_tcp(self, host: str = "127.0.0.1", port: int = 0) -> str:
        """Serve on a TCP port, a free one by default, and return the URL to post to."""
        listener = socket.create_server((host, port))
        self.serve(listener)
        return f"http://{host}:{listener.getsockname()[1]}/validate"

    def listen_unix(self, path: Path) -> None:
        """Serve on a unix socket at *path*."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(str(path))
        except OSError as problem:
            listener.close()
            raise SandboxError(
                f"cannot make the validator's socket {path}: {problem.strerror or problem} "
                "(a socket's path may have 107 bytes; a shorter runs folder helps)"
            ) from None
        path.chmod(0o666)
        listener.listen()
        self.serve(listener)

    async def answer(self, connection: HttpConnection) -> None:
        """Answer in JSON, never with a traceback."""
        try:
            content = await self._content(connection, await connection.request())
            status = HTTPStatus.OK
        except HttpRefusal as refusal:
            content, status = {"error": str(refusal)}, refusal.status
        body = json.dumps(content).encode() + b"\n"
        await connection.respond(status, "application/json", body)

    async def _content(self, connection: HttpConnection, request: h11.Request) -> dict[str, str]:
        path = request.target.partition(b"?")[0].rstrip(b"/")
        match request.method, path:
            case b"GET", b"/health":
                return {"status": "running"}
            case b"POST", b"/validate":
                return {"result": await self._validate(connection, request)}
            case b"GET" | b"POST", _:
                raise HttpRefusal(HTTPStatus.NOT_FOUND, "there is GET /health and POST /validate")
        method = request.method[:20].decode("ascii").lower()
        raise HttpRefusal(HTTPStatus.NOT_IMPLEMENTED, f"unsupported method ({method!r})")

    async def _validate(self, connection: HttpConnection, request: h11.Request) -> str:
        if self._uploads >= _MAX_UPLOADS:
            raise HttpRefusal(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"{_MAX_UPLOADS} submissions are being checked already: wait and try again",
            )
        self._uploads += 1
        try:
            with tempfile.NamedTemporaryFile(suffix=".csv", dir=self._scratch.name) as file:
                path = Path(file.name)
                size = await receive(connection, request, path, max_bytes=self._max_bytes)
                async with self._one_at_a_time:
                    return await _in_thread(lambda: self._judge(path, size))
        except (HttpRefusal, ConnectionError):
            raise
        except Exception:
            logger.exception("the format check failed")
            raise HttpRefusal(
                HTTPStatus.INTERNAL_SERVER_ERROR,
                "the format check itself failed, which says nothing about the submission",
            ) from None
        finally:
            self._uploads -= 1

    def _judge(self, path: Path, size: int) -> str:
        """Check a file and return the answer for the agent."""
        started = time.time()
        self.calls += 1
        try:
            self._check(path)
            result = VALID
        except InvalidSubmission as problem:
            result = INVALID + str(problem).replace(str(path), "submission.csv")
        except Exception:
            self._record(started, size, "the format check itself failed")
            raise
        self._record(started, size, result)
        return result

    async def _last_check(self) -> None:
        """Wait for a check that still reads from the scratch folder, and let none follow."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await self._one_at_a_time.acquire()

    def _record(self, started: float, size: int, result: str) -> None:
        if self.calls > _MAX_RECORDED:
            return
        seconds = round(time.time() - started, 3)
        line = json.dumps({"time": started, "bytes": size, "seconds": seconds, "result": result})
        with (self._folder / RECORD).open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def validate_script(url: str = "http://localhost:5000/validate") -> str:
    """Return the text of validate_submission.sh; MLE_VALIDATE_URL wins over *url*."""
    return _SCRIPT.replace("@URL@", url)


async def _in_thread(work: Callable[[], str]) -> str:
    """Wait for *work* in a thread of its own, which unlike a pool's cannot hold up our end."""
    result: Future[str] = Future()
    result.set_running_or_notify_cancel()  # what has begun is not cancelled any more

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as problem:
            result.set_exception(problem)

    threading.Thread(target=run, daemon=True).start()
    return await asyncio.wrap_future(result)
