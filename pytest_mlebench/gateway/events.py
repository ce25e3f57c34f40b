"""Server-sent events: a stream of bytes cut where events end, and no byte changed.

https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
"""

from __future__ import annotations

import re

MAX_EVENT_BYTES = 16 << 20

_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_DATA = re.compile(rb"^data: ?([^\r\n]*)", re.MULTILINE)


class EventSplitter:
    """Takes bytes as they come and gives whole events."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Return the events that end in *data*, each with the empty line behind it."""
        text = self._held + data
        events, start = [], 0
        # an ending may have begun in what is held: three bytes back is far enough
        for match in _END.finditer(text, max(0, len(self._held) - 3)):
            events.append(text[start : match.end()])
            start = match.end()
        self._held = text[start:]
        if len(self._held) > MAX_EVENT_BYTES:  # not a stream of events after all
            events.append(self._held)
            self._held = b""
        return events

    def finish(self) -> bytes:
        """Return what is left of a stream that has ended within an event."""
        held, self._held = self._held, b""
        return held


def event_data(event: bytes) -> bytes:
    """Return what an event carries."""
    return b"\n".join(_DATA.findall(event))
