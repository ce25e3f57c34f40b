"""Files that come from a host: whole or not at all, and nowhere but in their attempt's folder."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

import pytest

from pytest_mlebench.errors import InfrastructureError
from pytest_mlebench.layout import RunFolder
from pytest_mlebench.machines import delivery
from pytest_mlebench.machines.delivery import (
    PIECE_BYTES,
    Incoming,
    delivered_files,
    send_attempt,
    send_tails,
)
from pytest_mlebench.machines.link import ANSWER, Reply

NAME = "demo/seed0/attempt1"


class Wire:
    """A link whose other end is in this process."""

    def __init__(self, incoming: Incoming) -> None:
        self.incoming = incoming
        self.asked: list[str] = []

    def ask(self, question: str, **data: Any) -> Any:
        return self.post(question, **data).wait()

    def post(self, question: str, **data: Any) -> Reply:
        self.asked.append(question)
        if question in ("copy", "copied"):
            answer: Any = self.copy(question, **data)
        else:
            answer = getattr(self.incoming, question)(NAME, **data)
        reply = Reply()
        reply.come.put((ANSWER, answer))
        return reply

    def copy(self, question: str, file: str, path: str = "") -> str:
        if question == "copy":
            self.copying = Path(path)
            return "copying"
        shutil.copy(self.copying, self.incoming.part(NAME, file))
        return "copied"


@pytest.fixture
def home(tmp_path: Path) -> RunFolder:
    (tmp_path / "home" / NAME).mkdir(parents=True)
    return RunFolder(tmp_path / "home")


@pytest.fixture
def attempt(tmp_path: Path) -> Path:
    folder = tmp_path / "there"
    (folder / "artefacts").mkdir(parents=True)
    (folder / "home").mkdir()
    (folder / "home" / "work").write_text("workspace")
    (folder / "run.log").write_text("one\n")
    (folder / "empty").write_text("")
    (folder / "artefacts" / "model.bin").write_bytes(b"x" * (PIECE_BYTES + 7))
    (folder / "artefacts" / "link").symlink_to("/etc/passwd")
    (folder / ".beat").write_text("")
    (folder / "record.json").write_text("{}")
    return folder


def test_all_files_of_an_attempt_arrive_and_the_record_last(home: RunFolder, attempt: Path) -> None:
    (home.path / NAME / "run.log").write_text("on")
    send_attempt(Wire(Incoming(home)), attempt, b'{"phase": "graded"}')
    target = home.path / NAME
    found = sorted(str(p.relative_to(target)) for p in target.rglob("*") if p.is_file())
    assert found == ["artefacts/model.bin", "empty", "record.json", "run.log"]
    assert (target / "run.log").read_text() == "one\n"
    assert (target / "record.json").read_text() == '{"phase": "graded"}'
    assert not (home.path / ".incoming").exists()


def test_several_pieces_are_on_their_way_at_the_same_time_but_not_all(
    home: RunFolder, attempt: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "PIECE_BYTES", 1000)
    most, waiting = 0, 0

    class Slow(Wire):
        """Answers that are there when they are waited for, not before."""

        def post(self, question: str, **data: Any) -> Reply:
            nonlocal most, waiting
            waiting += 1
            most = max(most, waiting)
            reply = super().post(question, **data)
            wait = reply.wait

            def and_count() -> Any:
                nonlocal waiting
                waiting -= 1
                return wait()

            reply.wait = and_count  # type: ignore[method-assign]  # of this one
            return reply

    send_attempt(Slow(Incoming(home)), attempt, b"{}")
    assert (most, waiting) == (delivery.WINDOW, 0)
    whole = (attempt / "artefacts/model.bin").read_bytes()
    assert (home.path / NAME / "artefacts/model.bin").read_bytes() == whole


def test_a_large_file_is_copied_as_a_whole_and_compared_all_the_same(
    home: RunFolder, attempt: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "COPY_BYTES", PIECE_BYTES)
    wire = Wire(Incoming(home))
    send_attempt(wire, attempt, b"{}")
    assert [each for each in wire.asked if each.startswith("cop")] == ["copy", "copied"]
    whole = (attempt / "artefacts/model.bin").read_bytes()
    assert (home.path / NAME / "artefacts/model.bin").read_bytes() == whole


def test_a_large_file_that_cannot_be_copied_comes_in_pieces(
    home: RunFolder, attempt: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "COPY_BYTES", PIECE_BYTES)
    wire = Wire(Incoming(home))
    monkeypatch.setattr(wire, "copy", lambda *_, **__: "impossible")
    send_attempt(wire, attempt, b"{}")
    assert (home.path / NAME / "artefacts/model.bin").stat().st_size == PIECE_BYTES + 7


def test_a_file_that_arrives_damaged_comes_again(
    home: RunFolder, attempt: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "COPY_BYTES", PIECE_BYTES)
    wire = Wire(Incoming(home))
    (attempt / "other").write_bytes(b"y" * PIECE_BYTES)  # copied in the place of the right one
    copy = wire.copy
    monkeypatch.setattr(
        wire, "copy", lambda question, **data: copy(question, **data | {"path": f"{attempt}/other"})
    )
    send_attempt(wire, attempt, b"{}")
    assert wire.asked.count("place") == 2
    assert (home.path / NAME / "artefacts/model.bin").read_bytes() == b"x" * (PIECE_BYTES + 7)


def test_a_file_that_always_arrives_damaged_is_an_error_and_stays_where_it_is(
    home: RunFolder, attempt: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    incoming = Incoming(home)
    monkeypatch.setattr(incoming, "place", lambda _name, manifest: ["run.log"])
    with pytest.raises(InfrastructureError, match=r"run\.log of .* arrived damaged 3 times"):
        send_attempt(Wire(incoming), attempt, b"{}")
    assert (attempt / "run.log").is_file()


def test_links_workspaces_and_hidden_files_stay_where_they_are(attempt: Path) -> None:
    names = {path.name for path in delivered_files(attempt)}
    assert names == {"run.log", "empty", "model.bin"}


def test_damaged_files_are_not_put_into_place(home: RunFolder) -> None:
    incoming = Incoming(home)
    incoming.piece(NAME, "submission.csv", 0, b"damaged")
    digest = hashlib.sha256(b"whole").hexdigest()
    assert incoming.place(NAME, {"submission.csv": digest}) == ["submission.csv"]
    assert not (home.path / NAME / "submission.csv").exists()


@pytest.mark.parametrize("name", ["../x/seed0/attempt1", "demo/seed0", "demo/seed0/attempt1/x", ""])
def test_a_host_cannot_name_another_folder(home: RunFolder, name: str) -> None:
    with pytest.raises(InfrastructureError, match="not an attempt"):
        Incoming(home).piece(name, "file", 0, b"")


@pytest.mark.parametrize("file", ["../record.json", "/etc/passwd", "a/../../b", "", "a//b", "a/."])
def test_a_host_cannot_write_outside_of_an_attempt(home: RunFolder, file: str) -> None:
    with pytest.raises(InfrastructureError, match="not a file of an attempt"):
        Incoming(home).piece(NAME, file, 0, b"")
    with pytest.raises(InfrastructureError, match="not a file of an attempt"):
        Incoming(home).tail(NAME, file, 0, b"")


def test_a_growing_file_comes_as_it_grows(home: RunFolder, attempt: Path) -> None:
    wire, sent = Wire(Incoming(home)), dict[str, int]()
    send_tails(wire, attempt, sent)
    with (attempt / "run.log").open("a") as log:
        log.write("two\n")
    send_tails(wire, attempt, sent)
    send_tails(wire, attempt, sent)
    assert (home.path / NAME / "run.log").read_text() == "one\ntwo\n"
    assert wire.asked == ["tail", "tail"]
