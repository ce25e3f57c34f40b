"""Usage is read from answers as they pass, however they are cut, and nothing else changes."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest

from pytest_mlebench.gateway.dialects import DIALECTS
from pytest_mlebench.gateway.events import MAX_EVENT_BYTES, EventSplitter, event_data
from pytest_mlebench.gateway.spending import Usage
from pytest_mlebench.gateway.usage_readers import (
    MAX_PARSED_BYTES,
    Reading,
    StreamUsageReader,
    UsageReader,
)

OPENAI, ANTHROPIC, GEMINI = (DIALECTS[name] for name in ("openai", "anthropic", "gemini"))
USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


def event(content: dict[str, Any], **style: Any) -> bytes:
    return f"data: {json.dumps(content, **style)}\n\n".encode()


def chunk(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "gpt-5-2025", "choices": [{"delta": {"content": text}}], **more}


def feed(reader: UsageReader, data: bytes, pieces: int = 1) -> bytes:
    cuts = sorted(random.Random(pieces).sample(range(1, len(data)), pieces - 1))
    bounds = [0, *cuts, len(data)]
    passed = b"".join(reader.feed(data[start:end]) for start, end in itertools.pairwise(bounds))
    return passed + reader.finish()


COMPACT = {"separators": (",", ":")}


@pytest.mark.parametrize("style", [{}, COMPACT])
@pytest.mark.parametrize("pieces", [1, 2, 7, 50])
def test_usage_that_nobody_asked_for_is_taken_out_of_a_stream(
    style: dict[str, Any], pieces: int
) -> None:
    texts = ["a", "usage", '"usage":null', '","usage":null,"', "\n\ndata: x\n\n", "ü"]
    plain = b"".join(event(chunk(text), **style) for text in texts) + b"data: [DONE]\n\n"
    asked = b"".join(event(chunk(text, usage=None), **style) for text in texts)
    asked += event({"model": "gpt-5-2025", "choices": [], "usage": USAGE}, **style)
    asked += b"data: [DONE]\n\n"
    reader = StreamUsageReader(OPENAI, take_out=True)
    assert feed(reader, asked, pieces) == plain
    assert reader.reading == Reading(Usage(100, 0, 0, 20), "gpt-5-2025")


def test_a_usage_of_null_is_taken_out_wherever_it_is() -> None:
    reader = StreamUsageReader(OPENAI, take_out=True)
    given = b'data: {"usage":null,"id":1}\n\ndata: {"a":2,"usage": null}\n\n'
    assert feed(reader, given) == b'data: {"id":1}\n\ndata: {"a":2}\n\n'


def test_usage_that_comes_with_text_stays() -> None:
    last = event(chunk("end", usage=USAGE))
    reader = StreamUsageReader(OPENAI, take_out=True)
    assert feed(reader, last) == last
    assert reader.reading.usage == Usage(100, 0, 0, 20)


@pytest.mark.parametrize("pieces", [1, 3, 40])
def test_a_stream_that_was_asked_for_usage_passes_as_it_is(pieces: int) -> None:
    data = event(chunk("a", usage=None)) + event({"choices": [], "usage": USAGE})
    reader = StreamUsageReader(OPENAI, take_out=False)
    assert feed(reader, data, pieces) == data
    assert reader.reading.usage == Usage(100, 0, 0, 20)


@pytest.mark.parametrize("pieces", [1, 3, 60])
def test_a_streamed_response_tells_its_usage_in_its_last_event(pieces: int) -> None:
    whole = {
        "model": "gpt-5",
        "service_tier": "flex",
        # of the agent's own making, and no usage at all
        "tools": [{"parameters": {"usage": {"input_tokens": 0, "output_tokens": 0}}}],
        "usage": {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120},
    }
    data = event({"type": "response.created", "response": whole | {"usage": None}})
    data += event({"type": "response.output_text.delta", "delta": "the usage"})
    data += event({"type": "response.completed", "response": whole})
    reader = StreamUsageReader(OPENAI, take_out=False)
    assert feed(reader, data, pieces) == data
    assert reader.reading == Reading(Usage(100, 0, 0, 20), "gpt-5", "flex")


def test_a_streamed_message_tells_its_usage_in_two_events() -> None:
    start = {"input_tokens": 60, "cache_read_input_tokens": 40, "output_tokens": 1}
    data = b"event: message_start\r\n" + event(
        {"type": "message_start", "message": {"model": "claude", "usage": start}}
    ).replace(b"\n\n", b"\r\n\r\n")
    reader = StreamUsageReader(ANTHROPIC, take_out=False)
    reader.feed(data)
    assert reader.reading.usage == Usage(100, 40, 0, 1)
    reader.feed(event({"type": "message_delta", "usage": {"output_tokens": 20}}))
    assert reader.reading == Reading(Usage(100, 40, 0, 20), "claude")


def test_gemini_brings_its_usage_up_to_date_as_events_or_in_one_array() -> None:
    messages = [
        {"modelVersion": "g", "usageMetadata": {"promptTokenCount": 100}},
        {"usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 20}},
    ]
    stream = StreamUsageReader(GEMINI, take_out=False)
    feed(stream, b"".join(map(event, messages)))
    array = UsageReader(GEMINI)
    feed(array, json.dumps(messages).encode())
    assert stream.reading == array.reading == Reading(Usage(100, 0, 0, 20), "g")


@pytest.mark.parametrize("pieces", [1, 2, 20])
def test_the_last_piece_of_an_answer_waits_for_the_end(pieces: int) -> None:
    data = json.dumps({"model": "gpt-5", "usage": USAGE}).encode()
    reader = UsageReader(OPENAI)
    assert feed(reader, data, pieces) == data
    reader = UsageReader(OPENAI)
    assert reader.feed(data) == b""
    assert reader.finish() == data
    assert reader.reading == Reading(Usage(100, 0, 0, 20), "gpt-5")


@pytest.mark.parametrize("data", [b"", b"not json", b"[1, 2]", b'{"usage": 3}', b"[" * 100_000])
def test_an_answer_without_usage_has_none(data: bytes) -> None:
    reader = UsageReader(OPENAI)
    assert reader.feed(data) + reader.finish() == data
    assert reader.reading == Reading()


def test_long_embeddings_tell_their_usage_at_their_end_in_little_memory() -> None:
    numbers = json.dumps([0.123456789] * 10_000).encode()[1:-1]
    reader = UsageReader(OPENAI, is_embedding=True)
    reader.feed(b'{"data": [{"embedding": [')
    for _ in range(2 * MAX_PARSED_BYTES // len(numbers)):
        reader.feed(numbers + b",")
        assert len(reader._kept) <= MAX_PARSED_BYTES
    reader.feed(b'1]}], "model": "small", "usage": {"prompt_tokens": 8, "total_tokens": 8}}')
    reader.finish()
    assert reader.reading == Reading(Usage(8), "small")


def test_other_long_answers_are_not_guessed_at() -> None:
    reader = UsageReader(OPENAI)
    reader.feed(b'{"text": "' + b"x" * (MAX_PARSED_BYTES + 1))
    reader.feed(b'", "tool": {"usage": {"prompt_tokens": 0}}}')
    reader.finish()
    assert reader.reading == Reading()


def test_events_end_at_an_empty_line_of_any_kind() -> None:
    data = b"data: 1\n\ndata: 2\r\n\r\ndata: 3\r\r: comment\n\nrest"
    whole = EventSplitter()
    assert whole.feed(data) == [
        b"data: 1\n\n",
        b"data: 2\r\n\r\n",
        b"data: 3\r\r",
        b": comment\n\n",
    ]
    assert whole.finish() == b"rest"
    by_byte = EventSplitter()
    events = [one for byte in data for one in by_byte.feed(bytes([byte]))]
    assert [event_data(one) for one in events] == [b"1", b"2", b"3", b""]


def test_what_is_no_stream_of_events_does_not_fill_the_memory() -> None:
    splitter = EventSplitter()
    splitter.feed(b"x" * MAX_EVENT_BYTES)
    assert len(splitter.feed(b"x")[0]) == MAX_EVENT_BYTES + 1
    assert splitter.finish() == b""
