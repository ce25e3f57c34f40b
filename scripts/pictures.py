"""Make the pictures of the documentation: the report page in Chromium, a session while it runs.

python scripts/pictures.py        # needs chromium and the packages of the tests
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
sys.path.insert(0, str(ROOT / "tests" / "helpers"))

from pseudo_terminal import Terminal  # noqa: E402  # a helper of the tests, found just above
from reporting import REAL_REPORTS  # noqa: E402

from pytest_mlebench.reports.report import Report  # noqa: E402


def main() -> int:
    """Make all pictures."""
    with tempfile.TemporaryDirectory() as scratch:
        take_page(Path(scratch))
        take_terminal(Path(scratch))
    return 0


def take_page(folder: Path) -> None:
    """Take the page of three real grading reports: its top, and the competitions in the dark."""
    from playwright.sync_api import sync_playwright

    path = folder / "report.html"
    Report.from_reference(REAL_REPORTS).write(path)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for name, scheme, fragment in (
            ("report-page", "light", ""),
            ("report-competitions", "dark", "#competitions"),
        ):
            page = browser.new_page(
                viewport={"width": 1280, "height": 860},
                color_scheme=scheme,  # type: ignore[arg-type]  # one of two words
            )
            page.goto(f"{path.as_uri()}{fragment}")
            page.screenshot(path=DOCS / f"{name}.png")
            page.close()
        browser.close()


def take_terminal(folder: Path) -> None:
    """Take a session of the demo while an attempt runs."""
    from rich.console import Console
    from rich.style import Style
    from rich.text import Text

    options = ("--mle-agent=baseline", "--mle-split=demo", "--mle-seeds=2", "--mle-run=demo")
    terminal = Terminal(folder, *options, columns=130, lines=18)
    terminal.until(lambda: "░" in terminal.text and "medal" not in terminal.text.split("over")[-1])
    console = Console(record=True, width=130, file=io.StringIO(), force_terminal=True)
    for line in _lines(terminal):
        text = Text()
        for letter in line:
            color = None if letter.fg == "default" else letter.fg.replace("brown", "yellow")
            style = Style(color=color if color and color.isalpha() else None, bold=letter.bold)
            text.append(letter.data, style)
        text.rstrip()
        console.print(text)
    terminal.finish()
    (DOCS / "live.svg").write_text(console.export_svg(title="pytest --mle-agent=baseline"))


def _lines(terminal: Terminal) -> list[list[Any]]:
    screen = terminal.screen
    return [[screen.buffer[y][x] for x in range(screen.columns)] for y in range(screen.lines)]


if __name__ == "__main__":
    sys.exit(main())
