"""Archives in the 7z format: unpacked to a scratch folder, since they cannot be read in place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from listing import KINDS
from tables import SUFFIXES

MAX_UNPACKED_BYTES = 10_000_000_000  # of all archives together


def unpack(folder: Path, scratch: Path, word: str, log: Callable[[str], None]) -> None:
    """Unpack the archives of *folder* with *word* in their names that may be of use."""
    archives = sorted(folder.glob("*.7z"), key=lambda file: (file.stat().st_size, file.name))
    for archive in archives:
        target = scratch / archive.stem.partition(".")[0]
        if word in archive.name.lower() and not target.exists():
            _unpack(archive, target, scratch, log)


def _unpack(archive: Path, target: Path, scratch: Path, log: Callable[[str], None]) -> None:
    try:
        import py7zr  # late on purpose: it comes with an extra, and few competitions need it
    except ImportError:
        log(f"{archive.name} needs py7zr: pip install 'pytest-mlebench[competitions]'")
        return
    try:
        with py7zr.SevenZipFile(archive) as opened:
            files = [info for info in opened.list() if not info.is_directory]
            useful = any(Path(info.filename).suffix in {*KINDS, *SUFFIXES} for info in files)
            if useful and sum(info.uncompressed for info in files) <= _room(scratch):
                opened.extractall(target)
    except (py7zr.exceptions.ArchiveError, OSError, ValueError, EOFError) as problem:
        log(f"{archive.name} cannot be unpacked: {problem}")


def _room(scratch: Path) -> int:
    used = sum(file.stat().st_size for file in scratch.rglob("*") if file.is_file())
    return MAX_UNPACKED_BYTES - used
