"""The dummy agent: hand in the sample submission.

It shows that everything around an agent works. It needs nothing but Python, so that it runs
wherever its folder is: ``python FOLDER``.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import zipfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO

_SAMPLE = re.compile(r".*sample.*submission.*\.csv(\.zip)?|.*sample.*submission.*\.zip", re.I)


def main() -> int:
    """Copy the sample submission to where the submission is expected."""
    folder = Path(os.environ["DATA_DIR"])
    target = Path(os.environ["SUBMISSION_DIR"]) / "submission.csv"
    for sample in _samples(folder):
        with _opened(sample) as source, target.open("wb") as copy:
            shutil.copyfileobj(source, copy)
        _log(f"handed in {sample.relative_to(folder)}, {target.stat().st_size} bytes")
        return 0
    _log(f"no sample submission in {folder}")
    return 1


def _samples(folder: Path) -> Iterator[Path]:
    """Yield the sample submissions, the plainest name first; folders only if need be."""
    for pattern in ("*", "*/*"):
        found = (path for path in folder.glob(pattern) if _SAMPLE.fullmatch(path.name))
        for path in sorted(found, key=lambda path: (len(path.name), path.name)):
            if path.suffix != ".zip" or _member(path):
                yield path


def _opened(sample: Path) -> AbstractContextManager[IO[bytes]]:
    member = _member(sample) if sample.suffix == ".zip" else None
    return sample.open("rb") if member is None else zipfile.ZipFile(sample).open(member)


def _member(archive: Path) -> str | None:
    """Return the first table in an archive."""
    names = zipfile.ZipFile(archive).namelist()
    return next((name for name in names if name.endswith(".csv") and "__MACOSX" not in name), None)


def _log(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    with (Path(os.environ["LOGS_DIR"]) / "dummy.log").open("a", encoding="utf-8") as log:
        log.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
