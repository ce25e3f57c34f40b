"""How fast ``pytest-mlebench prepare`` makes several competitions, against one after the other.

    python benchmarks/prepare_many.py [--scale 0.2] [--jobs N] [--folder DIR] [FAMILY …]
    python benchmarks/prepare_many.py --short    small raw trees

The raw trees of benchmarks/preparing.py are zipped and offered by a server on this machine that
speaks Kaggle's protocol. The command downloads, unpacks, prepares and verifies all of them, first
with ``--jobs 1``, then with as many at a time as it takes by default; both stores must hold the
same. Shown are seconds, and CPU seconds with those of all processes. The exit status is 1 if many
at a time take longer, but for the short form, in which the start of processes is most of it.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from support.prepared_by_hand import FAMILIES, contents

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "helpers"))

from kaggle_server import KaggleServer

from pytest_mlebench.store.bulk import default_jobs

SCALE, SHORT_SCALE = 0.2, 0.05


def main() -> int:
    """Prepare the families asked for both ways."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", help=f"some of: {', '.join(FAMILIES)}")
    parser.add_argument("--scale", type=float, default=SCALE, help="size of the raw trees")
    parser.add_argument("--jobs", type=int, default=max(2, default_jobs()))
    parser.add_argument("--folder", type=Path, help="where to work (default: a temporary folder)")
    parser.add_argument("--short", action="store_true")
    options = parser.parse_args()
    names = options.families or list(FAMILIES)
    scale = SHORT_SCALE if options.short else options.scale
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch, KaggleServer() as kaggle:
        work = Path(scratch)
        size = sum(offer(kaggle, name, work, scale) for name in names)
        ids = [FAMILIES[name].competition for name in names]
        alone = prepare(kaggle, ids, work / "one-by-one", 1)
        together = prepare(kaggle, ids, work / "together", options.jobs)
        compare(ids, work)
    ratio = alone[0] / together[0]
    print(
        f"{len(ids)} competitions, zips of {size / 1e6:.0f} MB: one after the other "
        f"{alone[0]:.1f} s (CPU {alone[1]:.1f} s), {options.jobs} at a time "
        f"{together[0]:.1f} s (CPU {together[1]:.1f} s): {ratio:.2f} times as fast"
    )
    return int(ratio < 1 and not options.short)


def offer(kaggle: KaggleServer, name: str, work: Path, scale: float) -> int:
    """Let the server have the raw tree of a family as a zip; return its size."""
    family = FAMILIES[name]
    raw, packed = work / "raw", work / "raw.zip"
    raw.mkdir()
    family.generate(raw, scale)
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as target:
        for path in sorted(raw.rglob("*")):
            target.write(path, path.relative_to(raw))
    kaggle.add(family.competition, packed)
    size = packed.stat().st_size
    shutil.rmtree(raw)
    packed.unlink()
    return size


def prepare(kaggle: KaggleServer, ids: list[str], store: Path, jobs: int) -> tuple[float, float]:
    """Run the command; return its seconds, and the CPU seconds of all its processes."""
    command = [sys.executable, "-m", "pytest_mlebench", "prepare", *ids, "--jobs", str(jobs)]
    command += ["--data-dir", str(store), "--verify", "off"]
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, **kaggle.environment}
    done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"prepare --jobs {jobs} failed:\n{done.stdout}{done.stderr}")
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare(ids: list[str], work: Path) -> None:
    """Make sure that both stores hold the same."""
    for name in ids:
        for part in ("public", "private"):
            one, other = (
                contents(work / store / name / "prepared" / part)
                for store in ("one-by-one", "together")
            )
            if one != other or not one:
                raise SystemExit(f"{name}: the {part} files differ")


if __name__ == "__main__":
    sys.exit(main())
