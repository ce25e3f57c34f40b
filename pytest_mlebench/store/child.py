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
from pytest_mlebench.host.child_process import bytes_written, problem, result, run_apart, serve
from pytest_mlebench.host.shared_cpus import joined
from pytest_mlebench.preparing.written_sums import WrittenSums, noted_sums
from pytest_mlebench.store import prepared_sums
from pytest_mlebench.store.progress import Pulse

KILLED = -9


def prepare_apart(
    competition: Competition,
    raw: Path,
    public: Path,
    private: Path,
    cpus: int | None = None,
    progress: Log = silent,
) -> WrittenSums:
    """Run ``Competition.prepare`` in a child and return the sums that were taken on the way.

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
        return WrittenSums.from_data(result(done) or [])
    if text := problem(done):
        raise PreparationError(text)
    if done.returncode == KILLED:
        text = "its preparation was killed: out of memory? use fewer --jobs"
    else:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        text = f"its preparation ended with {done.returncode}: {''.join(last)}"
    raise PreparationError(f"{competition.id}: {text}")


def _prepare(folder: str, raw: str, public: str, private: str, cpus: str = "") -> object:
    competition = read_competition(Path(folder))
    with (
        joined(int(cpus)) if cpus else nullcontext(),
        noted_sums(prepared_sums.file_names(competition)) as written,
    ):
        competition.prepare(Path(raw), Path(public), Path(private))
    return written.to_data()


if __name__ == "__main__":
    sys.exit(serve(_prepare))
