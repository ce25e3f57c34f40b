"""A golden pack: a tiny raw tree of one competition and what is to become of it.

``notes.json`` in a pack lists, each with its reason, where we differ from the expectations:
``stricter``      cases that had a score and that we reject
``reordered``     cases that are ``noisy-1`` in another order, which never matters
``needs_answers`` cases that ``score`` rejects and ``check``, without answers, cannot
``instead``       cases to which we give another score: ``[score, reason]``
``repaired``      prepared files whose content is not what the reference makes of it
"""

from __future__ import annotations

import hashlib
import json
import math
import tarfile
import zipfile
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1] / "golden" / "packs"
IDS = sorted(path.name for path in ROOT.iterdir() if (path / "cases.json").is_file())
SAME_AS_NOISY = ("shuffled-rows", "reversed-columns")


class Pack:
    """The golden pack of one competition."""

    def __init__(self, competition_id: str) -> None:
        self.folder = ROOT / competition_id

    def unpack(self, name: str, target: Path) -> Path:
        """Extract raw, private or cases below *target*."""
        folder = target / name
        with tarfile.open(self.folder / f"{name}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
        return folder

    @cached_property
    def prepared(self) -> dict[str, dict[str, Any]]:
        """Return what the prepared folders must hold."""
        return json.loads((self.folder / "prepared.json").read_text())

    @cached_property
    def notes(self) -> dict[str, dict[str, Any]]:
        """Return where we differ, and why."""
        path = self.folder / "notes.json"
        return json.loads(path.read_text()) if path.is_file() else {}

    def repaired(self, part: str) -> list[str]:
        """Return the files of public or private whose content differs on purpose."""
        paths = map(Path, self.notes.get("repaired", {}))
        return [str(path.relative_to(part)) for path in paths if path.is_relative_to(part)]

    @cached_property
    def cases(self) -> dict[str, float | None]:
        """Return for each case the score to reach, or None where it must be rejected."""
        found = json.loads((self.folder / "cases.json").read_text())
        expected: dict[str, float | None] = {}
        for case, verdict in found.items():
            score = verdict.get("score")
            if case in SAME_AS_NOISY or case in self.notes.get("reordered", {}):
                score = found["noisy-1"]["score"]
            if case in self.notes.get("instead", {}):
                score = self.notes["instead"][case][0]
            elif case in self.notes.get("stricter", {}) or not _is_finite(score):
                score = None
            expected[case] = score
        return expected


def case_file(folder: Path, case: str) -> Path:
    """Return the file of a case."""
    return next(path for path in (folder / f"{case}.csv", folder / case) if path.is_file())


def is_close(score: float, expected: float) -> bool:
    """Compare as the packs demand: relative 1e-9, absolute near zero."""
    return math.isclose(score, expected, rel_tol=1e-9, abs_tol=1e-9)


def describe(folder: Path, like: dict[str, Any]) -> dict[str, Any]:
    """Return path -> md5 for a prepared folder, archives by member where *like* has members.

    Folders are listed where nothing is in them.
    """
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name != "description.md":
            form = like.get(name)
            packed = isinstance(form, dict)
            found[name] = _contents(path, next(iter(form))) if packed else _md5(path)
        elif path.is_dir() and not any(path.iterdir()):
            found[f"{name}/"] = "empty-dir"
    return found


def _contents(path: Path, form: str) -> dict[str, Any]:
    if form == "parquet":
        return {"parquet": _parquet(path)}
    return {form: {name: hashlib.md5(data).hexdigest() for name, data in _members(path, form)}}


def _members(path: Path, form: str) -> list[tuple[str, bytes]]:
    if form == "zip":
        with zipfile.ZipFile(path) as archive:
            names = [info.filename for info in archive.infolist() if not info.is_dir()]
            return [(name, archive.read(name)) for name in names]
    if form == "tar":
        with tarfile.open(path) as archive:
            files = [member for member in archive if member.isfile()]
            return [(member.name, archive.extractfile(member).read()) for member in files]
    import py7zr

    with py7zr.SevenZipFile(path) as archive:
        factory = py7zr.io.BytesIOFactory(1 << 30)
        archive.extractall(factory=factory)
        return [(name, file.read()) for name, file in factory.products.items()]


def _parquet(path: Path) -> dict[str, Any]:
    import pandas as pd

    table = pd.read_parquet(path)
    text = table.to_csv(index=False).encode()
    return {
        "dtypes": {name: str(dtype) for name, dtype in table.dtypes.items()},
        "rows": len(table),
        "csv_md5": hashlib.md5(text).hexdigest(),
    }


def _md5(path: Path) -> str:
    return hashlib.md5(path.read_bytes()).hexdigest()


def _is_finite(score: Any) -> bool:
    return isinstance(score, int | float) and math.isfinite(score)
