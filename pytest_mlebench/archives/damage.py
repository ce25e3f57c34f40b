"""What is said of an archive that cannot be read."""

from __future__ import annotations

import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from pytest_mlebench.errors import ConfigError, PreparationError


@contextmanager
def damage(archive: Path) -> Iterator[None]:
    """Turn what a library says of a broken archive into our own error."""
    try:
        yield
    except (PreparationError, ConfigError):
        raise
    except (OSError, EOFError, ValueError, TypeError, KeyError, IndexError) as error:
        raise _unreadable(archive, error) from None
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError) as error:
        raise _unreadable(archive, error) from None
    except Exception as error:
        if not type(error).__module__.startswith("py7zr"):
            raise
        raise _unreadable(archive, error) from None


def missing_member(archive: Path, name: str) -> NoReturn:
    """Raise the error that names a member which is not there."""
    raise PreparationError(f"{archive}: has no member {name!r}")


def _unreadable(archive: Path, error: Exception) -> PreparationError:
    return PreparationError(f"{archive}: damaged: {error or type(error).__name__}; fetch it again")
