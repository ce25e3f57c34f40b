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

import contextlib
import json
import logging
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pytest_mlebench.errors import InvalidSubmission, SandboxError
from pytest_mlebench.sandbox.upload import BadUpload, receive

VALID = "Submission is valid."
INVALID = "Submission invalid! "
RECORD = "validations.jsonl"

_IN_FLIGHT = 4  # uploads at a time; one of them is being checked
_CONNECTIONS = 64
_LINGER = 256  # reads after a refusal
_SILENCE = 60.0  # seconds after which a client that says nothing is cut off
_PATIENCE = 10.0  # seconds for the last check to end with the attempt
_RECORDED = 10_000  # calls that are written down; the rest are only counted

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


class Validator:
    """Serve one job's format check until the block ends."""

    def __init__(self, check: Callable[[Path], None], *, folder: Path, max_bytes: int) -> None:
        self.calls = 0
        self.max_bytes = max_bytes
        self.places = threading.BoundedSemaphore(_IN_FLIGHT)
        self._check = check
        self._folder = folder
        self._one_at_a_time = threading.Lock()
        self._servers: list[_Server] = []

    def __enter__(self) -> Validator:
        self._scratch = tempfile.TemporaryDirectory(
            prefix=".validator.", dir=self._folder, ignore_cleanup_errors=True
        )
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()
        # a check that is still at work reads from the scratch folder, but may not hold us up
        if self._one_at_a_time.acquire(timeout=_PATIENCE):
            self._one_at_a_time.release()
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

    def serve(self, listener: socket.socket) -> None:
        """Serve on a socket that listens already; it is closed at the end."""
        server = _Server(listener, self)
        self._servers.append(server)
        threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True
        ).start()

    def scratch_file(self) -> tempfile._TemporaryFileWrapper[bytes]:
        """Return a private file for an upload, gone when it is closed."""
        return tempfile.NamedTemporaryFile(prefix="upload.", suffix=".csv", dir=self._scratch.name)

    def judge(self, path: Path, size: int) -> str:
        """Check a file, one at a time, and return the answer for the agent."""
        with self._one_at_a_time:
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

    def _record(self, started: float, size: int, result: str) -> None:
        if self.calls > _RECORDED:
            return
        seconds = round(time.time() - started, 3)
        line = json.dumps({"time": started, "bytes": size, "seconds": seconds, "result": result})
        with (self._folder / RECORD).open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def validate_script(url: str = "http://localhost:5000/validate") -> str:
    """Return the text of validate_submission.sh; MLE_VALIDATE_URL wins over *url*."""
    return _SCRIPT.replace("@URL@", url)


class _Server(ThreadingHTTPServer):
    """A server on a socket that somebody else has made."""

    daemon_threads = True
    block_on_close = False  # a client that hangs must not hold up the end of an attempt

    def __init__(self, listener: socket.socket, validator: Validator) -> None:
        super().__init__(("", 0), _Request, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.validator = validator
        self._connections = threading.BoundedSemaphore(_CONNECTIONS)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a connection, unless there are too many."""
        if self._connections.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection and give its place back."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._connections.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Note a connection that broke; clients come and go."""
        logger.debug("a connection to the validator broke", exc_info=True)


class _Request(BaseHTTPRequestHandler):
    """Answer one request in JSON, never with a traceback."""

    server: _Server
    protocol_version = "HTTP/1.1"  # so that curl's `Expect: 100-continue` is answered
    server_version = "mlebench"
    sys_version = ""
    timeout = _SILENCE

    def do_GET(self) -> None:
        """Say that the validator runs."""
        if self._path() == "/health":
            self._answer(HTTPStatus.OK, {"status": "running"})
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "there is GET /health and POST /validate")

    def do_POST(self) -> None:
        """Check an uploaded file."""
        validator = self.server.validator
        if self._path() != "/validate":
            self._refuse(HTTPStatus.NOT_FOUND, "there is GET /health and POST /validate")
        elif not validator.places.acquire(blocking=False):
            self._refuse(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"{_IN_FLIGHT} submissions are being checked already: wait and try again",
            )
        else:
            try:
                self._validate(validator)
            finally:
                validator.places.release()

    def handle_expect_100(self) -> bool:
        """Turn down a file that is announced as too large before it is sent."""
        announced = self.headers.get("Content-Length", "")
        if announced.isdecimal() and int(announced) > 2 * self.server.validator.max_bytes:
            return True  # do_POST refuses it; without our `100 Continue` the client sends nothing
        return super().handle_expect_100()

    def _validate(self, validator: Validator) -> None:
        with validator.scratch_file() as file:
            path = Path(file.name)
            try:
                size = receive(self.headers, self.rfile, path, max_bytes=validator.max_bytes)
                result = validator.judge(path, size)
            except BadUpload as problem:
                self._refuse(problem.status, str(problem))
            except TimeoutError:
                self._refuse(HTTPStatus.REQUEST_TIMEOUT, "the upload came to a standstill")
            except Exception:
                logger.exception("the format check failed")
                self._refuse(
                    HTTPStatus.INTERNAL_SERVER_ERROR,
                    "the format check itself failed, which says nothing about the submission",
                )
            else:
                self._answer(HTTPStatus.OK, {"result": result})

    def _path(self) -> str:
        return self.path.partition("?")[0].rstrip("/")

    def _refuse(self, status: HTTPStatus, sentence: str) -> None:
        self.close_connection = True  # what is left of the body is not worth reading
        self._answer(status, {"error": sentence})
        self._linger()

    def _linger(self) -> None:
        """Read on for a moment: closing on unread bytes would lose the answer on its way."""
        self.connection.settimeout(0.5)
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
            for _ in range(_LINGER):
                if not self.connection.recv(1 << 16):
                    break

    def _answer(self, status: HTTPStatus, content: dict[str, str]) -> None:
        body = json.dumps(content).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what http.server itself refuses (a bad request line, an unknown method)."""
        status = HTTPStatus(code)
        self._refuse(status, (message or status.phrase).lower())

    def address_string(self) -> str:
        """Return who asks, which over a unix socket is nobody in particular."""
        return str(self.client_address[0]) if self.client_address else "unix"

    def log_message(self, format: str, *args: Any) -> None:
        """Keep http.server's chatter out of the terminal."""
        logger.debug(format, *args)
