"""The viewer as a user starts it, and raw requests to it."""

from __future__ import annotations

import http.client
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Answer:
    """What the server said."""

    status: int
    headers: dict[str, str]
    text: str


class RunningViewer:
    """A viewer that serves."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.port = int(address.rstrip("/").rpartition(":")[2])

    def get(self, path: str, *, host: str | None = None, method: str = "GET") -> Answer:
        """Ask for a path exactly as it is given."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.putrequest(method, path, skip_host=True)
        connection.putheader("Host", host or f"127.0.0.1:{self.port}")
        connection.endheaders()
        response = connection.getresponse()
        text = response.read().decode(errors="replace")
        connection.close()
        return Answer(response.status, dict(response.getheaders()), text)

    def events(self, path: str) -> Iterator[str]:
        """Yield the events of a stream as they come."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request("GET", path)
        response = connection.getresponse()
        while line := response.readline():
            if line.startswith(b"data: "):
                yield line[6:].decode()
        connection.close()


@contextmanager
def serving(runs: Path, *options: str) -> Iterator[RunningViewer]:
    """Start the command and yield the viewer that it serves."""
    program = "from pytest_mlebench.cli import main; raise SystemExit(main())"
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", program, "view", str(runs), "--no-browser", *options],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        yield RunningViewer(line.split(": ", 1)[1].split()[0])
    finally:
        process.terminate()
        process.wait(timeout=60)
        if process.stdout is not None:
            process.stdout.close()
