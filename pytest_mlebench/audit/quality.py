"""The quality of an attempt's code in figures: for information, never a reproach."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pytest_mlebench.audit.attempt_files import AttemptFiles, Text

RULES = "E4,E7,E9,F,B,SIM,UP"  # errors, unused names, likely bugs, needless code: no layout
RUFF_SECONDS = 30

_NAMED = re.compile(r"submission", re.IGNORECASE)  # submission.csv, $SUBMISSION_DIR
_WRITTEN = re.compile(r"write[._]?csv|fwrite|CSV\.write|to_csv|>\s*\S*submission")
_MAGIC = re.compile(r"^[ \t]*[%!].*$", re.MULTILINE)  # of a notebook's cells
_WRITERS = {
    *("to_csv", "write_csv", "savetxt", "writerow", "writerows", "write", "writelines"),
    *("write_text", "write_bytes", "copy", "copyfile", "copy2", "move", "tofile"),
}


def figures(attempt: AttemptFiles, *, ruff: bool = True) -> dict[str, Any]:
    """Return size, style, comments and completeness of the code that was kept."""
    python = [text for text in attempt.code if text.place.endswith((".py", ".ipynb"))]
    lines = sum(_lines(text.text) for text in attempt.code)
    documented, functions = _docstrings(python)
    findings = _ruff(python) if lines and ruff else None
    found = {
        "files": len(attempt.code),
        "lines": lines,
        "ruff_per_100_lines": None if findings is None else round(100 * findings / lines, 2),
        "functions": functions,
        "docstrings": round(documented / functions, 3) if functions else None,
        "readme": any(Path(name).stem.lower() == "readme" for name in attempt.code_files),
        "writes_submission": _writes_submission(attempt.code),
    }
    return {name: value for name, value in found.items() if value is not None}


def _lines(text: str) -> int:
    return sum(bool(line.strip()) for line in text.splitlines())


def _docstrings(texts: Iterable[Text]) -> tuple[int, int]:
    """Return how many functions have a docstring, and how many there are."""
    documented = functions = 0
    for text in texts:
        tree = _parsed(text.text)
        for node in () if tree is None else ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                functions += 1
                documented += ast.get_docstring(node) is not None
    return documented, functions


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


def _writes_submission(texts: Iterable[Text]) -> bool:
    """Tell whether the code that was kept both names a submission and writes some file."""
    names = writes = False
    for text in texts:
        tree = _parsed(text.text)
        if tree is None:  # a script of another language, or broken
            names = names or _NAMED.search(text.text) is not None
            writes = writes or _WRITTEN.search(text.text) is not None
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                names = names or _NAMED.search(node.value) is not None
            writes = writes or (isinstance(node, ast.Call) and _is_writing(node))
    return names and writes


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
