"""Put what the code knows into the pages: options, fixtures, hooks, commands, names, differences.

    python scripts/readme.py [--demo FILE]

With ``--demo`` the output of ``make demo`` in FILE is put into the README.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable
from dataclasses import is_dataclass
from pathlib import Path

import differences

import pytest_mlebench
from pytest_mlebench import layout
from pytest_mlebench.cli import COMMANDS
from pytest_mlebench.plugin import fixtures as fixture_module
from pytest_mlebench.plugin import hookspecs
from pytest_mlebench.plugin.options import OPTIONS

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
REFERENCE = ROOT / "docs" / "reference.md"
DIFFERENCES = ROOT / "docs" / "differences.md"


def options() -> str:
    """Return the options as a Markdown table."""
    rows = ["| option | meaning |", "|---|---|"]
    rows += [f"| `{o.usage}` | {o.help} |".replace("|LEVEL", "LEVEL") for o in OPTIONS]
    return "\n".join(rows) + "\n"


def fixtures() -> str:
    """Return the fixtures as a Markdown table, in the words of their docstrings."""
    rows = ["| fixture | what |", "|---|---|"]
    for name, value in vars(fixture_module).items():
        if name.startswith("mle_"):
            rows.append(f"| `{name}` | {_prose(_function(value))} |")
    return "\n".join(rows) + "\n"


def hooks() -> str:
    """Return the hooks with their signatures."""
    parts = []
    for name, function in vars(hookspecs).items():
        if name.startswith("pytest_mle_"):
            taken = ", ".join(inspect.signature(function).parameters)
            returned = str(inspect.signature(function).return_annotation)
            parts.append(f"- `{name}({taken}) -> {returned}`: {_prose(function)}")
    return "\n".join(parts) + "\n"


def commands() -> str:
    """Return the commands beside pytest as a Markdown table."""
    rows = ["| command | what it does |", "|---|---|"]
    rows += [f"| `pytest-mlebench {name}` | {text} |" for name, (text, _) in COMMANDS.items()]
    return "\n".join(rows) + "\n"


def names() -> str:
    """Return the public names as a Markdown table."""
    rows = ["| name | what |", "|---|---|"]
    for name in pytest_mlebench.__all__:
        rows.append(f"| `{name}` | {_prose(getattr(pytest_mlebench, name))} |")
    return "\n".join(rows) + "\n"


def fields() -> str:
    """Return the fields of the public classes, a table for each, in the words of their comments."""
    parts = []
    for name in pytest_mlebench.__all__:
        found = documented_fields(getattr(pytest_mlebench, name))
        if found:
            parts += [f"### {name}", "", "| field | type | what |", "|---|---|---|"]
            cells = ((each, kind.replace("|", "\\|"), what) for each, kind, what in found)
            parts += [f"| `{each}` | `{kind}` | {what} |" for each, kind, what in cells]
            parts.append("")
    return "\n".join(parts)


def documented_fields(thing: object) -> list[tuple[str, str, str]]:
    """Return name, type and comment of every field of a class that consists of fields."""
    if not (inspect.isclass(thing) and (is_dataclass(thing) or hasattr(thing, "_fields"))):
        return []
    source = inspect.getsource(thing)
    lines = source.splitlines()
    body = next(node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)).body
    return [
        (ast.unparse(node.target), ast.unparse(node.annotation), _comment(lines, node))
        for node in body
        if isinstance(node, ast.AnnAssign)
    ]


def _comment(lines: list[str], node: ast.AnnAssign) -> str:
    """Return the comment behind a field, else the lines of comment above it."""
    code = lines[(node.end_lineno or node.lineno) - 1]
    _, _, behind = code[node.end_col_offset or 0 :].partition("#")
    above: list[str] = []
    for line in reversed(lines[: node.lineno - 1]):
        if not line.lstrip().startswith("#"):
            break
        above.insert(0, line.strip("# "))
    return behind.strip() or " ".join(above)


def files() -> str:
    """Return the layout of a run's folder, as its module describes it."""
    text = (layout.__doc__ or "").split("\n\n", 1)[1].rstrip()
    return f"```text\n{text}\n```\n"


def fill(text: str, mark: str, content: str) -> str:
    """Return *text* with *content* between ``<!-- mark -->`` and ``<!-- end mark -->``."""
    start, end = f"<!-- {mark} -->", f"<!-- end {mark} -->"
    block = f"{start}\n\n{content}\n{end}"
    if end in text:
        return re.sub(re.escape(start) + ".*?" + re.escape(end), lambda _: block, text, flags=re.S)
    return text.replace(start, block)


SECTIONS: dict[Path, dict[str, Callable[[], str]]] = {
    REFERENCE: {
        "options": options,
        "fixtures": fixtures,
        "hooks": hooks,
        "commands": commands,
        "names": names,
        "fields": fields,
        "files": files,
    },
    DIFFERENCES: {"differences": differences.table},
}


def filled(page: Path) -> str:
    """Return a page with its tables as they are to be."""
    text = page.read_text(encoding="utf-8")
    for mark, content in SECTIONS[page].items():
        text = fill(text, mark, content())
    return text


def main(arguments: list[str]) -> int:
    """Rewrite the pages."""
    for page in SECTIONS:
        page.write_text(filled(page), encoding="utf-8")
    if arguments[:1] == ["--demo"]:
        output = Path(arguments[1]).read_text(encoding="utf-8").rstrip()
        text = README.read_text(encoding="utf-8")
        README.write_text(fill(text, "demo output", f"```text\n{output}\n```\n"), encoding="utf-8")
    return 0


def _function(fixture: object) -> object:
    """Return what a fixture was made of."""
    return getattr(fixture, "_fixture_function", None) or getattr(fixture, "__wrapped__", fixture)


def _prose(thing: object) -> str:
    text = " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
