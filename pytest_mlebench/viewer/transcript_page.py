"""What an attempt said to its models and heard, decoded: so many calls on a page."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_mlebench._plain_text import plain_lines
from pytest_mlebench.gateway.conversation import Exchange, Turn, exchanges
from pytest_mlebench.gateway.transcripts import FILE, transcripts_in
from pytest_mlebench.viewer.served_files import opened_file

NAME = FILE
MAX_LETTERS = 1 << 20  # after which a page ends
MAX_CALLS = 200
LINE_LETTERS = 2_000


@dataclass(frozen=True)
class ShownCall:
    """A call on the page."""

    number: int
    title: str
    turns: tuple[Turn, ...]


def transcript_calls(
    root: Path, parts: Sequence[str], first: int = 1
) -> tuple[list[ShownCall], int | None]:
    """Return as many calls from a number on as fit on a page, and the number of the next one."""
    shown: list[ShownCall] = []
    letters = 0
    with opened_file(root, parts) as file:
        for number, exchange in enumerate(exchanges(transcripts_in(file)), 1):
            if number < first:
                continue
            if letters > MAX_LETTERS or len(shown) == MAX_CALLS:
                return shown, number
            shown.append(_shown(number, exchange))
            letters += sum(len(turn.text) for turn in shown[-1].turns)
    return shown, None


def _shown(number: int, exchange: Exchange) -> ShownCall:
    call = exchange.transcript
    turns = (*exchange.turns, Turn("answer", exchange.answer))
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(call.time))
    title = f"{number}. {at} UTC, {call.model or call.path}, status {call.status}"
    plain = (Turn(turn.role, _plain(turn.text)) for turn in turns)
    return ShownCall(number, _plain(title), tuple(plain))


def _plain(text: str) -> str:
    return "\n".join(plain_lines(text, width=LINE_LETTERS))
