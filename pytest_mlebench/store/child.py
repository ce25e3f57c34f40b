"""Prepare in a process of its own: many at a time, and an out-of-memory kill hits nobody else.

Not below ``preparing``, so that the child imports only what its competition needs.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from pytest_mlebench._messages import Log, silent
from pytest_mlebench.competition import Competition, read_competition
from pytest_mlebench.errors import PreparationError
from pytest_mlebench.host.child_process import bytes_written, problem, run_apart, serve
from pytest_mlebench.host.shared_cpus import joined
from pytest_mlebench.store.progress import Pulse

KILLED = -9


def prepare_apart(
    competition: Competition,
    raw: Path,
    public: Path,
    private: Path,
    cpus: int | None = None,
    progress: Log = silent,
) -> None:
    """Run ``Competition.prepare`` in a child: an out-of-memory kill hits nobody else.

    *cpus* is the descriptor of those that it shares with others (``shared_cpus``).
    """
    pulse = Pulse(progress, f"{competition.id}: preparing")
    done = run_apart(
        __name__,
        *map(str, (competition.folder, raw, public, private)),
        *([] if cpus is None else [str(cpus)]),
        inherited=[] if cpus is None else [cpus],
        beside=lambda pid: pulse.watching(partial(bytes_written, pid)),
    )
    if done.returncode == 0:
        return
    if text := problem(done):
        raise PreparationError(text)
    if done.returncode == KILLED:
        text = "its preparation was killed: out of memory? use fewer --jobs"
    else:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        text = f"its preparation ended with {done.returncode}: {''.join(last)}"
    raise PreparationError(f"{competition.id}: {text}")


def _prepare(folder: str, raw: str, public: str, private: str, cpus: str = "") -> None:
    with joined(int(cpus)) if cpus else nullcontext():
        read_competition(Path(folder)).prepare(Path(raw), Path(public), Path(private))


if __name__ == "__main__":
    sys.exit(serve(_prepare))
