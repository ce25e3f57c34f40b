"""How soon the report page of 75 competitions x 3 seeds can be used in Chromium, and its size.

    python benchmarks/report_page.py [ROUNDS] [--check]

The page and an empty one are loaded in turn, so that both see the same machine. Usable means: the
script has run, and two frames have been drawn since. With --check the exit status is 1 where the
page is larger than 1.5 MB, or usable more than 300 ms after an empty one.
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


MAX_BYTES, MAX_SECONDS = 1_500_000, 0.3


def main(rounds: int, *, check: bool) -> int:
    """Print the figures; fail above the bounds if they are to be checked."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        print("there is no chromium: apt install chromium")
        return 1 if check else 0
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
    # the fastest of each: what else the machine does meanwhile only ever makes a page slower
    late = min(times["report.html"]) - min(times["empty.html"])
    bounds = ((size > MAX_BYTES, "larger than 1.5 MB"), (late > MAX_SECONDS, "later than 300 ms"))
    for is_broken, text in bounds if check else ():
        if is_broken:
            print(f"the page is {text}")
    return int(check and any(is_broken for is_broken, _ in bounds))


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--check"]
    sys.exit(main(int(words[0]) if words else 7, check="--check" in sys.argv))
