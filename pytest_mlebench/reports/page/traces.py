"""What an attempt left beside its record: the end of its log, samples of what it used, its files.

All of it is hostile: links are not followed, reads are bounded, texts are made plain.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from urllib.parse import quote

from pytest_mlebench._plain_text import tail_lines
from pytest_mlebench.layout import AttemptFolder
from pytest_mlebench.reports.results import Result

LOG_LINES, LOG_COLUMNS = 40, 200
LINKED = (
    *("run.log", "submission.csv", "artefacts", "transcripts.jsonl.gz", "snapshots", "record.json"),
    *("calls.jsonl", "stats.jsonl", "validations.jsonl", "egress.jsonl"),
)


def folder_of(result: Result) -> AttemptFolder | None:
    """Return an attempt's folder, if it is on this machine."""
    path = None if result.run is None else Path(result.run)
    return AttemptFolder(path) if path is not None and path.is_dir() else None


def log_tail(folder: AttemptFolder, max_bytes: int) -> list[str]:
    """Return the last lines of a log that take at most so many bytes in a page."""
    return last_within(tail_lines(folder.log, lines=LOG_LINES, width=LOG_COLUMNS), max_bytes)


def last_within(lines: Sequence[str], max_bytes: int) -> list[str]:
    """Return as many of the last lines as take at most so many bytes once they are escaped."""
    kept: list[str] = []
    for line in reversed(lines):
        max_bytes -= len(escape(line).encode()) + 1
        if max_bytes < 0:
            break
        kept.append(line)
    return kept[::-1]


def first_within(lines: Sequence[str], max_bytes: int) -> list[str]:
    """Return as many of the first lines as take at most so many bytes once they are escaped."""
    return last_within(lines[::-1], max_bytes)[::-1]


def files(
    folder: AttemptFolder, beside: Path | None, max_links: int = len(LINKED)
) -> list[tuple[str, str]]:
    """Return names and relative links of the files that a reader of the page may want, and of all.

    Where only some are linked, the folder that has the others is, too.
    """
    if beside is None:
        return []
    own = _own_names(folder.path)
    there = [name for name in LINKED if name in own]
    # the dot keeps a folder's name with a colon in it from being taken for a scheme
    folder_link = quote(f"./{os.path.relpath(folder.path, beside)}/")
    linked = [(name, folder_link + name) for name in there[:max_links]]
    more = len(there) - len(linked)
    return [*linked, (f"{more} more in its folder", folder_link)] if more else linked


def _own_names(folder: Path) -> set[str]:
    """Return the names of what is in a folder and leads nowhere else."""
    try:
        with os.scandir(folder) as entries:
            return {entry.name for entry in entries if not entry.is_symlink()}
    except OSError:  # it has just been removed
        return set()
