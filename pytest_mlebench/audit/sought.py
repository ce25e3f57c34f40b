"""What is sought in the texts of an attempt: a pattern, and words without which it cannot occur."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice

from pytest_mlebench.audit.attempt_files import Text

MAX_EVIDENCE = 5
QUOTED_LETTERS = 160


class Sought:
    """A pattern; one of some words is in every ASCII text that it occurs in, whatever its case."""

    def __init__(self, words: Iterable[str], pattern: str, flags: int = 0) -> None:
        lowered = tuple(word.lower() for word in words)
        self.words = lowered if all(map(str.isascii, lowered)) else ()
        self.pattern = re.compile(pattern, flags)

    def quotes(self, text: Text) -> list[str]:
        """Return the first lines of a text in which the pattern occurs, with their numbers."""
        if not self._can_occur(text):
            return []
        found = []
        for match in islice(self.pattern.finditer(text.text), MAX_EVIDENCE):
            at = match.end() - len(match[0].lstrip())  # a pattern may begin on the line before
            start, end = text.text.rfind("\n", 0, at) + 1, text.text.find("\n", at)
            line = text.text[start : len(text.text) if end < 0 else end].strip()[:QUOTED_LETTERS]
            found.append(f"{text.place}:{text.text.count(chr(10), 0, at) + 1}: {line}")
        return found

    def _can_occur(self, text: Text) -> bool:
        """Look for the words first: that takes a fraction of what the pattern does."""
        # other alphabets have letters that a pattern takes for ours, such as the long s
        if not self.words or not text.text.isascii():
            return True
        return any(word in text.lowered for word in self.words)
