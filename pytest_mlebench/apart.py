"""Prepare in a process of its own: many at a time, and an out-of-memory kill hits no one else.

Not below ``preparing``, so that the child imports only what its competition needs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

from pytest_mlebench.competition import Competition, read_competition
from pytest_mlebench.errors import MlebenchError, PreparationError

KILLED = -9


def prepare_apart(competition: Competition, raw: Path, public: Path, private: Path) -> None:
    """Run ``Competition.prepare`` in a child process that dies with this one."""
    lifeline, held = os.pipe()  # its end, when nobody holds it any more, tells the child
    try:
        paths = map(str, (competition.folder, raw, public, private))
        done = subprocess.run(
            [sys.executable, "-m", __name__, str(lifeline), *paths],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            pass_fds=(lifeline,),
            check=False,
        )
    finally:
        os.close(lifeline)
        os.close(held)
    if done.returncode != 0:
        raise PreparationError(_problem(competition, done))


def _problem(competition: Competition, done: subprocess.CompletedProcess[bytes]) -> str:
    try:
        return str(json.loads(done.stdout.splitlines()[-1])["error"])
    except (IndexError, ValueError, KeyError, TypeError):
        pass
    if done.returncode == KILLED:
        return f"{competition.id}: its preparation was killed: out of memory? use fewer --jobs"
    last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
    return f"{competition.id}: its preparation ended with {done.returncode}: {''.join(last)}"


def _die_with_parent(lifeline: int) -> None:
    os.read(lifeline, 1)
    os._exit(1)


def main() -> int:
    """Prepare what the arguments name; say in one line of JSON what went wrong."""
    lifeline = int(sys.argv[1])
    threading.Thread(target=_die_with_parent, args=(lifeline,), daemon=True).start()
    folder, raw, public, private = map(Path, sys.argv[2:])
    try:
        read_competition(folder).prepare(raw, public, private)
    except MlebenchError as error:
        sys.stdout.write(json.dumps({"error": str(error)}) + "\n")
        sys.stdout.flush()
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
