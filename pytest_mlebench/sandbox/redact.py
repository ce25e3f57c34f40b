"""Keep secrets out of what is written down of an agent's output and files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

MASK = b"***"


def redact_text(text: str, secrets: Iterable[str]) -> str:
    """Return a text without the secrets in it, the longest first."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, MASK.decode())
    return text


def redact(data: Any, secrets: Iterable[str]) -> Any:
    """Return plain data without the secrets in any of its texts, keys included."""
    hidden = tuple(secrets)
    if not hidden:
        return data
    if isinstance(data, str):
        return redact_text(data, hidden)
    if isinstance(data, Mapping):
        return {redact_text(key, hidden): redact(value, hidden) for key, value in data.items()}
    return [redact(each, hidden) for each in data] if isinstance(data, list | tuple) else data


class Mask:
    """A filter for a stream of bytes that hides secrets, also where chunks cut them in two."""

    def __init__(self, secrets: Iterable[str], *, keep_length: bool = False) -> None:
        found = {secret.encode(errors="surrogateescape") for secret in secrets} - {b""}
        self._secrets = sorted(found, key=len, reverse=True)  # the longest match first
        self._pattern = re.compile(b"|".join(map(re.escape, self._secrets)))
        self._keep_length = keep_length
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
        return self._pattern.sub(self._mask, text[: len(text) - held])

    def finish(self) -> bytes:
        """Return what was held back."""
        held, self._held = self._held, b""
        return held

    def _mask(self, match: re.Match[bytes]) -> bytes:
        return b"*" * len(match[0]) if self._keep_length else MASK

    def _start_of_a_secret(self, text: bytes) -> int:
        longest = min(len(text), max(map(len, self._secrets)) - 1)
        for length in range(longest, 0, -1):
            if any(secret.startswith(text[-length:]) for secret in self._secrets):
                return length
        return 0
