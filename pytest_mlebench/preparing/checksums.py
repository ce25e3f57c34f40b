"""Prepared files against their published checksums."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_mlebench.competition import Competition
from pytest_mlebench.errors import ConfigError, DatasetError

CONTENT = "content:"  # such a sum is of what a table says, not of how it was written
SHOWN = 5


@dataclass(frozen=True)
class Mismatch:
    """A prepared file that is not what it should be."""

    name: str
    expected: str
    got: str

    def __str__(self) -> str:
        return f"{self.name} expected {self.expected}, got {self.got}"


def md5(path: Path) -> str:
    """Return the md5 sum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def md5_all(paths: Iterable[Path]) -> list[str]:
    """Return the md5 sums of many files, several at a time."""
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(md5, paths))


def expected(competition: Competition) -> dict[str, str]:
    """Return the published sums by path below ``prepared``; none if there are none."""
    sums = competition.checksums
    if sums is None:
        return {}
    return {f"public/{name}": value for name, value in sums.public.items()} | {
        f"private/{name}": value for name, value in sums.private.items()
    }


def compare(competition: Competition, prepared: Path) -> list[Mismatch]:
    """Return the prepared files that differ from their published sums."""
    sums = expected(competition)
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda item: _compare(prepared / item[0], *item), sums.items())
        return [mismatch for mismatch in found if mismatch is not None]


def verify(competition: Competition, prepared: Path, remedy: str) -> None:
    """Raise DatasetError naming the files that differ, expected and got, and the way out."""
    wrong = compare(competition, prepared)
    if not wrong:
        return
    shown = "; ".join(map(str, wrong[:SHOWN]))
    more = f"; and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
    raise DatasetError(
        f"{competition.id}: {len(wrong)} prepared file(s) differ from the published checksums: "
        f"{shown}{more}: {remedy}, or accept them with --mle-verify=off"
    )


def _compare(path: Path, name: str, wanted: str) -> Mismatch | None:
    if not path.is_file():
        return Mismatch(name, wanted, "no such file")
    if wanted.startswith(CONTENT):
        got = CONTENT + content(path)
    else:
        got = md5(path)
        if got != wanted and path.suffix == ".parquet":
            return _readable(path, name, wanted)
    return None if got == wanted else Mismatch(name, wanted, got)


def _readable(path: Path, name: str, wanted: str) -> Mismatch | None:
    """Accept a table that another version of the library wrote, if it is whole and not empty."""
    try:
        rows = _parquet(path).count()
    except DatasetError as error:
        return Mismatch(name, wanted, str(error))
    return None if rows else Mismatch(name, wanted, "a table without rows")


def content(path: Path) -> str:
    """Return the md5 sum of a parquet table written as csv, whoever wrote it in which version."""
    digest = hashlib.md5(usedforsecurity=False)
    try:
        for number, part in enumerate(_parquet(path).iter_row_groups()):
            digest.update(part.to_csv(index=False, header=number == 0).encode())
    except DatasetError:
        raise
    except Exception as error:
        raise DatasetError(f"{path}: not a readable parquet file: {error}") from error
    return digest.hexdigest()


def _parquet(path: Path) -> Any:
    try:
        import fastparquet  # type: ignore[import-untyped]  # late on purpose: one needs it
    except ImportError:
        raise ConfigError(
            "parquet files need fastparquet: pip install 'pytest-mlebench[competitions]'"
        ) from None
    try:
        return fastparquet.ParquetFile(str(path))
    except Exception as error:  # the library raises whatever it stumbles over
        raise DatasetError(f"{path}: not a readable parquet file: {error}") from error
