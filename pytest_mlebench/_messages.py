"""Messages of long work, and what receives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

Log = Callable[[str], None]


class Progress(Protocol):
    """A receiver of messages that also shows how far downloads are."""

    def __call__(self, text: str) -> None:
        """Show a sentence."""

    def transfer(self, name: str, done: int, total: int | None) -> None:
        """Show how many bytes of how many have arrived; the end is ``done == total``."""


def silent(text: str) -> None:
    """Drop a message."""
    del text
