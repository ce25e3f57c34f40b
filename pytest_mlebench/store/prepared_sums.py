"""Prepared files against their published checksums."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_mlebench._files import md5
from pytest_mlebench.competition import Competition
from pytest_mlebench.errors import DatasetError

CONTENT = "content:"  # such a sum is of what a table says, not of how it was written
SHOWN_FILES = 5

SumOf = Callable[[Path], str]  # what returns the md5 sum of a file, by reading it or otherwise


@dataclass(frozen=True)
class Mismatch:
    """A prepared file that is not what it should be."""

    name: str
    expected: str
    got: str

    def __str__(self) -> str:
        return f"{self.name} expected {self.expected}, got {self.got}"


@dataclass(frozen=True)
class ChecksumComparison:
    """The sums of the prepared files, and those that are not the published ones."""

    sums: dict[str, str]
    wrong: list[Mismatch]


def expected(competition: Competition) -> dict[str, str]:
    """Return the published sums by path below ``prepared``; none if there are none."""
    sums = competition.checksums
    if sums is None:
        return {}
    return {f"public/{name}": value for name, value in sums.public.items()} | {
        f"private/{name}": value for name, value in sums.private.items()
    }


def marked(competition: Competition) -> set[str]:
    """Return the paths below ``prepared`` whose sums a marker holds, published or not."""
    names = {f"public/{competition.sample}", f"private/{competition.answers}"}
    return names | expected(competition).keys()


def file_names(competition: Competition) -> set[str]:
    """Return the names, without folders, of the files whose sums are going to be asked for."""
    return {Path(name).name for name in marked(competition)}


def compare(competition: Competition, prepared: Path, sum_of: SumOf = md5) -> ChecksumComparison:
    """Compare the prepared files that have published sums with these, several at a time."""
    wanted = expected(competition)
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda item: _compare(sum_of, prepared, *item), wanted.items())
        results = dict(zip(wanted, found, strict=True))
    return ChecksumComparison(
        {name: got for name, (got, _) in results.items()},
        [mismatch for _, mismatch in results.values() if mismatch is not None],
    )


def verify(
    competition: Competition, prepared: Path, remedy: str, sum_of: SumOf = md5
) -> ChecksumComparison:
    """Raise DatasetError naming the files that differ, expected and got, and the way out."""
    comparison = compare(competition, prepared, sum_of)
    wrong = comparison.wrong
    if not wrong:
        return comparison
    shown = "; ".join(map(str, wrong[:SHOWN_FILES]))
    more = f"; and {len(wrong) - SHOWN_FILES} more" if len(wrong) > SHOWN_FILES else ""
    raise DatasetError(
        f"{competition.id}: {len(wrong)} prepared file(s) differ from the published checksums: "
        f"{shown}{more}: {remedy}, or accept them with --mle-verify=off or prepare --verify off"
    )


def _compare(sum_of: SumOf, prepared: Path, name: str, wanted: str) -> tuple[str, Mismatch | None]:
    path = prepared / name
    if not path.is_file():
        return "", Mismatch(name, wanted, "no such file")
    got = CONTENT + content(path) if wanted.startswith(CONTENT) else sum_of(path)
    if got == wanted:
        return got, None
    if path.suffix == ".parquet" and not wanted.startswith(CONTENT):
        return got, _unreadable(path, name, wanted)
    return got, Mismatch(name, wanted, got)


def _unreadable(path: Path, name: str, wanted: str) -> Mismatch | None:
    """Return what is wrong with a table that another version of the library may have written."""
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
    from pytest_mlebench.preparing.tables import load_fastparquet  # late on purpose: heavy

    fastparquet = load_fastparquet()
    try:
        return fastparquet.ParquetFile(str(path))
    except Exception as error:  # the library raises whatever it stumbles over
        raise DatasetError(f"{path}: not a readable parquet file: {error}") from error
