"""Transcripts as people read them: who said what, turn by turn, in all three protocols.

A client sends the whole conversation with every call; each turn is shown once, where it is new.
What is not understood is shown as it is. All of it is hostile text: whoever shows it escapes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pytest_mlebench.gateway.events import event_data
from pytest_mlebench.gateway.transcripts import Transcript

MAX_TURN_LETTERS = 200_000  # of one turn; a picture in a message is longer
MAX_DEPTH = 20  # of lists in lists

_TURNS = ("messages", "input", "contents")  # of OpenAI's, its responses', Google's bodies
_SYSTEM = ("system", "instructions", "systemInstruction", "system_instruction", "prompt")
_INNER = ("text", "content", "parts", "thinking", "reasoning_content", "output")
_DELTAS = ("text", "content", "thinking", "reasoning_content", "partial_json")


@dataclass(frozen=True)
class Turn:
    """Somebody's words."""

    role: str
    text: str


@dataclass(frozen=True)
class Exchange:
    """One call: what was new in it, and the answer."""

    transcript: Transcript
    turns: tuple[Turn, ...]
    answer: str

    def describe(self) -> str:
        """Return it as plain text."""
        call = self.transcript
        head = f"== {call.method} {call.path} {call.model} -> {call.status}"
        said = [
            f"[{turn.role}]\n{turn.text}" for turn in (*self.turns, Turn("answer", self.answer))
        ]
        return "\n".join([head, *said, ""])


def exchanges(transcripts: Iterable[Transcript]) -> Iterator[Exchange]:
    """Yield calls in their order, every turn of a conversation only where it is new."""
    seen: set[int] = set()
    for transcript in transcripts:
        turns = [turn for turn in _turns(transcript.request) if hash(turn) not in seen]
        seen.update(map(hash, turns))
        yield Exchange(transcript, tuple(turns), _cut(_answer(transcript.response)))


def _turns(request: str) -> list[Turn]:
    body = _parse(request)
    if not isinstance(body, dict):
        return [Turn("request", _cut(request))] if request else []
    found = [Turn("system", _words(body[name])) for name in _SYSTEM if body.get(name)]
    for value in (body[name] for name in _TURNS if body.get(name)):
        for item in value if isinstance(value, list) else [value]:
            role = item.get("role") or item.get("type") if isinstance(item, dict) else None
            found.append(Turn(str(role or "user")[:40], _words(item)))
    return [Turn(turn.role, _cut(turn.text)) for turn in found] or [Turn("request", _cut(request))]


def _answer(response: str) -> str:
    body = _parse(response)
    if isinstance(body, dict):
        return "\n".join(filter(None, _said(body))) or response
    if response.lstrip().startswith(("data:", "event:")):
        return "".join(_streamed(response)) or response
    return response


def _said(body: dict[str, Any]) -> Iterator[str]:
    """Yield what an answer that came in one piece says."""
    for choice in _tables(body.get("choices")):
        yield _words(choice.get("message", choice))
    for item in (*_tables(body.get("output")), *_tables(body.get("content"))):
        yield _words(item)
    for candidate in _tables(body.get("candidates")):
        yield _words(candidate.get("content"))


def _streamed(response: str) -> Iterator[str]:
    """Yield the pieces of an answer that came as a stream; of one that was cut, the first ones."""
    for part in response.replace("\r\n", "\n").split("\n\n"):
        event = _parse(event_data(part.encode()).decode())
        if not isinstance(event, dict):
            continue
        if isinstance(delta := event.get("delta"), str):  # a response's
            yield delta
        deltas = [delta, *(choice.get("delta") for choice in _tables(event.get("choices")))]
        for table in deltas:
            if isinstance(table, dict):
                yield from (text for name in _DELTAS if isinstance(text := table.get(name), str))
                calls = _tables(table.get("tool_calls"))
                yield from (_words(call.get("function")) for call in calls)
        for candidate in _tables(event.get("candidates")):
            yield _words(candidate.get("content"))


def _words(value: object, depth: int = 0) -> str:
    """Return what a part of a message says: its text, or what it is made of."""
    if isinstance(value, str) or value is None or depth > MAX_DEPTH:
        return value if isinstance(value, str) else ""
    if isinstance(value, list):
        return "\n".join(filter(None, (_words(one, depth + 1) for one in value)))
    if isinstance(value, dict):
        said = [_words(value[name], depth + 1) for name in _INNER if value.get(name)]
        said += [json.dumps(value[name]) for name in ("tool_calls", "tool_use") if value.get(name)]
        if any(said):
            return "\n".join(filter(None, said))
    return json.dumps(value)


def _tables(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _parse(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _cut(text: str) -> str:
    if len(text) <= MAX_TURN_LETTERS:
        return text
    return f"{text[:MAX_TURN_LETTERS]}\n… {len(text) - MAX_TURN_LETTERS} letters more"
