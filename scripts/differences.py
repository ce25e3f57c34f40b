"""Print the table of differences from the reference implementation for the README.

    python scripts/differences.py

They are read from the golden packs (``tests/golden/packs/*/notes.json``), whose tests hold each.
"""

from __future__ import annotations

import json
from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "tests/golden/packs"
KINDS = ("stricter", "instead", "reordered")


def table() -> str:
    """Return the differences as a Markdown table, a row for each competition."""
    rows = ["| competition | what differs |", "|---|---|"]
    for path in sorted(GOLDEN.glob("*/notes.json")):
        notes = json.loads(path.read_text(encoding="utf-8"))
        reasons = [_reason(note) for kind in KINDS for note in notes.get(kind, {}).values()]
        if reasons:
            rows.append(f"| `{path.parent.name}` | {'. '.join(dict.fromkeys(reasons))} |")
    return "\n".join(rows) + "\n"


def _reason(note: object) -> str:
    reason = str(note[1] if isinstance(note, list) else note)
    return reason[:1].upper() + reason[1:]


if __name__ == "__main__":
    print(table(), end="")
