"""How fast raw data become a dataset, against the straightforward sequence, by kind of competition.

    python benchmarks/preparing.py [--scale 0.5] [--rounds 1] [--folder DIR] [FAMILY …]
    python benchmarks/preparing.py --large 55000000 [--folder DIR]

Eight families: a row split of a csv file, one image for each id, a group split, a listing of files,
COCO metadata, members of a zip, 7z archives, and lines of a text. For each a raw tree is generated,
then both sides prepare it, one after the other, each in a process of its own; what they make is
compared. The straightforward sequence is what one writes with pandas, scikit-learn, json, zipfile,
py7zr and shutil. Memory is that of a process and its children, libraries included; bytes are those
sent to the disk. It takes two to three minutes on two idle cores; a larger scale shows more of
what large files gain. The exit status is 1 if a bound is missed.

With ``--large`` a csv file of so many rides is generated and split, and the memory that this takes
is compared with its bound: 1.5 GB, and 16 bytes for each row.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from support.prepared_by_hand import FAMILIES, write_rides

SAMPLE_SECONDS = 0.02
MIN_MEAN_SPEED, MIN_SPEED, MAX_MEMORY = 5.0, 2.0, 0.6  # ours to the straightforward sequence
MAX_BASE_BYTES, MAX_ROW_BYTES = 1.5e9, 16
# Bytes sent to the disk, to those of the new files (links are none); names, folders and the ends of
# files, which a file system writes in blocks, come to some more for each file.
MAX_WRITTEN, MAX_FILE_OVERHEAD, MAX_OVERHEAD = 1.1, 8192, 5e6


@dataclass(frozen=True)
class Result:
    """What one side took: wall clock, CPU of all its processes, most memory, bytes written."""

    seconds: float
    cpu: float
    memory: float
    written: float
    needed: float = 0.0


def main() -> int:
    """Compare the families asked for, and print what they show together."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", help=f"some of: {', '.join(FAMILIES)}")
    parser.add_argument("--scale", type=float, default=0.5, help="size of the raw trees")
    parser.add_argument("--rounds", type=int, default=1, help="the best of so many counts")
    parser.add_argument("--large", type=int, metavar="ROWS", help="split a csv of so many rows")
    parser.add_argument("--folder", type=Path, help="where to work (default: a temporary folder)")
    parser.add_argument("--side", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        return prepare(*options.side)
    if options.large:
        with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
            return split_large(Path(scratch), options.large)
    pairs = []
    for name in options.families or FAMILIES:
        with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
            pairs.append(compare(name, Path(scratch), options.scale, options.rounds))
    return summary(pairs)


def summary(pairs: list[tuple[Result, Result]]) -> int:
    """Print what all families show together; return 1 if a bound is missed."""
    speeds = [slow.seconds / fast.seconds for slow, fast in pairs]
    mean = geometric_mean(speeds)
    effort = geometric_mean([slow.cpu / fast.cpu for slow, fast in pairs])
    most = [max(each.memory for each in side) for side in zip(*pairs, strict=True)]
    memory = most[1] / most[0]
    print(f"geometric mean: {mean:.1f} times as fast (at least {MIN_MEAN_SPEED} wanted)")
    print(f"CPU, which does not depend on what else runs: {effort:.1f} times less")
    print(f"least: {min(speeds):.1f} times as fast (at least {MIN_SPEED} wanted)")
    shown = f"{most[0] / 1e6:.0f} MB / {most[1] / 1e6:.0f} MB = {memory:.2f}"
    print(f"peak memory of all: {shown} (at most {MAX_MEMORY} wanted)", flush=True)
    wasteful = [fast for _, fast in pairs if fast.written > fast.needed]
    print(f"families that write more than their data: {len(wasteful)} (none wanted)", flush=True)
    is_slow = mean < MIN_MEAN_SPEED or min(speeds) < MIN_SPEED
    return int(is_slow or memory > MAX_MEMORY or bool(wasteful))


def geometric_mean(ratios: list[float]) -> float:
    """Return the mean that suits ratios."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def split_large(work: Path, rows: int) -> int:
    """Split a csv file of many rows, and compare the memory with its bound."""
    raw = work / "raw"
    raw.mkdir()
    write_rides(raw / "train.csv", rows)
    (raw / "GCP-Coupons-Instructions.rtf").write_text("none")
    size = (raw / "train.csv").stat().st_size
    result = measured("rows", "ours", raw, work / "ours")
    bound = MAX_BASE_BYTES + MAX_ROW_BYTES * rows
    print(
        f"{rows} rows, {size / 1e9:.2f} GB: {result.seconds:.1f} s, "
        f"memory {result.memory / 1e9:.2f} GB (at most {bound / 1e9:.2f} GB wanted)",
        flush=True,
    )
    return int(result.memory > bound)


def compare(name: str, work: Path, scale: float, rounds: int) -> tuple[Result, Result]:
    """Prepare one family both ways; print and return what the sides took, ours last."""
    family = FAMILIES[name]
    raw = work / "raw"
    raw.mkdir()
    family.generate(raw, scale)
    size = sum(path.stat().st_size for path in raw.rglob("*") if path.is_file())
    best: dict[str, Result] = {}
    for _ in range(rounds):
        for side in ("by hand", "ours"):
            out = work / side.replace(" ", "-")
            shutil.rmtree(out, ignore_errors=True)
            result = measured(name, side, raw, out)
            best[side] = min(best.get(side, result), result, key=lambda each: each.seconds)
    family.check(work / "by-hand", work / "ours")
    slow, fast = best["by hand"], best["ours"]
    speed, memory = slow.seconds / fast.seconds, fast.memory / slow.memory
    print(
        f"{name} ({size / 1e6:.0f} MB): {slow.seconds:.1f} s / {fast.seconds:.1f} s = {speed:.1f}, "
        f"CPU {slow.cpu:.1f} s / {fast.cpu:.1f} s, "
        f"memory {slow.memory / 1e6:.0f} MB / {fast.memory / 1e6:.0f} MB = {memory:.2f}, "
        f"written {slow.written / 1e6:.0f} MB / {fast.written / 1e6:.0f} MB",
        flush=True,
    )
    return slow, fast


def measured(name: str, side: str, raw: Path, out: Path) -> Result:
    """Run one side in a process of its own and watch it."""
    os.sync()
    command = [sys.executable, __file__, "--side", name, side, str(raw), str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        watch = Watch(process.pid)
        watch.start()
        text, _ = process.communicate()
        watch.stop.set()
        watch.join()
    if process.returncode:
        raise SystemExit(f"{name}, {side}: failed")
    facts = json.loads(text.splitlines()[-1])
    return Result(facts["seconds"], facts["cpu"], watch.most, facts["written"], bytes_needed(out))


def bytes_needed(out: Path) -> float:
    """Return how many bytes may be written for what is in a folder: links to raw files are none."""
    paths = list(out.rglob("*"))
    new = [path.stat() for path in paths if path.is_file()]
    size = sum(each.st_size for each in new if each.st_nlink == 1)
    return MAX_WRITTEN * size + MAX_FILE_OVERHEAD * len(paths) + MAX_OVERHEAD


def prepare(name: str, side: str, raw: str, out: str) -> int:
    """Be one side: prepare, and print what it took."""
    family = FAMILIES[name]
    public, private = Path(out, "public"), Path(out, "private")
    import pandas  # noqa: F401 - each side has its libraries in memory before the clock starts

    if side == "ours":
        from pytest_mlebench import load_competition

        competition = load_competition(family.competition)
        start, before = time.perf_counter(), used()
        competition.prepare(Path(raw), public, private)
    else:
        from sklearn.model_selection import train_test_split  # noqa: F401 - the same

        public.mkdir(parents=True)
        private.mkdir(parents=True)
        start, before = time.perf_counter(), used()
        family.by_hand(Path(raw), public, private)
    seconds = time.perf_counter() - start
    cpu, written = (after - was for after, was in zip(used(), before, strict=True))
    print(json.dumps({"seconds": seconds, "cpu": cpu, "written": written}))
    return 0


def used() -> tuple[float, float]:
    """Return CPU seconds and bytes written, of this process and its children that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    # getrusage(2): blocks are of 512 bytes
    written = 512 * sum(each.ru_oublock for each in usages)
    return sum(each.ru_utime + each.ru_stime for each in usages), written


class Watch(threading.Thread):
    """Look now and then at the memory of a process and its children."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid = pid
        self.stop = threading.Event()
        self.most = 0.0

    def run(self) -> None:
        while not self.stop.wait(SAMPLE_SECONDS):
            self.most = max(self.most, sum(map(memory_of, family_of(self.pid))))


def family_of(pid: int) -> list[int]:
    """Return a process and all below it."""
    found = [pid]
    for each in found:
        try:
            for task in Path(f"/proc/{each}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
        except OSError:
            continue
    return found


def memory_of(pid: int) -> float:
    """Return the bytes of a process, those that it shares with others in parts (proc(5), Pss)."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) * 1024.0 for line in text.splitlines() if line[:4] == "Pss:")


if __name__ == "__main__":
    sys.exit(main())
