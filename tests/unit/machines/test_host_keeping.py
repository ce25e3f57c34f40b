"""What workers of one machine do with each other's attempts: nothing, as long as they are used."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from filelock import FileLock

from pytest_mlebench.layout import RunFolder
from pytest_mlebench.machines.host_keeping import HostKeeping
from pytest_mlebench.machines.link import AttemptUnwanted, LinkRefused

NAME = "demo/seed0/attempt1"
POSTING = {"machine": "h1", "job": None, "run": "/controller/r", "grace": 60.0, "session_usd": None}


class Controller:
    """A link whose other end takes everything in, and knows of nothing."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.problem: Exception | None = None

    def ask(self, question: str, **_data: Any) -> Any:
        self.asked.append(question)
        if question == "place" and self.problem is not None:
            raise self.problem
        return []


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "r")


@pytest.fixture
def controller() -> Controller:
    return Controller()


@pytest.fixture
def worker(run: RunFolder, controller: Controller) -> HostKeeping:
    posting = SimpleNamespace(
        machine="h1", job=None, run="/controller/r", grace=60.0, session_usd=None
    )
    return HostKeeping(controller, run, posting, shared=False)  # type: ignore[arg-type]  # as much of them as is used


def write_attempt(run: RunFolder, phase: str, **more: Any) -> Path:
    folder = run.path / NAME
    folder.mkdir(parents=True)
    item = {"competition": "demo", "seed": 0, "test": "suite"}
    (folder / "record.json").write_text(json.dumps({"phase": phase, "item": item, **more}))
    return folder


@pytest.mark.parametrize("phase", ["created", "collected"])
def test_an_attempt_that_another_worker_has_is_left_alone(
    run: RunFolder, controller: Controller, worker: HostKeeping, phase: str
) -> None:
    folder = write_attempt(run, phase)
    with FileLock(folder.parent / ".busy"):  # as another worker's process holds it
        worker.tidy()
        assert [each["kept"] for each in worker.left()] == [True]
        worker.drop([])
    assert (folder / "record.json").is_file()
    assert controller.asked == []
    worker.tidy()
    assert controller.asked == ["piece", "place"]
    assert not run.path.exists()


def test_a_worker_is_done_with_its_attempts_when_it_tidies(
    run: RunFolder, controller: Controller, worker: HostKeeping
) -> None:
    folder = write_attempt(run, "collected")
    worker.prepare(next(iter(run.seeds())))
    assert [each["kept"] for each in worker.left()] == [True]
    worker.tidy()
    assert controller.asked == ["known", "piece", "place"]
    assert not folder.exists()
    assert not run.path.exists()


def test_what_the_controller_cannot_take_in_stays_and_comes_later(
    run: RunFolder, controller: Controller, worker: HostKeeping
) -> None:
    folder = write_attempt(run, "graded")
    controller.problem = LinkRefused("place: no space left on device")
    with pytest.raises(LinkRefused):
        worker.tidy()
    assert (folder / "record.json").is_file()
    controller.problem = None
    worker.tidy()
    assert not run.path.exists()


def test_what_the_controller_does_not_want_any_more_is_removed(
    run: RunFolder, controller: Controller, worker: HostKeeping
) -> None:
    write_attempt(run, "graded")
    controller.problem = AttemptUnwanted("it does not belong to h1 any more")
    worker.tidy()
    assert not run.path.exists()


@pytest.mark.parametrize("job", ["7", "8"])
def test_what_another_allocation_may_come_back_for_stays(
    run: RunFolder, controller: Controller, job: str
) -> None:
    posting = SimpleNamespace(**POSTING | {"job": "8"})
    worker = HostKeeping(controller, run, posting, shared=False)  # type: ignore[arg-type]  # as much of them as is used
    folder = write_attempt(run, "graded", conditions={"machine": "h1", "job": job})
    assert [each["place"] for each in worker.left()] == [f"h1#{job}"]
    with FileLock(folder.parent / ".busy"):  # as a worker has it that works on it
        assert len(worker.left()) == (job == "8")
    controller.problem = AttemptUnwanted("it does not belong to h1#8")
    worker.tidy()
    assert folder.exists() == (job == "7")


def test_a_seed_that_another_worker_has_just_begun_with_stays(
    run: RunFolder, worker: HostKeeping
) -> None:
    seed = run.path / "demo/seed0"
    seed.mkdir(parents=True)
    with FileLock(seed / ".busy"):
        worker.tidy()
        assert seed.is_dir()
    worker.tidy()
    assert not run.path.exists()


def test_workers_make_and_remove_folders_at_the_same_time(
    run: RunFolder, controller: Controller, worker: HostKeeping
) -> None:
    posting = SimpleNamespace(
        machine="h1", job=None, run="/controller/r", grace=60.0, session_usd=None
    )
    code = textwrap.dedent(f"""
        import sys
        from pathlib import Path
        from types import SimpleNamespace
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from test_host_keeping import Controller
        from pytest_mlebench.layout import RunFolder
        from pytest_mlebench.machines.host_keeping import HostKeeping
        posting = SimpleNamespace(**{vars(posting)!r})
        run = RunFolder(Path({str(run.path)!r}))
        worker = HostKeeping(Controller(), run, posting, shared=False)
        print("ready", flush=True)
        sys.stdin.readline()
        for _ in range(200):
            worker.prepare(run.seed("demo", int(sys.argv[1])))
            (run.path / "demo" / f"seed{{sys.argv[1]}}" / "attempt1").mkdir()
            (run.path / "demo" / f"seed{{sys.argv[1]}}" / "attempt1").rmdir()
            worker.tidy()
    """)
    others = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    for each in others:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    for each in others:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    assert [each.communicate(timeout=240)[1] for each in others] == ["", "", ""]
    worker.tidy()
    assert not run.path.exists()


def test_what_was_killed_while_it_was_made_or_removed_is_removed(
    run: RunFolder, worker: HostKeeping
) -> None:
    deep = run.path / NAME / "home"
    deep.mkdir(parents=True)
    deep.chmod(0)
    assert worker.left() == []
    worker.drop([])
    assert not run.path.exists()
