"""The sources of a Python function: its own module, and those it imports that are no package's.

Installed packages and the standard library take no part: they have versions. What is imported is
read from the source, so that a constant of another module counts as a function of it does.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

_INSTALLED = {"site-packages", "dist-packages"}
_OUR_OWN = __name__.partition(".")[0]


def imported_sources(module: str, file: Path) -> dict[str, Path]:
    """Return the files that a module consists of and imports, by the names of the modules."""
    found = {module: file}
    pending = [(module, file)]
    while pending:
        for name in _imports(*pending.pop()):
            if name not in found and (source := _source_of(name)) is not None:
                found[name] = source
                pending.append((name, source))
    return found


def _imports(module: str, file: Path) -> Iterator[str]:
    """Yield the names of modules that a source may mean by its imports."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    package = getattr(sys.modules.get(module), "__package__", None) or ""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _with_parents(alias.name)
        elif isinstance(node, ast.ImportFrom):
            relative = "." * node.level + (node.module or "")
            try:
                base = importlib.util.resolve_name(relative, package)
            except ImportError:
                continue
            yield from _with_parents(base)
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _with_parents(name: str) -> Iterator[str]:
    parts = name.split(".")
    yield from (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def _source_of(name: str) -> Path | None:
    """Return the source file of a module that is neither installed nor Python's nor ours."""
    if name.partition(".")[0] == _OUR_OWN:
        return None
    origin = _origin(name)
    if origin is None or not origin.endswith(".py"):
        return None
    path = Path(origin)
    libraries = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))
    if _INSTALLED.intersection(path.parts) or any(map(path.is_relative_to, libraries)):
        return None
    return path if path.is_file() else None


def _origin(name: str) -> str | None:
    """Return where a module comes from; nothing is imported to find out."""
    module = sys.modules.get(name)
    if module is not None:
        return getattr(module, "__file__", None)
    parent = name.rpartition(".")[0]
    if parent and parent not in sys.modules:
        return None
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return None
    return None if spec is None else spec.origin
