"""One word, one thing: no two classes share a name, and no two modules."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "pytest_mlebench"
PROGRAMS = (PACKAGE / "agents" / "baseline", PACKAGE / "scaffolds")  # not ours to import


def test_no_two_classes_share_a_name() -> None:
    places = defaultdict(list)
    for module in PACKAGE.rglob("*.py"):
        if any(program in module.parents for program in PROGRAMS):
            continue
        for node in ast.parse(module.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(module.relative_to(PACKAGE)))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_no_two_modules_share_a_name() -> None:
    """A command has the name of what it does, which may be that of a module that does it."""
    places = defaultdict(list)
    for module in PACKAGE.rglob("*.py"):
        inside = any(program in module.parents for program in (*PROGRAMS, PACKAGE / "commands"))
        if not inside and not module.stem.startswith("__"):
            places[module.stem].append(str(module.relative_to(PACKAGE)))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}
