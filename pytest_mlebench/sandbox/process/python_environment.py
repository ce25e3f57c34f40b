"""What a Python consists of: its folder, the one it is based on, packages installed in place."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from pytest_mlebench.agents.command_files import modules_in

# of the finder that setuptools writes for an editable installation
_MAPPING = re.compile(r"^MAPPING(?::[^=]*)? = (\{.*\})", re.MULTILINE)


def own_environment() -> Iterator[Path]:
    """Yield what the Python that runs us consists of."""
    for prefix in dict.fromkeys((sys.prefix, sys.base_prefix)):
        yield from environment(Path(prefix))
    yield from _executable(Path(sys.executable))


def environment_of(program: Path) -> Iterator[Path]:
    """Yield the environment that a program is installed in, if it is in one."""
    for path in (program, Path(os.path.realpath(program))):
        prefix = path.parent.parent
        if (prefix / "pyvenv.cfg").is_file() or (prefix / "conda-meta").is_dir():
            yield from environment(prefix)
        elif path.name.startswith("python"):
            yield from _executable(path)


def environment(prefix: Path) -> Iterator[Path]:
    """Yield a Python's own folder, what it is based on, and what is installed in place."""
    yield prefix
    yield from _executable(prefix / "bin" / "python")
    for folder in prefix.glob("lib/python3*/site-packages"):
        for file in folder.glob("*.pth"):
            yield from _packages_by_path(file)
        for file in folder.glob("__editable__*_finder.py"):
            yield from _packages_by_finder(file)


def environment_in(prefix: Path, folder: Path) -> Iterator[Path]:
    """Yield the same for an environment in an agent's folder, which may lead wherever it likes.

    Of what is installed in place there is only what is in that folder too.
    """
    based_on = set(_executable(prefix / "bin" / "python"))
    for path in environment(prefix):
        if path in based_on or Path(os.path.realpath(path)).is_relative_to(folder.resolve()):
            yield path


def _executable(program: Path) -> Iterator[Path]:
    """Yield the folder of the Python that a link in a virtual environment leads to, if to one."""
    found = Path(os.path.realpath(program)).parent.parent
    if any(found.glob("lib*/python3*/os.py")):
        yield found


def _packages_by_path(file: Path) -> Iterator[Path]:
    """Yield the packages in the folders that a ``.pth`` file adds to the path, see site(3)."""
    for line in _text(file).splitlines():
        if line.startswith("/") and (folder := Path(line.strip())).is_dir():
            yield from modules_in(folder)


def _packages_by_finder(file: Path) -> Iterator[Path]:
    match = _MAPPING.search(_text(file))
    if match is None:
        return
    try:
        mapping = ast.literal_eval(match[1])
    except (ValueError, SyntaxError):
        return
    for value in mapping.values():
        for path in (Path(value), Path(f"{value}.py")):
            if path.exists():
                yield path


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
