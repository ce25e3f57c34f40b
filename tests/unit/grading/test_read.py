"""Reading a submission is hostile-proof: each kind of bad file is one sentence and no hang."""

from __future__ import annotations

import gzip
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_mlebench import InvalidSubmission
from pytest_mlebench.grading.read import open_regular, read_submission
from pytest_mlebench.grading.rules import Rules

RULES = Rules(id=("id",), targets=("p",), kinds={"p": "number"})
GOOD = "id,p\n1,0.5\n2,0.25\n"


@pytest.fixture
def like(tmp_path: Path) -> Path:
    """The file that a submission must resemble."""
    path = tmp_path / "sample_submission.csv"
    path.write_text(GOOD)
    return path


def refusal(path: Path, like: Path) -> str:
    with pytest.raises(InvalidSubmission) as caught:
        read_submission(path, like=like, rows=2, rules=RULES).frame()
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_regular_csv_file_is_read(like: Path, tmp_path: Path) -> None:
    path = tmp_path / "submission.csv"
    ends = [GOOD.replace("\n", end) for end in ("\r\n", "\r", "\n\n")]
    for text in (GOOD, "\ufeff" + GOOD, *ends, '"id","p"\n"1","0.5"\n2,0.25'):
        path.write_text(text, newline="")
        assert read_submission(path, like=like, rows=2, rules=RULES)["p"].tolist() == [0.5, 0.25]


def test_a_first_row_longer_than_the_reader_of_headers_allows_is_read(
    like: Path, tmp_path: Path
) -> None:
    path = tmp_path / "submission.csv"
    path.write_text(f"id,p\n1,{'7' * 200_000}\n2,x\n")
    assert len(read_submission(path, like=like, rows=2, rules=RULES)["p"][0]) == 200_000


def test_the_first_of_two_columns_counts_where_a_competition_says_so(
    like: Path, tmp_path: Path
) -> None:
    path = tmp_path / "submission.csv"
    path.write_text("id,p,p\n1,0.5,7\n2,0.25,8\n")
    table = read_submission(path, like=like, rows=2, rules=replace(RULES, same_names="first"))
    assert table["p"].tolist() == [0.5, 0.25]


def make_link(path: Path) -> None:
    answers = path.parent / "answers.csv"
    answers.write_text(GOOD)
    path.symlink_to(answers)


def make_hard_link(path: Path) -> None:
    answers = path.parent / "answers.csv"
    answers.write_text(GOOD)
    path.hardlink_to(answers)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(path))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "there is no submission.csv"),
        (make_link, "submission.csv is a symbolic link, expected a regular file"),
        (
            make_hard_link,
            "submission.csv is a hard link to another file, expected a file of its own",
        ),
        (Path.mkdir, "submission.csv is a folder, expected a regular file"),
        (os.mkfifo, "submission.csv is a pipe, expected a regular file"),
        (make_socket, "submission.csv is a socket, expected a regular file"),
        (Path.touch, "submission.csv is empty (0 bytes)"),
        (lambda path: path.write_bytes(b"\n\n"), "submission.csv has no header line"),
        (
            lambda path: path.write_bytes(b"id,p\n1,\xff\n"),
            "submission.csv is not UTF-8 text (near byte 7)",
        ),
        (
            lambda path: path.write_bytes(b"id,p\n1,\xc3"),
            "submission.csv is not UTF-8 text (it ends within a character)",
        ),
        (
            lambda path: path.write_bytes(b"id,p\n1,\x00\n"),
            "submission.csv has a NUL byte at byte 7",
        ),
        (
            lambda path: path.write_text("id,p,p\n1,2,3\n"),
            "submission.csv has two columns called 'p'",
        ),
        (
            lambda path: path.write_text("id,p\nfirst,1,2\nsecond,2,3\n"),
            "submission.csv has rows with more fields than the header",
        ),
        (
            lambda path: path.write_text("id,p\n1,2,3\n2,3\n"),
            "submission.csv has rows with more fields than the header",
        ),
        (
            lambda path: path.write_text("id,p\n1,2,\n2,3,\n"),
            "submission.csv has rows with more fields than the header",
        ),
        (
            lambda path: path.write_text("id,p\n1,2,,\n2,3,,\n"),
            "submission.csv has rows with more fields than the header",
        ),
        (
            lambda path: path.write_text("id,p\n" + "1," * 100_000 + "2\n"),
            "submission.csv has rows with more fields than the header",
        ),
        (
            lambda path: path.write_text("id,p\n1,2\n2,3,4\n"),
            "submission.csv is not a regular csv file: expected 2 fields in line 3, saw 3",
        ),
        (
            lambda path: path.write_text('id,p\n1,"2\n'),
            "submission.csv is not a regular csv file: EOF inside string starting at row 1",
        ),
        (
            lambda path: path.write_text(",".join(f"c{k}" for k in range(20_000)) + "\n1\n"),
            "submission.csv has 20000 columns, at most 1002 are read",
        ),
        (
            lambda path: path.write_text(",".join(f"c{k}" for k in range(1_000_000)) + "\n1\n"),
            "the header line of submission.csv is longer than 1.049MB",
        ),
        (
            lambda path: path.write_bytes(gzip.compress(GOOD.encode())),
            "submission.csv is a gzip archive, expected a plain csv file",
        ),
        (
            lambda path: path.write_bytes(b"PAR1" + bytes(100)),
            "submission.csv is a parquet file, expected a plain csv file",
        ),
        (
            lambda path: path.write_bytes(GOOD.encode("utf-16")),
            "submission.csv is UTF-16 text, expected a plain csv file",
        ),
    ],
    ids=lambda value: value.replace("submission.csv", "it")[:40] if isinstance(value, str) else "",
)
def test_a_bad_file_is_one_sentence(
    make: Callable[[Path], object], message: str, like: Path, tmp_path: Path
) -> None:
    path = tmp_path / "folder" / "submission.csv"
    path.parent.mkdir()
    make(path)
    said = refusal(path, like)
    assert said[0].lower() + said[1:] == message[0].lower() + message[1:]


def test_a_device_is_refused() -> None:
    with pytest.raises(InvalidSubmission, match="null is a device, expected a regular file"):
        open_regular(Path("/dev/null"), max_bytes=10)


def test_what_may_not_be_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "submission.csv"
    path.write_text(GOOD)
    path.chmod(0)
    tmp_path.chmod(0o755)
    program = (
        "import os, sys; os.chdir(sys.argv[1])\n"
        "if os.getuid() == 0:\n    os.setgroups([]); os.setuid(65534)\n"
        "from pathlib import Path\n"
        "from pytest_mlebench.grading.read import open_regular\n"
        "try:\n    open_regular(Path('submission.csv'), max_bytes=100)\n"
        "except Exception as error:\n    print(error)\n"
    )
    # imported before the user changes, because the checkout may be root's own
    program = "import pytest_mlebench.grading.read\n" + program
    for folder in tmp_path.parents:
        if folder.name.startswith("pytest-"):
            folder.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "submission.csv is not readable (permission denied)"


def test_a_file_over_the_bound_is_refused_before_it_is_read(like: Path, tmp_path: Path) -> None:
    path = tmp_path / "submission.csv"
    path.touch()
    os.truncate(path, 300 * 10**9)  # sparse: nothing is on the disk
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert refusal(path, like) == "submission.csv has 300GB, at most 256MB are read"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


def test_a_sparse_file_within_the_bound_is_refused_for_its_zeros(
    like: Path, tmp_path: Path
) -> None:
    path = tmp_path / "submission.csv"
    path.write_text(GOOD)
    os.truncate(path, 200 * 10**6)
    assert refusal(path, like) == f"submission.csv has a NUL byte at byte {len(GOOD)}"
