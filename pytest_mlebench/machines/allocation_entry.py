"""The entry to an allocation: a step that gives its streams to the holder, which starts a worker.

    srun --jobid=JOB --overlap … python -m pytest_mlebench.machines.allocation_entry WORDS…

runs ``python WORDS…`` as if it were in this step; it is in the holder's, whose processes go on
when this step and its connection are lost.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from pathlib import Path

from pytest_mlebench.machines.allocation_holder import socket_path, user_of

HOLDER_SECONDS = 60.0  # for the holder, which begins with its allocation, to listen
POLL_SECONDS = 0.1
# the job's end is the holder's to pass on, and a signal that srun's words ask for is the steps'
IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def enter(path: Path, words: list[str]) -> int:
    """Let the holder start Python with some words on our streams; return its exit status."""
    with socket.socket(socket.AF_UNIX) as connection:
        _connect(connection, path)
        if user_of(connection) != os.getuid():  # everybody may make folders in /tmp
            raise SystemExit(f"{path} is another user's: nothing was given to it")
        socket.send_fds(connection, [json.dumps(words).encode()], [0, 1, 2])
        ended = connection.recv(1)
    return ended[0] if ended else 1


def _connect(connection: socket.socket, path: Path) -> None:
    deadline = time.monotonic() + HOLDER_SECONDS
    while True:
        try:
            connection.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            if time.monotonic() > deadline:
                raise
            time.sleep(POLL_SECONDS)
        else:
            return


def main(words: list[str]) -> int:
    """Enter the allocation that this step is in."""
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    return enter(socket_path(os.environ["SLURM_JOB_ID"]), words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
