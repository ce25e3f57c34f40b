"""Calls that are forms, such as transcriptions of sound, are held to the models allowed."""

from __future__ import annotations

from collections.abc import Callable

import openai
import pytest
from gateway_attempt import GatewayAttempt, status_of

from pytest_mlebench.gateway.form_body import MAX_FIELD_BYTES, form_fields
from pytest_mlebench.gateway.refusal import CallRefusal

Make = Callable[..., GatewayAttempt]
TYPE = "multipart/form-data; boundary=xyz"


def part(name: str, value: bytes = b"v", more: str = "") -> bytes:
    head = f'--xyz\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n'
    return head.encode() + value + b"\r\n"


def form(*parts: bytes) -> bytes:
    return b"".join(parts) + b"--xyz--\r\n"


def refusal(body: bytes, content_type: str = TYPE) -> str:
    with pytest.raises(CallRefusal) as error:
        form_fields(content_type, body)
    assert error.value.kind == "bad_request"
    return str(error.value).removeprefix("the body is not understood: ")


def test_short_fields_are_read_and_files_are_not() -> None:
    sound = part("file", b"--xy\r\nname=model" * 100_000, '; filename="a.wav"')
    found = form_fields(TYPE, form(part("model", b"whisper-1"), sound, part("n", b"3")))
    assert found == {"model": "whisper-1", "n": 3}
    long = form_fields(TYPE, form(part("prompt", b"x" * 100_000), part("model", b"m")))
    assert len(str(long["prompt"])) == MAX_FIELD_BYTES + 1
    assert long["model"] == "m"
    assert form_fields(TYPE, form(part("image[]", b"1"), part("image[]", b"2"))) is not None


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (form(part("model", b"a"), part("model", b"b")), "it has the field 'model' twice"),
        (form(part("model", b"a", '; filename="m"')), "its model is a file"),
        (form(part("model", b"a", '; name="other"')), "a field does not say once what its name is"),
        (
            form(part("m", b"a", "; name*=utf-8''model")),
            "a field does not say once what its name is",
        ),
        (part("model", b"a"), "it has no end"),
        (b"preamble\r\n" + form(part("model", b"a")), "it does not begin with its boundary"),
        (b"--xyz\r\nnon sense: x\r\n\r\n", "it is not a valid form"),
        (form(*(part(f"f{n}") for n in range(201))), "it has more than 200 fields"),
        (form(part("x" * 5_000)), "it is not a valid form"),
    ],
)
def test_a_form_that_can_be_read_in_two_ways_is_refused(body: bytes, reason: str) -> None:
    assert refusal(body) == reason


def test_a_form_has_one_boundary() -> None:
    body = form(part("model"))
    once = "it does not say once what its boundary is"
    assert refusal(body, "multipart/form-data") == once
    assert refusal(body, "multipart/form-data; boundary=xyz; boundary=abc") == once


def test_sound_is_transcribed_by_models_that_are_allowed(open_gateway: Make) -> None:
    attempt = open_gateway(allow=("whisper*",))
    with attempt.openai() as client:
        client.audio.transcriptions.create(model="whisper-1", file=("a.wav", b"RIFF"))
        with pytest.raises(openai.PermissionDeniedError, match=r"gpt-4o-transcribe.* not allowed"):
            client.audio.transcriptions.create(model="gpt-4o-transcribe", file=("a.wav", b"RIFF"))
    (seen,) = attempt.server.seen
    assert b"RIFF" in seen.body
    twice = attempt.request("/openai/v1/audio/transcriptions", b"{}", "Content-Type: text/plain")
    assert status_of(twice) == 400
    assert len(attempt.server.seen) == 1
