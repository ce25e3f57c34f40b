"""The marker of a complete dataset: what was prepared, by what, from what, how verified."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from pytest_mlebench import __version__
from pytest_mlebench._files import write_text
from pytest_mlebench.competition import Competition

NAME = ".mlebench.json"
FORMAT = 1

Verified = Literal["checksums", "none", "off"]  # matched; there are none to match; not looked at


@dataclass(frozen=True)
class Marker:
    """The facts of one preparation; ``files`` are those that are looked at again later."""

    competition: str
    source: str
    code: str
    verified: Verified
    prepared_at: str
    origin: dict[str, str | int] = field(default_factory=dict)  # the zip or folder it came from
    files: dict[str, dict[str, str | int]] = field(default_factory=dict)  # path: md5, bytes
    version: str = __version__
    format: int = FORMAT

    @property
    def sum(self) -> str:
        """Return a sum of the files that were prepared: the same data have the same."""
        lines = [f"{name} {facts.get('md5')}" for name, facts in sorted(self.files.items())]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]

    def write(self, prepared: Path) -> None:
        """Write the marker: the last thing before the folder is moved into place."""
        write_text(prepared / NAME, json.dumps(asdict(self), indent=1, sort_keys=True) + "\n")

    def fits(self, competition: Competition, prepared: Path) -> bool:
        """Tell whether the folder is still what the marker says."""
        if self.format != FORMAT or self.competition != competition.id:
            return False
        if competition.is_at_hand and self.code != code_hash(competition):
            return False
        return bool(self.files) and all(
            _size(prepared / name) == facts["bytes"] for name, facts in self.files.items()
        )


def read_marker(prepared: Path) -> Marker | None:
    """Return the marker of a folder, or none if it has no whole one."""
    try:
        return Marker(**json.loads((prepared / NAME).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def code_hash(competition: Competition) -> str:
    """Return a digest of everything that a dataset depends on that is made of files beside it."""
    digest = hashlib.sha256(__version__.encode())
    for path in _code(competition.folder):
        digest.update(f"\0{path.name}\0".encode())
        digest.update(path.read_bytes())
    if competition.own_raw is not None:
        for path in sorted(p for p in competition.own_raw.rglob("*") if p.is_file()):
            status = path.stat()  # not the content: it may be large
            digest.update(f"\0{path.name}\0{status.st_size}\0{status.st_mtime_ns}".encode())
    return digest.hexdigest()


def _code(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.suffix in (".py", ".toml", ".md") and path.is_file():
            yield path


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else -1
