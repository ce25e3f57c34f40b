"""What killed sessions left in the folders of runs: workspaces, sockets, nothing anybody needs."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from pytest_mlebench.errors import SandboxError
from pytest_mlebench.host.held_file import is_held
from pytest_mlebench.layout import WORKSPACES, RunFolder, names_in
from pytest_mlebench.sandbox.collect import NotCollected, remove_tree
from pytest_mlebench.sandbox.process.own_disk import release

SCRATCH = ".validator.*"  # where the format check keeps uploads while it looks at them


def find_workspaces(folder: RunFolder) -> Iterator[Path]:
    """Yield the workspaces of attempts that have ended, or whose session has."""
    for seed in folder.seeds():
        for attempt in seed.attempts():
            names = names_in(attempt.path)
            left = [name for name in names if name in WORKSPACES or fnmatch(name, SCRATCH)]
            if not left or is_held(attempt.keeper):  # held: it runs on without its session
                continue
            for path in map(attempt.path.joinpath, left):
                if path.name not in WORKSPACES or (path.is_dir() and not path.is_symlink()):
                    yield path


def remove_workspaces(folder: RunFolder) -> list[Path]:
    """Remove the workspaces of a run that no session is at work on; the caller holds its lock."""
    removed = []
    for path in list(find_workspaces(folder)):
        try:
            release(path)
            remove_tree(path)
        except (OSError, NotCollected) as problem:
            raise SandboxError(f"cannot remove {path}: {problem}") from None
        removed.append(path)
    return removed


def idle_runs(runs: Path) -> Iterator[RunFolder]:
    """Yield the runs below a folder that no session is at work on, each held while it is used."""
    from filelock import FileLock, Timeout  # late on purpose: only where something is cleaned

    for path in sorted(runs.iterdir()) if runs.is_dir() else ():
        folder = RunFolder(path)
        if not folder.plan.is_file():
            continue
        lock = FileLock(folder.lock)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            continue
        with lock:
            yield folder
        lock.release()
