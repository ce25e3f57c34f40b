"""A server that speaks the protocol of Kaggle's client, with every misfortune on request.

The real client reaches it through ``HTTP_PROXY``, in its own test environment; so the addresses
that it uses are those it would use anywhere, and the blobs live on another host, as at Kaggle.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
import time
from collections import defaultdict, deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

API = "/api/v1/competitions.CompetitionApiService/"
KERNELS = "/api/v1/kernels.KernelsApiService/"
ACCOUNT = "/api/v1/users.AccountService/"
BLOB_HOST = "blobs.test"


@dataclass
class Fault:
    """What goes wrong with one request: a status, or a body that is not what it should be."""

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    message: str = "a problem"
    cut_after: int | None = None  # close the connection after so many bytes
    stall_after: int | None = None  # send nothing more after so many bytes
    trickle: bool = False  # a byte now and then
    corrupt: bool = False  # flip a byte
    no_length: bool = False  # chunked, without a Content-Length


@dataclass
class Blob:
    """A competition's zip."""

    data: bytes
    etag: str | None
    announces_md5: bool = False

    @classmethod
    def of(cls, data: bytes) -> Blob:
        return cls(data, f'"{hashlib.sha1(data).hexdigest()}"')


@dataclass
class Asked:
    """One request that came in."""

    what: str
    competition: str
    headers: dict[str, str]


class KaggleServer(ThreadingHTTPServer):
    """Kaggle, as far as the client can tell."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.blobs: dict[str, Blob] = {}
        self.not_accepted: set[str] = set()
        self.not_entered: set[str] = set()  # rules accepted, yet not on the list of entrants
        self.boards: dict[str, list[tuple[str, str]]] = {}
        self.file_sizes: dict[str, list[int]] = {}
        self.kernels: dict[str, dict[str, str]] = {}  # USER/NAME: what GetKernel tells of it
        self.page_lists: dict[str, list[dict[str, str]]] = {}
        self.tokens = {"good-token"}
        self.keys = {("user", "good-key")}
        self.refresh_tokens = {"good-refresh"}
        self.faults: dict[str, deque[Fault]] = defaultdict(deque)  # by what is asked for
        self.asked: list[Asked] = []
        self.rate: float | None = None  # bytes per second
        self.released = threading.Event()  # set: stalled connections end
        self.thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)

    @property
    def environment(self) -> dict[str, str]:
        """Return what leads the real client here."""
        return {
            "KAGGLE_API_ENVIRONMENT": "TEST",
            "KAGGLE_API_TOKEN": "good-token",
            "HTTP_PROXY": f"http://127.0.0.1:{self.server_address[1]}",
            "http_proxy": f"http://127.0.0.1:{self.server_address[1]}",
            "NO_PROXY": "",
            "no_proxy": "",
        }

    def add(self, competition: str, archive: Path | bytes) -> Blob:
        """Offer a zip."""
        data = archive if isinstance(archive, bytes) else archive.read_bytes()
        self.blobs[competition] = Blob.of(data)
        return self.blobs[competition]

    def count(self, what: str) -> int:
        """Return how often something was asked for."""
        return sum(asked.what == what for asked in self.asked)

    def __enter__(self) -> KaggleServer:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, *_: Any) -> None:
        """Keep quiet about clients that were killed."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: KaggleServer

    def log_message(self, *_: Any) -> None:
        """Keep quiet."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        facts = json.loads(body or b"{}")
        path = urlsplit(self.path).path
        what = path.rsplit("/", 1)[-1]
        competition = facts.get("competitionName", "")
        self.server.asked.append(Asked(what, competition, dict(self.headers)))
        faults = self.server.faults[what]
        if faults:
            self._fail(faults.popleft())
        elif path.startswith(ACCOUNT):
            self._account(facts)
        elif not self._knows_the_caller():
            self._json(401, {"code": 401, "message": "Unauthenticated"})
        elif path.startswith(KERNELS):
            self._kernel(f"{facts.get('userName')}/{facts.get('kernelSlug')}")
        elif not path.startswith(API) or competition not in self.server.blobs:
            self._json(404, {"code": 404, "message": "Competition not found"})
        else:
            getattr(self, f"_{what}")(competition, facts)

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        competition = url.path.strip("/").removesuffix(".zip")
        self.server.asked.append(Asked("blob", competition, dict(self.headers)))
        faults = self.server.faults["blob"]
        fault = faults.popleft() if faults else Fault()
        if url.hostname != BLOB_HOST or "Authorization" in self.headers:
            self._json(400, {"code": 400, "message": "a blob store takes no credentials"})
        elif fault.status:
            self._fail(fault)
        else:
            self._blob(self.server.blobs[competition], fault)

    def _account(self, facts: dict[str, Any]) -> None:
        if facts.get("refreshToken") in self.server.refresh_tokens:
            self._json(200, {"token": "good-token", "expiresIn": 3600, "userName": "user"})
        else:
            self._json(401, {"code": 401, "message": "Invalid refresh token"})

    def _knows_the_caller(self) -> bool:
        scheme, _, value = self.headers.get("Authorization", "").partition(" ")
        if scheme == "Bearer":
            return value in self.server.tokens
        if scheme == "Basic":
            user, _, key = base64.b64decode(value).decode().partition(":")
            return (user, key) in self.server.keys
        return False

    def _DownloadDataFiles(self, competition: str, _: dict[str, Any]) -> None:
        if competition in self.server.not_accepted:
            self._json(403, {"code": 403, "message": "You must accept this competition's rules."})
            return
        self.send_response(302)
        self.send_header("Location", f"http://{BLOB_HOST}/{competition}.zip?signature=1")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _kernel(self, name: str) -> None:
        if (found := self.server.kernels.get(name)) is None:
            self._json(404, {"code": 404, "message": "Kernel not found"})
        else:
            self._json(200, {"metadata": {"ref": name}, "blob": found})

    def _GetCompetition(self, competition: str, _: dict[str, Any]) -> None:
        entered = competition not in self.server.not_accepted | self.server.not_entered
        self._json(200, {"id": 4711, "ref": competition, "userHasEntered": entered})

    def _ListDataFiles(self, competition: str, facts: dict[str, Any]) -> None:
        sizes = self.server.file_sizes.get(competition, [])
        start = int(facts.get("pageToken") or 0)
        files = [{"ref": str(i), "totalBytes": size} for i, size in enumerate(sizes)]
        end = start + facts.get("pageSize", 20)
        token = {"nextPageToken": str(end)} if end < len(files) else {}
        self._json(200, {"files": files[start:end], **token})

    def _ListCompetitionPages(self, competition: str, _: dict[str, Any]) -> None:
        self._json(200, {"pages": self.server.page_lists.get(competition, [])})

    def _GetLeaderboard(self, competition: str, facts: dict[str, Any]) -> None:
        start = int(facts.get("pageToken") or 0)
        end = start + min(facts.get("pageSize", 20), 50)  # a server may give less than asked for
        rows = self.server.boards[competition]
        self._json(
            200,
            {
                "submissions": [
                    {"teamId": start + i, "teamName": team, "score": score}
                    for i, (team, score) in enumerate(rows[start:end])
                ],
                "nextPageToken": str(end) if end < len(rows) else "",
            },
        )

    def _fail(self, fault: Fault) -> None:
        if fault.stall_after is not None:
            self.server.released.wait()
            self.close_connection = True
            return
        status = fault.status or 500
        self._json(status, {"code": status, "message": fault.message}, fault.headers)

    def _json(self, status: int, facts: Any, headers: dict[str, str] | None = None) -> None:
        body = json.dumps(facts).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _blob(self, blob: Blob, fault: Fault) -> None:
        part, total = self._range(blob), len(blob.data)
        data = memoryview(blob.data)[part.start : part.stop]
        if fault.corrupt:
            copy = bytearray(data)
            copy[len(copy) // 2] ^= 0xFF
            data = memoryview(copy)
        self.send_response(206 if len(part) < total else 200)
        if len(part) < total:
            self.send_header("Content-Range", f"bytes {part.start}-{part.stop - 1}/{total}")
        if blob.etag:
            self.send_header("ETag", blob.etag)
            self.send_header("Accept-Ranges", "bytes")
        if blob.announces_md5:
            digest = base64.b64encode(hashlib.md5(blob.data).digest()).decode()
            self.send_header("x-goog-hash", f"crc32c=AAAAAA==,md5={digest}")
        if fault.no_length:
            self.send_header("Connection", "close")
            self.close_connection = True
        else:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self._send(data, fault)

    def _range(self, blob: Blob) -> range:
        match = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        condition = self.headers.get("If-Range")
        total = len(blob.data)
        if match is None or not blob.etag or condition not in (None, blob.etag):
            return range(total)
        return range(int(match[1]), min(total, int(match[2] or total) + 1))

    def _send(self, data: memoryview, fault: Fault) -> None:
        stop = fault.cut_after if fault.cut_after is not None else fault.stall_after
        piece = 1 << 20
        if self.server.rate:
            piece = max(1, int(self.server.rate / 50))
        for start in range(0, len(data) if stop is None else stop, piece):
            end = min(start + piece, len(data) if stop is None else stop)
            self.wfile.write(data[start:end])
            if self.server.rate:
                time.sleep(1 / 50)
        if fault.trickle:
            for byte in data[stop or 0 :]:
                self.wfile.write(bytes([byte]))
                if self.server.released.wait(0.02):
                    break
        elif fault.stall_after is not None:
            self.server.released.wait()
        if stop is not None:
            self.close_connection = True
