"""A process killed with -9 at any point leaves the old state, and the next one finishes."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kaggle_server import KaggleServer
from store_files import PREPARE, MakeCompetition, tree, zipped

from pytest_mlebench.competition import Competition
from pytest_mlebench.store.store import Store

DRIVER = Path(__file__).parent / "driver.py"


class Driver:
    """A program that prepares on request, in processes that may be killed."""

    def __init__(self) -> None:
        command = [sys.executable, str(DRIVER)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        self.environment: dict[str, str] = {}

    def start(self, *task: Any) -> None:
        """Begin a task."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([self.environment, *task]) + "\n")
        self.process.stdin.flush()

    def told(self) -> dict[str, Any]:
        """Return the next thing that the program tells."""
        assert self.process.stdout is not None
        facts = json.loads(self.process.stdout.readline())
        assert isinstance(facts, dict)
        return facts

    def run(self, *task: Any) -> list[dict[str, Any]]:
        """Do a task and return everything that was told."""
        self.start(*task)
        facts = []
        while "end" not in (fact := self.told()):
            facts.append(fact)
        assert fact == {"end": 0}
        return facts

    def kill_when(self, path: Path, pattern: str, size: int = 0) -> None:
        """Kill the process that was started alone, once a file is there and as large as that."""
        pid = self.told()["pid"]
        deadline = time.monotonic() + 60
        while not any(found.stat().st_size >= size for found in path.glob(pattern)):
            assert time.monotonic() < deadline, f"{pattern} did not appear in {path}"
            time.sleep(0.005)
        os.kill(pid, signal.SIGKILL)
        assert self.told() == {"end": -signal.SIGKILL}


@pytest.fixture(scope="module")
def warm_driver() -> Iterator[Driver]:
    started = Driver()
    yield started
    started.process.kill()
    started.process.communicate()


@pytest.fixture
def driver(warm_driver: Driver, kaggle: KaggleServer) -> Driver:
    """Return the program, with the way to this test's Kaggle."""
    warm_driver.environment = kaggle.environment
    return warm_driver


@pytest.fixture
def competition(
    kaggle: KaggleServer, tmp_path: Path, make_competition: MakeCompetition
) -> Competition:
    made = make_competition(source="kaggle")
    kaggle.add("tiny", zipped(made, tmp_path))
    return made


def test_killed_at_every_change_of_a_first_preparation(
    driver: Driver, competition: Competition, tmp_path: Path
) -> None:
    undisturbed = Store(tmp_path / "undisturbed")
    undisturbed.ensure(competition)
    facts = driver.run("kill", str(competition.folder), str(tmp_path / "store"), 3)
    assert facts.pop()["status"] == 0
    assert len(facts) > 20
    for fact in facts:
        assert fact["status"] == -signal.SIGKILL, fact
        assert fact["again"] == 0, fact
        assert tree(Path(fact["store"])) == tree(undisturbed.root), fact
        assert not list(Path(fact["store"], "tiny").glob(".tmp-*")), fact
    places = " ".join(fact["where"] for fact in facts)
    for phase in ("tiny.zip.part", "/raw/images", "/prepared/", "os.rename"):
        assert phase in places


def test_killed_at_every_change_of_a_replacement_one_dataset_is_always_whole(
    driver: Driver, tmp_path: Path, make_competition: MakeCompetition
) -> None:
    Store(tmp_path / "store").ensure(make_competition())
    changed = make_competition(prepare=PREPARE.replace("range(20)", "range(30)"))
    undisturbed = Store(tmp_path / "undisturbed")
    undisturbed.ensure(changed)
    facts = driver.run("kill", str(changed.folder), str(tmp_path / "store"), 2)
    assert facts.pop()["status"] == 0
    assert len(facts) > 15
    for fact in facts:
        assert fact["whole"], fact
        assert fact["again"] == 0, fact
        assert tree(Path(fact["store"])) == tree(undisturbed.root), fact


def test_a_replacement_half_done_is_undone(
    tmp_path: Path, make_competition: MakeCompetition, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Where names cannot be exchanged it takes two steps: this is the state between them.
    monkeypatch.setattr("pytest_mlebench.store.store.exchange", lambda *_: False)
    store = Store(tmp_path / "store")
    competition = make_competition()
    prepared = store.ensure(competition).public.parent
    before = tree(prepared)
    scratch = prepared.parent / ".tmp-dead"
    scratch.mkdir()
    prepared.rename(scratch / ".old-prepared")
    assert store.find(competition) is None
    said: list[str] = []
    store.ensure(competition, progress=said.append)
    assert said == []  # nothing was made anew
    assert tree(prepared) == before
    assert not scratch.exists()
    changed = make_competition(prepare=PREPARE.replace("range(20)", "range(30)"))
    assert store.ensure(changed).answers.read_text().count("\n") == 16


def test_killed_in_the_middle_of_a_download(
    driver: Driver, competition: Competition, kaggle: KaggleServer, tmp_path: Path
) -> None:
    with zipfile.ZipFile(io.BytesIO(kaggle.blobs["tiny"].data), "a") as archive:
        archive.writestr("notes.bin", os.urandom(500_000))
        file = archive.fp
        assert isinstance(file, io.BytesIO)
    data = file.getvalue()
    kaggle.add("tiny", data)
    kaggle.rate = 500_000
    driver.start("alone", str(competition.folder), str(tmp_path / "store"), False)
    driver.kill_when(tmp_path / "store/tiny", "tiny.zip.part", 100_000)
    had = (tmp_path / "store/tiny/tiny.zip.part").stat().st_size
    assert 0 < had < len(data)
    kaggle.rate = None
    kaggle.asked.clear()
    Store(tmp_path / "store").ensure(competition)
    (asked,) = (asked for asked in kaggle.asked if asked.what == "blob")
    assert asked.headers["Range"] == f"bytes={had}-"
    Store(tmp_path / "undisturbed").ensure(competition)
    assert tree(tmp_path / "store") == tree(tmp_path / "undisturbed")


@pytest.mark.usefixtures("competition")
def test_killed_in_the_middle_of_a_preparation(
    driver: Driver, tmp_path: Path, make_competition: MakeCompetition
) -> None:
    slow = PREPARE.replace(
        '    (public / "images").mkdir()',
        '    import time; time.sleep(60)\n    (public / "images")',
    )
    folder = make_competition(source="kaggle", prepare=slow).folder
    driver.start("alone", str(folder), str(tmp_path / "store"), False)
    driver.kill_when(tmp_path / "store/tiny", ".tmp-*/prepared/.public.*/sample_submission.csv", 1)
    competition = make_competition(source="kaggle")
    assert Store(tmp_path / "store").find(competition) is None
    Store(tmp_path / "store").ensure(competition)
    Store(tmp_path / "undisturbed").ensure(competition)
    assert tree(tmp_path / "store") == tree(tmp_path / "undisturbed")


def test_a_child_that_prepares_dies_with_its_parent(
    driver: Driver, tmp_path: Path, make_competition: MakeCompetition
) -> None:
    slow = PREPARE.replace(
        "    header, *rows",
        f"    import time; Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid()))\n"
        "    time.sleep(60)\n    header, *rows",
    )
    folder = make_competition(prepare=slow).folder
    driver.start("alone", str(folder), str(tmp_path / "store"), True)
    driver.kill_when(tmp_path, "pid", 1)
    child = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 20
    while Path(f"/proc/{child}").exists() and time.monotonic() < deadline:
        if Path(f"/proc/{child}/stat").read_text().split()[2] == "Z":
            break
        time.sleep(0.02)
    else:
        assert not Path(f"/proc/{child}").exists()


def test_eight_processes_prepare_one_competition_once(
    driver: Driver, competition: Competition, kaggle: KaggleServer, tmp_path: Path
) -> None:
    kaggle.rate = len(kaggle.blobs["tiny"].data)  # so that all are there while one is at work
    facts = driver.run("together", 8, [str(competition.folder)], str(tmp_path / "store"))
    assert [fact["status"] for fact in facts] == [0] * 8
    assert kaggle.count("blob") == 1
    made = [fact for fact in facts if "tiny: prepared" in fact["said"]]
    waited = [fact for fact in facts if any("is preparing it, waiting" in s for s in fact["said"])]
    assert len(made) == 1
    assert len(waited) == 7
    assert set(tree(tmp_path / "store")) == {
        f"tiny/{name}" for name in ("prepared/" + n for n in tree(tmp_path / "store/tiny/prepared"))
    } | {"tiny/.lock"}


def test_eight_processes_prepare_four_competitions_once_each(
    driver: Driver, kaggle: KaggleServer, tmp_path: Path, make_competition: MakeCompetition
) -> None:
    folders = []
    for name in ("one", "two", "three", "four"):
        made = make_competition(name, source="kaggle")
        kaggle.add(name, zipped(made, tmp_path))
        folders.append(str(made.folder))
    kaggle.rate = 5000
    facts = driver.run("together", 8, folders, str(tmp_path / "store"))
    assert [fact["status"] for fact in facts] == [0] * 8
    blobs = sorted(asked.competition for asked in kaggle.asked if asked.what == "blob")
    assert blobs == ["four", "one", "three", "two"]
