"""The quality of an attempt's code in figures: for information, never a reproach."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from pytest_mlebench.audit.attempt_files import AttemptFiles, Text

RULES = "E4,E7,E9,F,B,SIM,UP"  # errors, unused names, likely bugs, needless code: no layout
RUFF_SECONDS = 30
MAX_REMEMBERED, MAX_REMEMBERED_LETTERS = 512, 64 << 10  # texts whose shape is not looked for twice

_NAMED = re.compile(r"submission", re.IGNORECASE)  # submission.csv, $SUBMISSION_DIR
_WRITTEN = re.compile(r"write|open|to_csv|savetxt|copy|move|tofile|>\s*\S*submission")
_MAGIC = re.compile(r"^[ \t]*[%!].*$", re.MULTILINE)  # of a notebook's cells
_WRITERS = {
    *("to_csv", "write_csv", "savetxt", "writerow", "writerows", "write", "writelines"),
    *("write_text", "write_bytes", "copy", "copyfile", "copy2", "move", "tofile"),
}


@dataclass(frozen=True)
class _Shape:
    """What one text of code has, without a look at every expression of it."""

    functions: int
    documented: int
    has_name: bool  # of a submission, as a word anywhere
    has_verb: bool  # of writing


@dataclass
class _Seen:
    """What a walk through code has met so far."""

    functions: int = 0
    documented: int = 0
    names_submission: bool = False
    writes_file: bool = False


def figures(attempt: AttemptFiles, *, ruff: bool = True) -> dict[str, Any]:
    """Return size, style, comments and completeness of the code that was kept."""
    python = [text for text in attempt.code if text.place.endswith((".py", ".ipynb"))]
    lines = sum(_lines(text.text) for text in attempt.code)
    seen = _walk(attempt.code)
    findings = _ruff(python) if lines and ruff else None
    found = {
        "files": len(attempt.code),
        "lines": lines,
        "ruff_per_100_lines": None if findings is None else round(100 * findings / lines, 2),
        "functions": seen.functions,
        "docstrings": round(seen.documented / seen.functions, 3) if seen.functions else None,
        "readme": any(Path(name).stem.lower() == "readme" for name in attempt.code_files),
        # whether it can have written what was graded
        "writes_submission": seen.names_submission and seen.writes_file,
    }
    return {name: value for name, value in found.items() if value is not None}


def _lines(text: str) -> int:
    return sum(bool(line.strip()) for line in text.splitlines())


def _walk(texts: Iterable[Text]) -> _Seen:
    """Go through all code; what is no Python is searched for words."""
    seen = _Seen()
    for text in texts:
        is_python = text.place.endswith((".py", ".ipynb"))
        shape = _shape(text.text, is_python)
        seen.functions += shape.functions
        seen.documented += shape.documented
        # every expression is looked at only where the words alone leave it open
        new_name = shape.has_name and not seen.names_submission
        if new_name or (shape.has_verb and not seen.writes_file):
            _look_into(_parsed(text.text) if is_python else None, shape, seen)
    return seen


def _shape(text: str, is_python: bool) -> _Shape:
    """Return the shape of a text; many attempts of an agent have the same files."""
    find = _known_shape if len(text) <= MAX_REMEMBERED_LETTERS else _shape_of
    return find(text, is_python)


def _shape_of(text: str, is_python: bool) -> _Shape:
    tree = _parsed(text) if is_python else None
    functions = [] if tree is None else list(_functions(tree))
    documented = sum(ast.get_docstring(function) is not None for function in functions)
    named, written = _NAMED.search(text), _WRITTEN.search(text)
    return _Shape(len(functions), documented, named is not None, written is not None)


_known_shape = lru_cache(maxsize=MAX_REMEMBERED)(_shape_of)


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the functions of a module, by its statements alone: they are a fraction of it."""
    rest: list[ast.AST] = [tree]
    while rest:
        node = rest.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, name, ())
            rest += inner if isinstance(inner, list) else ()


def _look_into(tree: ast.Module | None, shape: _Shape, seen: _Seen) -> None:
    """Look at every expression; of what is no Python the words are all there is."""
    if tree is None:
        seen.names_submission |= shape.has_name
        seen.writes_file |= shape.has_verb
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str) and _NAMED.search(node.value):
                seen.names_submission = True
        elif isinstance(node, ast.Call):
            seen.writes_file = seen.writes_file or _is_writing(node)


def _ruff(texts: list[Text]) -> int | None:
    """Return how much ruff finds in the code, None where there is no ruff."""
    program = shutil.which("ruff", path=str(Path(sys.executable).parent)) or shutil.which("ruff")
    if program is None or not texts:
        return None
    with tempfile.TemporaryDirectory(prefix="mlebench-audit.") as scratch:
        for number, text in enumerate(texts):
            (Path(scratch) / f"part{number}.py").write_text(text.text, encoding="utf-8")
        words = ["check", "--isolated", "--no-cache", "--exit-zero", "--output-format=json"]
        try:
            done = subprocess.run(
                [program, *words, f"--select={RULES}", scratch],
                capture_output=True,
                timeout=RUFF_SECONDS,
                check=False,
            )
            return len(json.loads(done.stdout))
        except (OSError, ValueError, subprocess.TimeoutExpired):
            return None


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(_MAGIC.sub("", text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # hostile, or no Python
        return None


def _is_writing(call: ast.Call) -> bool:
    """Tell whether a call writes a file: by its name, or an open with a mode that does."""
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name != "open":
        return name in _WRITERS
    values = [*call.args, *(word.value for word in call.keywords if word.arg == "mode")]
    modes = [v.value for v in values if isinstance(v, ast.Constant) and isinstance(v.value, str)]
    return any(re.fullmatch(r"[rbt+]*[wax][bt+]*", mode) for mode in modes)
