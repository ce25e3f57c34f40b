"""What an agent leaves behind is collected without trusting any of it."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_mlebench.errors import SandboxError
from pytest_mlebench.limits import Limits
from pytest_mlebench.sandbox.collect import NO_SUBMISSION, Collected, collect, remove_tree
from pytest_mlebench.sandbox.process.kernel import drop_capabilities

LIMITS = replace(Limits(), submission_bytes=1000, artefact_bytes=5000, artefact_files=10)


class Attempt:
    """An attempt's folder with a workspace in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        for name in ("submission", "logs", "code"):
            (self.home / name).mkdir(parents=True)
        self.handed_in = self.home / "submission" / "submission.csv"
        self.answers = folder / "answers.csv"
        self.answers.write_text("id,label\n1,canary\n")

    def collect(self, limits: Limits = LIMITS, secrets: Iterable[str] = ()) -> Collected:
        return collect(
            self.home,
            limits,
            submission=self.folder / "submission.csv",
            artefacts=self.folder / "artefacts",
            secrets=secrets,
        )

    @property
    def submission(self) -> Path:
        return self.folder / "submission.csv"

    def names(self) -> list[str]:
        artefacts = self.folder / "artefacts"
        return sorted(
            str(path.relative_to(artefacts)) for path in artefacts.rglob("*") if path.is_file()
        )


@pytest.fixture
def attempt(tmp_path: Path) -> Attempt:
    return Attempt(tmp_path / "attempt")


def without_privileges(function: Callable[[], object]) -> None:
    """Run *function* in a child to which permissions apply, even if we are root."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            drop_capabilities()
            function()
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert status == 0


def test_a_submission_and_its_artefacts_are_copied(attempt: Attempt) -> None:
    attempt.handed_in.write_text("id,label\n1,2\n")
    (attempt.home / "logs" / "train.log").write_text("epoch 1")
    (attempt.home / "code" / "deep").mkdir()
    (attempt.home / "code" / "deep" / "model.py").write_text("fit()")
    collected = attempt.collect()
    assert collected == Collected(problem=None, notes=[], files=2, bytes=12)
    assert attempt.submission.read_text() == "id,label\n1,2\n"
    assert attempt.names() == ["code/deep/model.py", "logs/train.log"]
    assert attempt.handed_in.exists(), "collecting copies, it does not move"


def test_no_submission_is_said(attempt: Attempt) -> None:
    assert attempt.collect().problem == NO_SUBMISSION
    assert not attempt.submission.exists()


def _symlink(attempt: Attempt) -> None:
    attempt.handed_in.symlink_to(attempt.answers)


def _hard_link(attempt: Attempt) -> None:
    attempt.handed_in.hardlink_to(attempt.answers)


def _folder(attempt: Attempt) -> None:
    attempt.handed_in.mkdir()


def _pipe(attempt: Attempt) -> None:
    os.mkfifo(attempt.handed_in)


def _socket(attempt: Attempt) -> None:
    here = Path.cwd()
    os.chdir(attempt.handed_in.parent)  # a socket's path may not be long
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("submission.csv")
    finally:
        os.chdir(here)


def _sparse(attempt: Attempt) -> None:
    with attempt.handed_in.open("wb") as file:
        file.truncate(400 * 10**9)


def _linked_folder(attempt: Attempt) -> None:
    attempt.handed_in.parent.rmdir()
    secret = attempt.folder / "secret"
    secret.mkdir()
    (secret / "submission.csv").write_text("canary")
    attempt.handed_in.parent.symlink_to(secret)


def _file_for_folder(attempt: Attempt) -> None:
    attempt.handed_in.parent.rmdir()
    attempt.handed_in.parent.write_text("canary")


def _no_folder(attempt: Attempt) -> None:
    attempt.handed_in.parent.rmdir()


def _linked_home(attempt: Attempt) -> None:
    elsewhere = attempt.folder / "elsewhere"
    attempt.home.rename(elsewhere)
    attempt.home.symlink_to(elsewhere)


@pytest.mark.parametrize(
    ("trick", "problem"),
    [
        (_symlink, "submission.csv is a symbolic link, not a regular file"),
        (_hard_link, "submission.csv is a hard link: the same file has 2 names"),
        (_folder, "submission.csv is a folder, not a regular file"),
        (_pipe, "submission.csv is a named pipe, not a regular file"),
        (_socket, "submission.csv is a socket, not a regular file"),
        (_sparse, "submission.csv is too large: 400GB, allowed are 1kB"),
        (_linked_folder, "the submission folder is a symbolic link, not a folder"),
        (_file_for_folder, "the submission folder is a regular file, not a folder"),
        (_no_folder, NO_SUBMISSION),
        (_linked_home, "the workspace is a symbolic link, not a folder"),
    ],
)
def test_a_trick_gets_one_sentence(
    attempt: Attempt, trick: Callable[[Attempt], None], problem: str
) -> None:
    trick(attempt)
    assert attempt.collect().problem == problem
    assert not attempt.submission.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes device files")
def test_a_device_is_not_read(attempt: Attempt) -> None:
    os.mknod(attempt.handed_in, 0o20666, os.makedev(1, 5))  # /dev/zero has no end
    assert attempt.collect().problem == "submission.csv is a device, not a regular file"


def test_a_submission_without_permission_is_said(attempt: Attempt) -> None:
    attempt.handed_in.write_text("id\n")
    attempt.handed_in.chmod(0)

    def check() -> None:
        assert attempt.collect().problem == "submission.csv cannot be read: permission denied"

    without_privileges(check)


def test_folders_without_permission_are_opened_again(attempt: Attempt) -> None:
    attempt.handed_in.write_text("id\n")
    (attempt.home / "logs" / "a.log").write_text("log")
    for folder in (attempt.handed_in.parent, attempt.home / "logs", attempt.home):
        folder.chmod(0)

    def check() -> None:
        assert attempt.collect() == Collected(problem=None, notes=[], files=1, bytes=3)

    without_privileges(check)
    assert attempt.submission.read_text() == "id\n"


def test_artefacts_that_are_not_plain_files_are_left_behind(attempt: Attempt) -> None:
    logs = attempt.home / "logs"
    (logs / "link").symlink_to(attempt.answers)
    (logs / "hard").hardlink_to(attempt.answers)
    (logs / "tree").symlink_to(attempt.folder)
    os.mkfifo(logs / "pipe")
    (logs / "plain").write_text("x")
    collected = attempt.collect()
    assert attempt.names() == ["logs/plain"]
    assert collected.notes == [
        "logs/hard is a hard link: the same file has 2 names",
        "logs/link is a symbolic link, not a regular file",
        "logs/pipe is a named pipe, not a regular file",
        "logs/tree is a symbolic link, not a regular file",
    ]


def test_artefacts_are_bounded_in_size(attempt: Attempt) -> None:
    (attempt.home / "logs" / "a").write_bytes(b"x" * 3000)
    (attempt.home / "logs" / "b").write_bytes(b"x" * 3000)
    (attempt.home / "logs" / "c").write_bytes(b"x" * 2000)
    collected = attempt.collect()
    assert attempt.names() == ["logs/a", "logs/c"]
    assert collected.notes == ["logs/b is too large: 3kB, allowed are 2kB"]
    assert collected.bytes == 5000


def test_artefacts_are_bounded_in_number(attempt: Attempt) -> None:
    for number in range(100):
        (attempt.home / "logs" / f"{number}").write_text("x")
    collected = attempt.collect()
    assert collected.files == 10
    assert collected.notes[0] == "logs is not complete: more than 10 files in logs and code"


def test_file_names_cannot_play_tricks_on_a_terminal(attempt: Attempt) -> None:
    (attempt.home / "logs" / "\x1b[2J\nok").symlink_to("x")
    assert attempt.collect().notes == [
        r"logs/\x1b[2J\nok is a symbolic link, not a regular file",
    ]


def test_names_become_such_that_archives_and_reports_can_have(attempt: Attempt) -> None:
    for name in (b"\xff.py", b"a\\b.py", b"c\nd.py", "größe.py".encode()):
        Path(os.fsdecode(os.fsencode(attempt.home / "code") + b"/" + name)).write_text("x")
    long = os.fsencode(attempt.home / "logs") + b"/" + b"\xff" * 255
    Path(os.fsdecode(long)).write_text("x")
    attempt.collect()
    names = ["_.py", "a_b.py", "c_d.py", "größe.py"]
    assert attempt.names() == [*(f"code/{name}" for name in names), f"logs/{'_' * 255}"]


def test_the_notes_are_bounded(attempt: Attempt) -> None:
    for number in range(50):
        (attempt.home / "logs" / f"{number:02}").symlink_to("x")
    notes = attempt.collect(replace(LIMITS, artefact_files=1000)).notes
    assert len(notes) == 21
    assert notes[-1] == "30 more were left behind"


def _dig(folder: Path, levels: int) -> None:
    """Make folders in folders, deeper than any path can say."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d" * 50, dir_fd=here)
        below = os.open("d" * 50, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


def test_a_bottomless_tree_is_collected_in_part_and_removed(attempt: Attempt) -> None:
    _dig(attempt.home / "code", 2000)
    attempt.handed_in.write_text("id\n")
    collected = attempt.collect(replace(LIMITS, artefact_files=10_000))
    assert collected.problem is None
    assert collected.notes[0].endswith("is nested too deeply")
    remove_tree(attempt.home)
    assert not attempt.home.exists()


def test_removing_a_tree_follows_no_link_and_minds_no_permissions(attempt: Attempt) -> None:
    closed = attempt.home / "code" / "closed"
    (closed / "inner").mkdir(parents=True)
    (closed / "inner" / "file").write_text("x")
    (attempt.home / "out").symlink_to(attempt.folder)
    (closed / "inner").chmod(0)
    closed.chmod(0)
    without_privileges(lambda: remove_tree(attempt.home))
    assert not attempt.home.exists()
    assert attempt.answers.exists()


def test_removing_what_is_not_there_is_fine(tmp_path: Path) -> None:
    remove_tree(tmp_path / "nothing")


def test_secrets_are_masked_in_artefacts_only(attempt: Attempt) -> None:
    attempt.handed_in.write_text("hush-hush")
    (attempt.home / "logs" / "a.log").write_text("the key is hush-hush, hush")
    attempt.collect(secrets=["hush-hush"])
    assert attempt.submission.read_text() == "hush-hush"
    log = attempt.folder / "artefacts" / "logs" / "a.log"
    assert log.read_text() == "the key is ***, hush"


def test_our_own_trouble_is_not_the_agents(attempt: Attempt) -> None:
    attempt.handed_in.write_text("id\n")
    attempt.submission.mkdir()
    with pytest.raises(SandboxError, match=r"cannot collect into .*attempt: Is a directory"):
        attempt.collect()
