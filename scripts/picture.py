"""Turn the coloured output of a command into a picture of a terminal.

pytest --mle-agent=baseline --color=yes | python scripts/picture.py docs/demo.svg
"""

from __future__ import annotations

import io
import sys

from rich.console import Console
from rich.text import Text


def main(target: str) -> int:
    """Draw standard input."""
    console = Console(record=True, width=80, file=io.StringIO())
    console.print(Text.from_ansi(sys.stdin.read().rstrip()))
    console.save_svg(target, title="pytest --mle-agent=baseline")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
