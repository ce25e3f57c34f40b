"""An agent in the process sandbox that looks for the answers comes out empty."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sandbox_job import CANARY, Finished, Place

from pytest_mlebench.agent import Agent, AgentContext
from pytest_mlebench.sandbox.process import landlock, process_sandbox

# The strongest attacker: it knows where the answers are, and tries every way to them.
SEARCH = r"""
import ctypes, glob, os, sys, time, urllib.error, urllib.request
ANSWERS, CANARY, CALLER = sys.argv[1], sys.argv[2].encode()[::-1], sys.argv[3]

def found(where, content):
    if CANARY in content:
        print("FOUND", where)

def read(where):
    try:
        with open(where, "rb") as file:
            found(where, file.read(10**6))
    except OSError:
        pass

read(ANSWERS)
for variable, value in os.environ.items():
    found(variable, value.encode())

# the disk: every folder above the answers, and all that hangs below it
folder = os.path.dirname(ANSWERS)
deadline = time.monotonic() + 3
while time.monotonic() < deadline:
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in ("proc", "sys")][:50]
        for name in files:
            path = os.path.join(root, name)
            if name.endswith((".csv", ".json", ".log")) and os.path.isfile(path):
                read(path)
        if root.count("/") > 12:
            folders.clear()
        if time.monotonic() > deadline:
            break
    if folder == "/":
        break
    folder = os.path.dirname(folder)

# links, renames and copies into the workspace
for trick in (os.link, os.symlink, os.rename):
    try:
        trick(ANSWERS, trick.__name__)
        read(trick.__name__)
    except OSError:
        pass

# the processes above us: their environment, files, folders and memory
pid = os.getpid()
above = [CALLER]
while pid > 1:
    with open(f"/proc/{pid}/stat") as file:
        pid = int(file.read().rpartition(")")[2].split()[1])
    above.append(str(pid))
for pid in above:
    read(f"/proc/{pid}/environ")
    read(f"/proc/{pid}/root{ANSWERS}")
    read(f"/proc/{pid}/cwd/answers.csv")
    for descriptor in range(50):
        try:
            if os.readlink(f"/proc/{pid}/fd/{descriptor}") == ANSWERS:
                read(f"/proc/{pid}/fd/{descriptor}")
        except OSError:
            pass
    try:
        with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
            for line in maps:
                start, end = (int(part, 16) for part in line.split()[0].split("-"))
                if " rw" in line and end - start < 50_000_000:
                    try:
                        memory.seek(start)
                        found(f"memory of {pid}", memory.read(end - start))
                    except OSError:
                        pass
    except OSError:
        pass

# the disk below the file system, another root, a fresh mount
for device in glob.glob("/dev/*"):
    try:
        if os.stat(device).st_mode & 0o170000 == 0o060000:
            os.close(os.open(device, os.O_RDONLY))
            print("FOUND a disk", device)
    except OSError:
        pass
libc = ctypes.CDLL(None)
if libc.unshare(0x10020000) == 0:  # our own users and mounts
    os.mkdir("m")
    if libc.mount(os.path.dirname(ANSWERS).encode(), b"m", None, ctypes.c_ulong(4096), None) == 0:
        read("m/answers.csv")

# the format check
url = os.environ["MLE_VALIDATE_URL"]
for path in ("", "answers", "grade", "../.." + ANSWERS, "validate?file=" + ANSWERS, "health"):
    for body in (None, b"file=@" + ANSWERS.encode(), b"id,label\n1,1\n"):
        try:
            with urllib.request.urlopen(url.replace("validate", path), data=body) as answer:
                found(url, answer.read())
        except urllib.error.HTTPError as answer:
            found(url, answer.read())
        except OSError:
            pass
print("searched")
"""


def search(place: Place, **changes: Any) -> Finished:
    backwards = CANARY[::-1]  # so that the searcher does not find its own argument
    arguments = (str(place.answers), backwards, str(os.getpid()))
    job = place.job(Agent("spy", command=(sys.executable, "-c", SEARCH, *arguments)))
    return Finished(job, place.sandbox().run(replace(job, **changes)))


def test_a_search_for_the_answers_comes_out_empty(place: Place) -> None:
    with place.answers.open():
        done = search(place)
    assert done.log == "searched\n"


def test_a_search_comes_out_empty_by_landlock_alone(open_place: Place) -> None:
    done = search(open_place)
    assert done.outcome.walls[:2] == ("seccomp", f"landlock-{landlock.version()}")
    assert done.log == "searched\n"


def test_the_search_would_find_them_if_they_were_not_hidden(place: Place) -> None:
    found = search(place, hidden=()).log.splitlines()  # the command names them
    assert f"FOUND {place.answers}" in found
    assert found[-1] == "searched"


def test_other_attempts_cannot_be_read_or_changed(place: Place) -> None:
    first = place.run(shell="echo first > $SUBMISSION_DIR/submission.csv")
    second = place.run(
        shell=f"""
        cd {first.job.folder}
        cat {first.job.folder}/submission.csv; echo x > {first.job.folder}/submission.csv
        rm {first.job.folder}/run.log; ls {first.job.folder}
        cat {place.runs}/run/tiny/seed0/attempt2/run.log
        """
    )
    assert first.submission == "first\n"
    assert first.job.log.exists()
    assert "first\n" not in second.log.splitlines(keepends=True)
    assert second.log.count("No such file or directory") + second.log.count("nonexistent") >= 5


def test_the_agent_writes_in_its_workspace_only(place: Place) -> None:
    outside = place.folder / "outside"
    outside.mkdir()
    (outside / "file").write_text("untouched")
    done = place.run(
        shell=f"""
        cd {outside}
        echo x > file; echo x > new; mkdir folder; rm file; ln -s /etc link; truncate -s 0 file
        cd $HOME && echo fine > note && mkdir -p a/b && mv note a/b
        ln -s /etc link && cat a/b/note
        echo tmp > $TMPDIR/x && cat $TMPDIR/x
        """
    )
    assert [path.name for path in outside.iterdir()] == ["file"]
    assert (outside / "file").read_text() == "untouched"
    assert done.log.splitlines()[-2:] == ["fine", "tmp"]


CHANGE = """
cd $DATA_DIR
find -type f | sort
echo x > train.csv; echo x > new.csv; rm images/1.txt; mv train.csv t.csv; chmod 0 train.csv
cat train.csv
"""


def unchanged(place: Place) -> bool:
    files = sorted(path.name for path in place.public.rglob("*") if path.is_file())
    text = (place.public / "train.csv").read_text()
    return files == ["1.txt", "train.csv"] and text == "id,label\n0,0\n"


def test_the_data_are_read_only(place: Place) -> None:
    done = place.run(shell=CHANGE)
    assert done.log.startswith("./images/1.txt\n./train.csv\n")
    assert done.log.endswith("id,label\n0,0\n")
    assert unchanged(place)


def test_the_data_are_read_only_without_namespaces(open_place: Place) -> None:
    def agent(context: AgentContext) -> None:
        assert context.data.is_symlink()
        subprocess.run(["sh", "-c", CHANGE.replace("chmod", "echo")], check=False)

    done = open_place.run(function=agent)
    assert done.log.startswith("./images/1.txt\n./train.csv\n")
    assert done.log.endswith("id,label\n0,0\n")
    assert unchanged(open_place)


def test_without_confinement_the_agent_changes_a_copy(
    open_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_sandbox.landlock, "version", lambda: 0)
    done = open_place.run(shell="cd $DATA_DIR; echo x > train.csv; cat train.csv; rm -r images; ls")
    assert done.log == "x\ntrain.csv\n"
    assert unchanged(open_place)


def test_a_link_to_the_answers_is_not_collected(place: Place) -> None:
    done = place.run(
        shell=f"""
        ln -s {place.answers} $SUBMISSION_DIR/submission.csv
        ln {place.answers} $LOGS_DIR/hard; ln -s {place.answers} $LOGS_DIR/soft
        """
    )
    assert done.outcome.problem == "submission.csv is a symbolic link, not a regular file"
    assert done.outcome.details["notes"] == ["logs/soft is a symbolic link, not a regular file"]
    assert not done.job.submission.exists()


def test_the_agent_cannot_signal_or_outrank_us(place: Place) -> None:
    done = place.run(
        shell=f"""
        kill -0 {os.getpid()} 2>/dev/null && echo signalled
        kill -0 $PPID 2>/dev/null && echo signalled the first process
        kill -9 1 2>/dev/null && echo killed the first process
        grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status
        """
    )
    assert done.log.split() == [
        *("CapEff:", "0000000000000000", "CapBnd:", "0000000000000000", "NoNewPrivs:", "1"),
    ]


def test_honest_programs_find_what_they_need(place: Place) -> None:
    done = place.run(
        python="""
import multiprocessing, os, pathlib, sys, tempfile
import numpy, pytest_mlebench
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(abs, [-1, -2]))
for path in ("/etc/passwd", "/proc/meminfo", "/sys/devices/system/cpu/online", "/dev/urandom"):
    print(len(open(path, "rb").read(10)))
for path in ("/dev/null", "/dev/stdout"):
    print("through", file=open(path, "w"))
with tempfile.TemporaryFile() as file:
    file.write(b"x")
print(pathlib.Path.home() == pathlib.Path(os.environ["HOME"]))
os.mkfifo("pipe"); os.rename("pipe", "../code/pipe")
"""
    )
    assert done.log.splitlines() == ["[1, 2]", *(["10"] * 2), "4", "10", "through", "True"]


def test_visible_is_everything_but_the_hidden(tmp_path: Path) -> None:
    for name in ("a/b/secret/x", "a/b/beside", "a/c", "d/deep"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "a" / "file").touch()
    (tmp_path / "a" / "link").symlink_to(tmp_path / "a" / "b" / "secret")
    secret = tmp_path / "a" / "b" / "secret"
    hidden = {str(secret), str(secret / "x"), str(tmp_path / "d" / "not-there-yet")}
    found = landlock.visible(str(tmp_path), hidden)
    assert [str(Path(path).relative_to(tmp_path)) for path in found] == [
        *("a/b/beside", "a/c", "a/file", "d/deep"),
    ]
    assert list(landlock.visible(str(secret), hidden)) == []
