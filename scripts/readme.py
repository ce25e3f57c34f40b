"""Put what the code knows into the README: the options and the differences.

    python scripts/readme.py [--demo FILE]

With ``--demo`` the output of ``make demo`` in FILE is put in as well.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import differences

from pytest_mlebench.plugin.options import OPTIONS

README = Path(__file__).parents[1] / "README.md"


def options() -> str:
    """Return the options as a Markdown table."""
    rows = ["| option | meaning |", "|---|---|"]
    rows += [f"| `{o.flag}={o.metavar}` | {o.help} |".replace("|LEVEL", "LEVEL") for o in OPTIONS]
    return "\n".join(rows) + "\n"


def fill(text: str, mark: str, content: str) -> str:
    """Return *text* with *content* between ``<!-- mark -->`` and ``<!-- end mark -->``."""
    start, end = f"<!-- {mark} -->", f"<!-- end {mark} -->"
    block = f"{start}\n\n{content}\n{end}"
    if end in text:
        return re.sub(re.escape(start) + ".*?" + re.escape(end), lambda _: block, text, flags=re.S)
    return text.replace(start, block)


def filled(text: str) -> str:
    """Return the README with the tables as they are to be."""
    return fill(fill(text, "options", options()), "differences", differences.table())


def main(arguments: list[str]) -> int:
    """Rewrite the README."""
    text = filled(README.read_text(encoding="utf-8"))
    if arguments[:1] == ["--demo"]:
        output = Path(arguments[1]).read_text(encoding="utf-8").rstrip()
        text = fill(text, "demo output", f"```text\n{output}\n```\n")
    README.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
