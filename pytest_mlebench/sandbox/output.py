"""The agent's output on its way to a file: secrets masked, bounded in size."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from pytest_mlebench.limits import show_size

MASK = b"***"


class Mask:
    """A filter for a stream of bytes that hides secrets, also where chunks cut them in two."""

    def __init__(self, secrets: Iterable[str]) -> None:
        found = {secret.encode(errors="surrogateescape") for secret in secrets} - {b""}
        self._secrets = sorted(found, key=len, reverse=True)  # the longest match first
        self._pattern = re.compile(b"|".join(map(re.escape, self._secrets)))
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """Return what can be said of *data*, holding back what may be the start of a secret."""
        if not self._secrets:
            return data
        text = self._held + data
        end = 0
        for match in self._pattern.finditer(text):
            end = match.end()
        held = self._start_of_a_secret(text[end:])
        self._held = text[len(text) - held :]
        return self._pattern.sub(MASK, text[: len(text) - held])

    def finish(self) -> bytes:
        """Return what was held back."""
        held, self._held = self._held, b""
        return held

    def _start_of_a_secret(self, text: bytes) -> int:
        longest = min(len(text), max(map(len, self._secrets)) - 1)
        for length in range(longest, 0, -1):
            if any(secret.startswith(text[-length:]) for secret in self._secrets):
                return length
        return 0


class Log:
    """A file that takes an agent's output up to a bound, and says so when it is reached."""

    def __init__(self, path: Path, max_bytes: int, secrets: Iterable[str] = ()) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        self.truncated = False
        self._file = os.open(path, flags, 0o644)
        self._max_bytes = self._left = max_bytes
        self._mask = Mask(secrets)

    def write(self, data: bytes) -> None:
        """Append output; beyond the bound it is thrown away, so that the agent never waits."""
        if not self.truncated:
            self._append(self._mask.feed(data))

    def close(self) -> None:
        """Append what is left and close the file."""
        if not self.truncated:
            self._append(self._mask.finish())
        os.close(self._file)

    def _append(self, data: bytes) -> None:
        self._write(data[: self._left])
        if len(data) > self._left:
            self.truncated = True
            self._write(f"\n[output beyond {show_size(self._max_bytes)} is not kept]\n".encode())
        self._left -= len(data)

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._file, data) :]
