"""Put the tree of the package, a line for each module, into ARCHITECTURE.md.

python scripts/architecture.py
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import readme

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "ARCHITECTURE.md"
WIDTH = 28  # of the column of names


def tree(folder: Path, depth: int = 0) -> Iterator[str]:
    """Yield a line for each module of a package, those of its packages below their names."""
    modules = sorted(path for path in folder.glob("*.py") if path.name != "__init__.py")
    yield from (_line(path.name, path, depth) for path in modules)
    for package in sorted(path.parent for path in folder.glob("*/__init__.py")):
        yield ""
        yield _line(f"{package.name}/", package / "__init__.py", depth)
        yield from tree(package, depth + 1)


def filled(text: str) -> str:
    """Return the page with the tree as it is."""
    content = "\n".join(tree(ROOT / "pytest_mlebench"))
    return readme.fill(text, "tree", f"```text\n{content}\n```\n")


def _line(name: str, module: Path, depth: int) -> str:
    return f"{'    ' * depth + name:<{WIDTH}} {_first_sentence(module)}".rstrip()


def _first_sentence(module: Path) -> str:
    """Return what a module says about itself, up to the first full stop."""
    text = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=[a-z`)])\.(?: |$)", paragraph)[0].rstrip(".")


def main() -> int:
    """Rewrite the page."""
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
