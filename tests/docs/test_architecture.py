"""ARCHITECTURE.md shows the package as it is."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import architecture  # noqa: E402  # a script, found just above

TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def test_the_tree_is_that_of_the_package() -> None:
    assert architecture.filled(TEXT) == TEXT, "run python scripts/architecture.py"


def test_every_module_says_what_it_is() -> None:
    lines = list(architecture.tree(ROOT / "pytest_mlebench"))
    assert [line for line in lines if line and len(line.split()) < 3] == []


def test_every_module_that_the_walks_name_exists() -> None:
    walks = TEXT[TEXT.index("## One item") : TEXT.index("## The tree")]
    named = set(re.findall(r"`([a-z_/]+\.py)`", walks)) - {"prepare.py", "grade.py"}
    modules = [str(path) for path in (ROOT / "pytest_mlebench").rglob("*.py")]
    assert len(named) > 20
    assert [name for name in named if not any(m.endswith(f"/{name}") for m in modules)] == []
