"""One at a time, among threads, processes and hosts, and no dead holder blocks for ever."""

from __future__ import annotations

import errno
import json
import threading
import time
from pathlib import Path

import pytest

from pytest_mlebench.store import lock
from pytest_mlebench.store.lock import Busy, exclusive


def lease(folder: Path, *, beat: int = 0, machine: str = "elsewhere") -> None:
    """Leave the lease of some other process."""
    facts = {"host": "far", "machine": machine, "pid": 42, "turn": "t", "beat": beat}
    (folder / ".lease").write_text(json.dumps(facts))


def silent(text: str) -> None:
    del text


def test_a_turn_leaves_nothing_but_the_lock_file(tmp_path: Path) -> None:
    with exclusive(tmp_path, "it", silent):
        assert (tmp_path / ".lease").is_file()
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def contend(folder: Path, **options: float) -> list[str]:
    """Let four threads take turns and return what they saw."""
    seen: list[str] = []

    def work(name: str) -> None:
        with exclusive(folder, "it", silent, **options):  # type: ignore[arg-type]
            seen.append(f"in {name}")
            time.sleep(0.05)
            seen.append(f"out {name}")

    threads = [threading.Thread(target=work, args=(str(n),)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return seen


def in_turns(seen: list[str]) -> bool:
    return len(seen) == 8 and all(
        seen[i].replace("in", "out") == seen[i + 1] for i in range(0, 8, 2)
    )


def test_threads_take_turns(tmp_path: Path) -> None:
    assert in_turns(contend(tmp_path))


@pytest.mark.parametrize("problem", [OSError(errno.ENOLCK, "no locks"), NotImplementedError()])
def test_without_file_locks_the_lease_alone_keeps_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise problem

    monkeypatch.setattr(lock.FileLock, "acquire", refuse)
    assert in_turns(contend(tmp_path, stale=20.0))


def test_without_links_the_lease_still_keeps_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "no links")

    monkeypatch.setattr(lock.os, "link", refuse)
    assert in_turns(contend(tmp_path))


def test_the_lease_of_a_dead_process_of_this_machine_is_taken_over_at_once(
    tmp_path: Path,
) -> None:
    lease(tmp_path, machine=lock._machine())
    began = time.monotonic()
    with exclusive(tmp_path, "it", silent):
        assert time.monotonic() - began < 5


def test_the_lease_of_a_dead_host_is_taken_over_after_a_while(tmp_path: Path) -> None:
    lease(tmp_path)
    said: list[str] = []
    began = time.monotonic()
    with exclusive(tmp_path, "it", said.append, stale=0.5):
        assert time.monotonic() - began >= 0.5
    assert said == ["it: process 42 on far is preparing it, waiting"]


def test_a_broken_lease_is_taken_over_after_a_while(tmp_path: Path) -> None:
    (tmp_path / ".lease").write_text("half a l")
    said: list[str] = []
    with exclusive(tmp_path, "it", said.append, stale=0.3):
        assert said == ["it: another process is preparing it, waiting"]


def test_the_lease_of_a_living_host_is_waited_for(tmp_path: Path) -> None:
    stop = threading.Event()

    def live() -> None:
        beat = 0
        while not stop.wait(0.1):
            beat += 1
            lease(tmp_path, beat=beat)
        (tmp_path / ".lease").unlink()

    lease(tmp_path)
    thread = threading.Thread(target=live)
    thread.start()
    threading.Timer(1.5, stop.set).start()
    began = time.monotonic()
    with exclusive(tmp_path, "it", silent, stale=0.8):
        assert time.monotonic() - began >= 1.5
    thread.join()


def test_a_holder_renews_its_lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "RENEW_SECONDS", 0.02)
    with exclusive(tmp_path, "it", silent):
        deadline = time.monotonic() + 10
        while json.loads((tmp_path / ".lease").read_text())["beat"] < 3:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert not (tmp_path / ".lease").exists()


def test_a_long_wait_is_told_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "REMIND_SECONDS", 1.0)
    lease(tmp_path)
    said: list[str] = []
    with exclusive(tmp_path, "it", said.append, stale=2.5):
        pass
    assert said[0] == "it: process 42 on far is preparing it, waiting"
    assert said[1].startswith("it: process 42 on far is preparing it, waiting for ")


def test_who_does_not_want_to_wait_is_told(tmp_path: Path) -> None:
    with (
        exclusive(tmp_path, "it", silent),
        pytest.raises(Busy),
        exclusive(tmp_path, "it", silent, wait=False),
    ):
        pass
    lease(tmp_path)
    with pytest.raises(Busy), exclusive(tmp_path, "it", silent, wait=False):
        pass
    assert (tmp_path / ".lease").is_file()  # not ours to remove
