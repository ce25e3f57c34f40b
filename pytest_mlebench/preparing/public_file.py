"""Fetching a small public file that belongs to a competition and is not among Kaggle's."""

from __future__ import annotations

import http.client
import urllib.request
from pathlib import Path

from pytest_mlebench._files import atomic_file
from pytest_mlebench.errors import PreparationError

TIMEOUT_SECONDS = 60.0  # without a byte


def fetch(url: str, target: Path, *, max_bytes: int) -> None:
    """Write what is at *url* to *target*, whole or not at all."""
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as response:
            content = response.read(max_bytes + 1)
            if response.length:  # what was announced and has not come
                raise http.client.IncompleteRead(content, response.length)
    except (OSError, http.client.HTTPException) as error:
        raise PreparationError(
            f"cannot fetch {url}: {error}; put {target.name} into the raw folder by hand"
        ) from None
    if len(content) > max_bytes:
        raise PreparationError(f"{url} has more than {max_bytes} bytes, expected a small file")
    with atomic_file(target) as temporary:
        temporary.write_bytes(content)
