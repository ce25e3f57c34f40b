"""What is written down of calls: whole lines, bounded, without secrets."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from pytest_mlebench.gateway import calls, transcripts
from pytest_mlebench.gateway.calls import Call, CallLog, read_calls, read_spending, shorten
from pytest_mlebench.gateway.spending import ModelSpending, Spending, Usage, total
from pytest_mlebench.gateway.transcripts import (
    KeptText,
    Transcript,
    TranscriptLog,
    read_transcripts,
)


def transcript(number: int, text: str = "hello") -> Transcript:
    return Transcript(number, "up", "m", "POST", "/x", 200, text, text, len(text), len(text))


def call(number: int) -> Call:
    return Call(number, "up", "POST", "/x", 200, model="m\n\u2028", usage=Usage(1), usd=0.5)


def test_calls_come_back_as_they_were_but_for_a_line_that_was_cut_off(tmp_path: Path) -> None:
    log = CallLog(tmp_path)
    log.write(call(1))
    log.write(call(2))
    log.close()
    with (tmp_path / "calls.jsonl").open("a") as file:
        file.write('{"time": 3, "upstr')
    assert list(read_calls(tmp_path)) == [call(1), call(2)]


def test_what_was_spent_can_be_told_from_the_calls(tmp_path: Path) -> None:
    log = CallLog(tmp_path)
    log.write(call(1))
    log.write(call(2))
    log.write(Call(3, "up", "POST", "/x", 429, refused="budget: used up"))
    log.write(Call(4, "up", "POST", "/x", None, model="n", error="fell silent", unmetered=True))
    log.write(Call(5, "up", "POST", "/x", 500, model="n", error="status 500"))
    log.close()
    spending = read_spending(tmp_path)
    assert (spending.calls, spending.errors, spending.unmetered) == (4, 2, 1)
    assert (spending.usd, spending.usage) == (1.0, Usage(2))
    assert spending.refused == {"budget": 1}
    assert spending.problems == {"fell silent": 1}


def test_no_calls_are_no_file(tmp_path: Path) -> None:
    assert list(read_calls(tmp_path)) == []
    assert list(read_transcripts(tmp_path)) == []


def test_calls_are_written_down_up_to_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "MAX_CALLS", 3)
    log = CallLog(tmp_path)
    for number in range(5):
        log.write(call(number))
    log.close()
    assert len(list(read_calls(tmp_path))) == 3


def test_calls_that_were_refused_do_not_push_others_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "MAX_CALLS", 3)
    monkeypatch.setattr(calls, "MAX_REFUSALS", 2)
    log = CallLog(tmp_path)
    for number in range(5):
        log.write(Call(number, "up", "POST", "/x", 401, refused="authentication: no"))
    for number in range(5):
        log.write(call(number))
    log.close()
    written = list(read_calls(tmp_path))
    assert [one.refused is None for one in written] == [False, False, True, True, True]


def test_names_of_the_agents_choice_are_cut() -> None:
    assert shorten("short") == "short"
    assert shorten("x" * 300) == "x" * 199 + "…"


def test_transcripts_come_back_as_they_were_but_for_one_that_was_cut_off(tmp_path: Path) -> None:
    log = TranscriptLog(tmp_path)
    for number in range(3):
        log.write(transcript(number, "ü\n" * number))
    path = tmp_path / transcripts.FILE
    whole = path.read_bytes()
    assert len(gzip.decompress(whole).splitlines()) == 3
    path.write_bytes(whole + gzip.compress(b'{"time": 4')[:15])
    assert list(read_transcripts(tmp_path)) == [transcript(n, "ü\n" * n) for n in range(3)]


@pytest.mark.parametrize(
    "content",
    [
        b"no gzip at all",
        gzip.compress(b"[1, 2]"),
        gzip.compress(b'{"time": "noon"}'),
        gzip.compress(bytes(64 << 20)),
    ],
    ids=["no gzip", "no object", "no time", "bomb"],
)
def test_a_file_of_somebody_elses_ends_where_it_makes_no_sense(
    tmp_path: Path, content: bytes
) -> None:
    log = TranscriptLog(tmp_path)
    log.write(transcript(1))
    with (tmp_path / transcripts.FILE).open("ab") as file:
        file.write(content)
    assert list(read_transcripts(tmp_path)) == [transcript(1)]


def test_transcripts_longer_than_a_read_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcripts, "_CHUNK", 7)
    log = TranscriptLog(tmp_path)
    for number in range(20):
        log.write(transcript(number))
    assert len(list(read_transcripts(tmp_path))) == 20


def test_transcripts_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcripts, "MAX_FILE_BYTES", 400)
    log = TranscriptLog(tmp_path)
    for number in range(10):
        log.write(transcript(number))
    assert (tmp_path / transcripts.FILE).stat().st_size <= 400
    assert 0 < log.dropped < 10
    assert len(list(read_transcripts(tmp_path))) == 10 - log.dropped


def test_a_long_text_is_cut_and_a_secret_in_it_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcripts, "MAX_TEXT_BYTES", 30)
    text = KeptText()
    text.add(b"my key is sk-secret, yes, sk-se")
    text.add(b"cret is it")
    assert text.size == 41
    assert text.text(["sk-secret"]) == "my key is ***, yes, "


def test_a_short_text_is_kept_to_its_end() -> None:
    text = KeptText()
    text.add(b"ends like a secret: sk-s\xff")
    assert text.text(["sk-secret"]) == "ends like a secret: sk-s\ufffd"


def test_spendings_of_several_attempts_add_up_by_model() -> None:
    one = ModelSpending("up", "m", calls=1, usage=Usage(10), usd=0.5, seconds=1)
    two = ModelSpending("up", "n", calls=2, unmetered=1, usage=Usage(1), usd=None)
    first = Spending(models=(one, two), refused={"budget": 1}, problems={"x": 1})
    second = Spending(models=(one,), refused={"budget": 2, "busy": 1})
    both = total([first, second])
    assert both.models == (ModelSpending("up", "m", 2, 0, 0, 2, Usage(20), 1.0), two)
    assert (both.usd, both.known_usd, both.unmetered) == (None, 1.0, 1)
    assert both.refused == {"budget": 3, "busy": 1}
    assert both.problems == {"x": 1}
    assert total([]).usd == 0
    assert json.loads(json.dumps(both.to_dict()))["known_usd"] == 1.0
