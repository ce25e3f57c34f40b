"""The agent's output reaches a log that is bounded and keeps no secret."""

from __future__ import annotations

from pathlib import Path

import pytest
from sandbox_job import Place

from pytest_mlebench.agent import Agent
from pytest_mlebench.host.usage import read_usage
from pytest_mlebench.sandbox.redact import Mask

SECRET = "sk-0123456789abcdef"


def masked(chunks: list[bytes], *secrets: str) -> bytes:
    mask = Mask(secrets)
    return b"".join(mask.feed(chunk) for chunk in chunks) + mask.finish()


@pytest.mark.parametrize("cut", range(1, 30))
def test_a_secret_is_masked_wherever_it_is_cut(cut: int) -> None:
    text = f"key={SECRET} end sk-01\n".encode()
    assert masked([text[:cut], text[cut:]], SECRET) == b"key=*** end sk-01\n"


def test_a_secret_is_masked_byte_by_byte() -> None:
    text = f"{SECRET}{SECRET}s{SECRET}".encode()
    assert masked([bytes([byte]) for byte in text], SECRET) == b"******s***"


def test_of_two_secrets_the_longer_is_masked_whole() -> None:
    assert masked([b"abcdef abcd"], "abcd", "abcdef") == b"*** ***"


def test_a_secret_that_begins_like_its_own_end() -> None:
    assert masked([b"aaab", b"a aa"], "aaba") == b"a*** aa"


def test_only_what_may_become_a_secret_is_held_back() -> None:
    mask = Mask([SECRET])
    assert mask.feed(b"password: ") == b"password: "
    assert mask.feed(b"task") == b"ta"
    assert mask.feed(b"s\n") == b"sks\n"


def test_without_secrets_nothing_is_touched() -> None:
    assert masked([b"a", b"b"]) == b"ab"


def test_an_agent_that_talks_without_end_goes_on(tmp_path: Path) -> None:
    done = Place(tmp_path).run(
        python="""
import os
print("first")
for _ in range(300): print("x" * 10_000)
print("last")
open(os.environ["SUBMISSION_DIR"] + "/submission.csv", "w").write("id")
""",
        log_bytes=100_000,
    )
    assert done.outcome.exit_code == 0
    assert done.submission == "id"
    assert done.job.log.stat().st_size < 100_100
    assert done.log.startswith("first\nx")
    assert done.log.endswith("x\nlast\n")
    dropped = done.outcome.details["log_dropped"]
    assert dropped > 2_900_000
    assert f"\n[mlebench: {dropped} bytes were dropped here]\n" in done.log


def test_secrets_appear_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOST_KEY", SECRET)
    program = """
key=$API_KEY
printf "begin %s" "${key%%456*}"; sleep 0.2; printf "456%s end" "${key##*456}"
echo "again $key" >&2
echo "key: $key" > $LOGS_DIR/debug.log
"""
    agent = Agent("a", command=("sh", "-c", program), env={"API_KEY": "${HOST_KEY}"})
    done = Place(tmp_path).run(agent)
    assert done.log == "begin *** endagain ***\n"
    assert (done.job.artefacts / "logs" / "debug.log").read_text() == "key: ***\n"
    for path in done.job.folder.rglob("*"):
        assert path.is_dir() or SECRET not in path.read_text()


def test_memory_and_cpu_time_are_sampled_while_it_runs(bounded_place: Place) -> None:
    busy = (
        "import time; kept = b'x' * 50_000_000\nwhile time.process_time() < 1: pass\ntime.sleep(2)"
    )
    finished = bounded_place.run(python=busy)
    used = read_usage(finished.job.stats)
    assert 50e6 < max(one.memory or 0 for one in used) < 200e6
    assert 0.5 < max(one.cpu_seconds or 0 for one in used) < 2
