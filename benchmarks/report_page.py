"""How soon the report page of 75 competitions x 3 seeds can be used in Chromium, and its size.

    python benchmarks/report_page.py [ROUNDS]

The page and an empty one are loaded in turn, so that both see the same machine. Usable means: the
script has run, and two frames have been drawn since.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from report_pages import whole_benchmark

DRAWN = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


def main(rounds: int) -> int:
    """Print the figures."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        print("there is no chromium: apt install chromium")
        return 0
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        folder = Path(scratch)
        report = whole_benchmark(folder)
        start = time.perf_counter()
        report.write(folder / "report.html")
        wrote = time.perf_counter() - start
        (folder / "empty.html").write_text("<!doctype html><title>empty</title>")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        times: dict[str, list[float]] = {"empty.html": [], "report.html": []}
        for _ in range(rounds):
            for name, seconds in times.items():
                page = browser.new_page()
                start = time.perf_counter()
                page.goto((folder / name).as_uri())
                page.evaluate(DRAWN)
                seconds.append(time.perf_counter() - start)
                page.close()
        browser.close()
        size = (folder / "report.html").stat().st_size
    empty, full = (statistics.median(times[name]) for name in times)
    print(f"written in {wrote:.2f} s, {size / 1e6:.2f} MB")
    print(f"usable after {1000 * full:.0f} ms, an empty page after {1000 * empty:.0f} ms")
    print(f"x{full / empty:.1f}, {1000 * (full - empty):+.0f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 7))
