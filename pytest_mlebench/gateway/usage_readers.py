"""Reads how much a call used out of its answer while the answer passes by.

A reader is fed the answer as it comes and returns what is to be passed on: the same, but for the
usage that we asked an OpenAI stream for and the agent did not. The usage is read before the agent
gets to know that the answer is complete, so that its next call finds this one booked.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from pytest_mlebench.gateway.dialects.dialect import Dialect, Message
from pytest_mlebench.gateway.events import EventSplitter, event_data
from pytest_mlebench.gateway.spending import Usage

MAX_PARSED_BYTES = 8 << 20  # of a body; only embeddings are longer, and end with their usage
TAIL_BYTES = 1 << 16

# Outside of strings only, for within one the quotes would be escaped.
_NO_USAGE = re.compile(rb',\s*"usage"\s*:\s*null(?=\s*[,}])|"usage"\s*:\s*null\s*,')
_TAIL_USAGE = re.compile(rb'"usage"\s*:\s*(\{[^{}]*\})')
_TAIL_MODEL = re.compile(rb'"model"\s*:\s*("[^"\\]{1,200}")')


@dataclass(frozen=True)
class Reading:
    """What an answer says of itself."""

    usage: Usage | None = None
    model: str | None = None
    tier: str | None = None
    hour_cache_tokens: int = 0


class UsageReader:
    """Reads an answer that is not a stream; the base of the one that is."""

    def __init__(
        self, dialect: Dialect, *, holds_last: bool = True, is_embedding: bool = False
    ) -> None:
        self.has_news = False  # of the usage, since somebody last looked
        self._dialect = dialect
        self._holds_last = holds_last  # piece, until the end of the answer has come
        self._is_embedding = is_embedding
        self._last = b""
        self._fields: dict[str, Any] = {}
        self._model: str | None = None
        self._tier: str | None = None
        self._kept = bytearray()
        self._is_cut = False

    def feed(self, data: bytes) -> bytes:
        """Take a piece of the answer and return what is to be passed on."""
        self._kept += data
        if len(self._kept) > (TAIL_BYTES if self._is_cut else MAX_PARSED_BYTES):
            self._is_cut = True
            del self._kept[:-TAIL_BYTES]
        if not self._holds_last:
            return data
        before, self._last = self._last, data
        return before

    def finish(self) -> bytes:
        """Take the end of the answer and return what was held back."""
        if self._is_cut:
            self._look_at_tail()
        else:
            content = parse(bytes(self._kept))
            for message in content if isinstance(content, list) else [content]:
                if isinstance(message, dict):
                    self._look_at(message)
        self._kept.clear()
        return self._last

    @property
    def reading(self) -> Reading:
        """Return what has been said so far."""
        return Reading(
            self._dialect.usage(self._fields),
            self._model,
            self._tier,
            self._dialect.hour_cache_tokens(self._fields),
        )

    def _look_at(self, message: Message) -> bool:
        """Note what a message says, and tell whether it says something of the usage."""
        self._model = self._dialect.answered_by(message) or self._model
        fields = self._dialect.usage_fields(message)
        if fields is None:
            return False
        # later ones are complete or add to earlier ones; nothing of them is ever subtracted
        self._fields |= {key: value for key, value in fields.items() if value is not None}
        self._tier = self._dialect.service_tier(message, fields) or self._tier
        self.has_news = True
        return True

    def _look_at_tail(self) -> None:
        """Read the end of a long list of numbers, in which no text is of the agent's making."""
        usages = _TAIL_USAGE.findall(self._kept)
        models = _TAIL_MODEL.findall(self._kept)
        if self._is_embedding and usages:
            self._look_at({"usage": parse(usages[-1]), "model": parse((models or [b""])[-1])})


class StreamUsageReader(UsageReader):
    """Reads a stream of events; takes out the usage that the agent did not ask for."""

    def __init__(self, dialect: Dialect, *, take_out: bool) -> None:
        super().__init__(dialect)
        self._events = EventSplitter()
        self._take_out = take_out

    def feed(self, data: bytes) -> bytes:
        """Take a piece of the stream and return what is to be passed on."""
        passed = b"".join(map(self._pass, self._events.feed(data)))
        return passed if self._take_out else data

    def finish(self) -> bytes:
        """Take the end of the stream and return what was held back."""
        rest = self._events.finish()
        passed = self._pass(rest) if rest else b""
        return passed if self._take_out else b""

    def _pass(self, event: bytes) -> bytes:
        shown = _NO_USAGE.sub(b"", event) if self._take_out else event
        if b"usage" not in shown:
            return shown
        message = parse(event_data(event))
        if not isinstance(message, dict) or not self._look_at(message):
            return shown
        return b"" if self._take_out and message.get("choices") == [] else shown


def parse(data: bytes) -> Any:
    """Return the content of JSON, or None for anything else."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
