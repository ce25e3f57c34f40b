"""How fast a zip of many small files becomes a dataset, against the straightforward sequence.

    python benchmarks/store_speed.py [--files 50000] [--bytes 2e9] [--folder DIR] [--rounds 1]

Both sides get the same zip from the same server on this machine, one after the other in one run.
The straightforward sequence: download, md5 in 4 KiB chunks, extract, copy file by file into the
public folder, md5 of every copied file. Ours: ``Store.ensure`` with ``keep_raw="none"``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import requests

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "helpers"))

from pytest_mlebench.competition import Competition, read_competition
from pytest_mlebench.store.store import Store

NAME = "many-files"

TOML = """
title = "Many files"
complexity = "custom"
category = "Images"
answers = "test.csv"
sample = "sample_submission.csv"
[metric]
name = "own"
direction = "higher"
[submission]
[leaderboard]
teams = 1
gold = 1
silver = 1
bronze = 1
median = 1
percentiles = [{percentiles}]
[checksums]
zip = "{md5}"
[checksums.public]
"sample_submission.csv" = "{sample}"
[checksums.private]
"""

PREPARE = """
from pytest_mlebench.preparing.files import link_tree

def prepare(raw, public, private):
    link_tree(raw / "images", public / "images")
    (public / "sample_submission.csv").write_text("id,y\\n")
    (private / "test.csv").write_text("id,y\\n")
"""


def make_zip(path: Path, files: int, total: int) -> None:
    """Write a zip of files like pictures: hardly compressible, deflated all the same."""
    source = random.Random(0)
    block = source.randbytes(1 << 20)
    each = total // files
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as zipped:
        for number in range(files):
            start = source.randrange(len(block) - 1000)
            data = (block[start:] + block)[: each - 8] + number.to_bytes(8, "big")
            zipped.writestr(f"images/{number % 100:02d}/{number}.jpg", data)


def make_competition(folder: Path, md5: str) -> Competition:
    """Write the competition's folder and read it."""
    folder.mkdir(parents=True)
    percentiles = ", ".join(["1"] * 101)
    sample = hashlib.md5(b"id,y\n").hexdigest()
    text = TOML.format(percentiles=percentiles, md5=md5, sample=sample)
    (folder / "competition.toml").write_text(text)
    (folder / "prepare.py").write_text(PREPARE)
    (folder / "grade.py").write_text("")
    (folder / "description.md").write_text("# Many files\n")
    return read_competition(folder)


def md5_in_small_chunks(path: Path) -> str:
    """Return a file's md5, read 4 KiB at a time."""
    digest = hashlib.md5()
    with path.open("rb") as file:
        while chunk := file.read(4096):
            digest.update(chunk)
    return digest.hexdigest()


def straightforward(url: str, proxy: str, folder: Path) -> dict[str, float]:
    """Do it step by step and return the seconds of each."""
    steps: dict[str, float] = {}
    clock = time.perf_counter()

    def done(step: str) -> None:
        nonlocal clock
        steps[step] = time.perf_counter() - clock
        clock = time.perf_counter()

    folder.mkdir(parents=True)
    archive = folder / f"{NAME}.zip"
    reply = requests.get(url, stream=True, proxies={"http": proxy}, timeout=60)
    with reply, archive.open("wb") as file:
        for chunk in reply.iter_content(1 << 20):
            file.write(chunk)
    done("download")
    md5_in_small_chunks(archive)
    done("md5 of the zip")
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(folder / "raw")
    done("extract")
    for source in sorted((folder / "raw").rglob("*")):
        if source.is_file():
            target = folder / "public" / source.relative_to(folder / "raw")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    done("copy")
    for path in sorted((folder / "public").rglob("*")):
        if path.is_file():
            md5_in_small_chunks(path)
    done("md5 of the files")
    return steps


def ours(competition: Competition, root: Path) -> dict[str, float]:
    """Let the store do it and return the seconds of each step."""
    steps: dict[str, float] = {}
    clock = time.perf_counter()
    current = "start"

    def said(text: str) -> None:
        nonlocal clock, current
        words = text.partition(": ")[2].split()
        if words[0] in ("downloading", "unpacking", "preparing", "prepared"):
            steps[current] = time.perf_counter() - clock
            clock, current = time.perf_counter(), words[0]

    Store(root).ensure(competition, progress=said)
    steps["tidying"] = time.perf_counter() - clock
    return steps


def bytes_on_disk(folder: Path) -> int:
    """Return what a folder takes, each file once however many names it has."""
    seen = {}
    for path in folder.rglob("*"):
        facts = path.lstat()
        seen[facts.st_ino] = facts.st_size if path.is_file() else 0
    return sum(seen.values())


def serve(archive: Path) -> tuple[subprocess.Popen[str], dict[str, str]]:
    """Start the server of the tests in a process of its own."""
    code = (
        "import json, sys, time; from pathlib import Path; from kaggle_server import *\n"
        "with KaggleServer() as server:\n"
        f"    server.add({NAME!r}, Path(sys.argv[1]))\n"
        "    print(json.dumps(server.environment), flush=True)\n"
        "    sys.stdin.read()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(archive)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests" / "helpers")},
    )
    assert process.stdout is not None
    return process, json.loads(process.stdout.readline())


def show(title: str, steps: dict[str, float]) -> float:
    """Print the seconds of each step and return their sum."""
    total = sum(steps.values())
    parts = ", ".join(f"{name} {seconds:.1f}" for name, seconds in steps.items() if seconds > 0.05)
    print(f"{title}: {total:.1f} s ({parts})")
    return total


def main() -> None:
    """Run the comparison and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("--bytes", type=float, default=2e9)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where to work (default: a temporary folder)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        work = Path(scratch)
        archive = work / f"{NAME}.zip"
        make_zip(archive, options.files, int(options.bytes))
        competition = make_competition(work / "competitions" / NAME, md5_in_small_chunks(archive))
        server, environment = serve(archive)
        os.environ.update(environment)
        try:
            warm_up(work / "warm-up", environment["HTTP_PROXY"])
            for number in range(options.rounds):
                compare(work / f"round{number}", competition, environment["HTTP_PROXY"])
        finally:
            server.kill()
            server.wait()


def warm_up(work: Path, proxy: str) -> None:
    """Use as much memory as a side will: the first use of it is slow in a virtual machine."""
    straightforward(f"http://blobs.test/{NAME}.zip", proxy, work)
    forget(work)


def compare(work: Path, competition: Competition, proxy: str) -> None:
    """Run both sides once, the second as if the first had never been.

    Nothing is removed before the end: for minutes after that, ext4 is slow to make new files.
    """
    url = f"http://blobs.test/{NAME}.zip"
    os.sync()
    slow = show("straightforward", straightforward(url, proxy, work / "plain"))
    forget(work / "plain")
    fast = show("pytest-mlebench", ours(competition, work / "store"))
    forget(work / "store")
    extracted, kept = bytes_on_disk(work / "plain" / "raw"), bytes_on_disk(work / "store")
    print(f"{slow / fast:.1f} times as fast")
    print(f"{kept / extracted:.3f} times the extracted bytes on disk", flush=True)


def forget(folder: Path) -> None:
    """Write everything to the disk and give its memory back, which the next may need."""
    os.sync()
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


if __name__ == "__main__":
    main()
