"""Putting many small raw files into the public folder, against the plain copy loop.

    python benchmarks/placing_files.py [FILES]

Both work on the same files in the same run; the factor is what counts.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

from pytest_mlebench.preparing import link_all

BYTES = 4_000


def main(count: int) -> int:
    """Print the factor."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as scratch:
        raw = Path(scratch, "raw")
        raw.mkdir()
        names = [f"{number:06d}.png" for number in range(count)]
        for name in names:
            (raw / name).write_bytes(bytes(BYTES))
        copied, linked = Path(scratch, "copied"), Path(scratch, "linked")
        start = time.perf_counter()
        copied.mkdir()
        for name in names:
            shutil.copyfile(raw / name, copied / name)
        middle = time.perf_counter()
        link_all((raw / name, linked / name) for name in names)
        end = time.perf_counter()
    copying, linking = middle - start, end - middle
    print(f"{count} files of {BYTES} bytes: copied in {copying:.1f} s, placed in {linking:.1f} s")
    print(f"x{copying / linking:.1f} faster than the copy loop, without their bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 50_000))
