"""Looking into the archives of a raw tree without changing the tree."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_mlebench.archives.archive import extract
from pytest_mlebench.archives.zip_members import ZipMembers
from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing.files import require


def zip_members(archive: Path) -> ZipMembers:
    """Return the files of a raw zip, to be passed on as they are."""
    return ZipMembers(require(archive))


@contextmanager
def unpacked(archive: Path, near: Path) -> Iterator[Path]:
    """Yield a folder with the members of *archive*, gone when the block ends.

    The folder lies beside *near* (the public or private folder under preparation), so that its
    files can be linked there.
    """
    require(archive)
    with tempfile.TemporaryDirectory(prefix=".unpack.", dir=near.parent) as scratch:
        extract(archive, Path(scratch))
        try:
            yield Path(scratch)
        except PreparationError as error:  # a member is to be found in its archive, not in scratch
            raise PreparationError(str(error).replace(f"{scratch}/", f"{archive}: ")) from error
