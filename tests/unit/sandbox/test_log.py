"""The agent's output on disk: live, bounded, without secrets."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from pytest_mlebench.sandbox.log import LogWriter
from pytest_mlebench.sandbox.redact import Mask


def write(
    path: Path, *chunks: bytes, max_bytes: int = 10_000, secrets: tuple[str, ...] = ()
) -> LogWriter:
    with LogWriter(path, max_bytes=max_bytes, secrets=secrets) as log:
        for chunk in chunks:
            log.write(chunk)
    return log


def test_output_is_in_the_file_before_the_log_is_closed(tmp_path: Path) -> None:
    with LogWriter(tmp_path / "run.log", max_bytes=100) as log:
        log.write(b"epoch 1\n")
        assert (tmp_path / "run.log").read_bytes() == b"epoch 1\n"


def test_a_long_output_keeps_its_beginning_and_its_end(tmp_path: Path) -> None:
    log = write(tmp_path / "run.log", b"first\n", b"x" * 5000, b"\nlast", max_bytes=1000)
    text = (tmp_path / "run.log").read_bytes()
    assert text.startswith(b"first\n")
    assert text.endswith(b"\nlast")
    assert b"[mlebench: 4011 bytes were dropped here]" in text
    assert (log.bytes, log.dropped) == (5011, 4011)
    assert len(text) < 1100


def test_an_output_that_just_fits_is_kept_whole(tmp_path: Path) -> None:
    assert write(tmp_path / "run.log", b"x" * 1000, max_bytes=1000).dropped == 0
    assert (tmp_path / "run.log").read_bytes() == b"x" * 1000


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_secret_is_masked_wherever_the_stream_is_cut(tmp_path: Path, cut: int) -> None:
    text = b"key=sk-12345 end"
    write(tmp_path / "run.log", text[:cut], text[cut:], secrets=("sk-12345",))
    assert (tmp_path / "run.log").read_bytes() == b"key=*** end"


def test_the_longer_of_two_secrets_wins(tmp_path: Path) -> None:
    write(tmp_path / "run.log", b"abcd-efgh abcd", secrets=("abcd", "abcd-efgh"))
    assert (tmp_path / "run.log").read_bytes() == b"*** ***"


def test_what_only_begins_like_a_secret_comes_out_at_the_end(tmp_path: Path) -> None:
    write(tmp_path / "run.log", b"the key is sk-1", secrets=("sk-12345",))
    assert (tmp_path / "run.log").read_bytes() == b"the key is sk-1"


def test_memory_does_not_grow_with_the_output(tmp_path: Path) -> None:
    chunk = b"y" * 65536
    with LogWriter(tmp_path / "run.log", max_bytes=1 << 20, secrets=("sk-12345",)) as log:
        log.write(chunk)
        tracemalloc.start()
        for _ in range(1000):
            log.write(chunk)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 1 << 20


@pytest.mark.parametrize("cut", range(1, 18))
def test_a_mask_may_be_as_long_as_the_secret(cut: int) -> None:
    mask, text = Mask(["sk-secret"], keep_length=True), b"my sk-secret, yes"
    masked = mask.feed(text[:cut]) + mask.feed(text[cut:]) + mask.finish()
    assert masked == b"my *********, yes"
