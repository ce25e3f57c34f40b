"""How an agent is found by what ``--mle-agent`` says: a name, a path or a command line."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from pytest_mlebench.agent import Agent
from pytest_mlebench.errors import ConfigError, UnknownName

_OPTION = "--mle-agent"
_MAKE_ONE = (
    f"; make one with pytest-mlebench init, or give {_OPTION} a folder with an agent.toml or a "
    "command such as 'python agent.py'"
)
_SCRIPTS = (".py", ".sh")


def find_agent(name: str, *, rootdir: Path, registered: Sequence[Agent] = ()) -> Agent:
    """Return the agent that *name* stands for; *registered* is what the hook says it is."""
    from pytest_mlebench.agents.definitions import (  # late on purpose: only with an agent
        answers,
        at_path,
        definitions,
    )

    if not name.strip():
        raise ConfigError(f"{_OPTION} is empty: give a name, a path or a command")
    path = _existing(name, rootdir)
    known = list(definitions(rootdir))
    found = {one.where: one for one in (*answers(name, registered), *known) if one.name == name}
    if path is not None and (here := at_path(path)) is not None:
        found.setdefault(here.where, here)
    if len(found) > 1:
        raise ConfigError(
            f"several agents are called {name!r}: {' and '.join(found)}; "
            f"rename all but one, or give {_OPTION} a path"
        )
    for definition in found.values():
        return definition.load()
    agent = _variant(name, rootdir) or _program(name, path) or _command(name, rootdir)
    if agent is None:
        raise UnknownName("agent", name, {one.name for one in known}, _MAKE_ONE)
    return agent


def known_agents(rootdir: Path) -> tuple[str, ...]:
    """Return the names of all agents that are defined somewhere; a hook may know more."""
    from pytest_mlebench.agents.definitions import definitions  # late on purpose: only on demand

    return tuple(dict.fromkeys(one.name for one in definitions(rootdir)))


def _places(name: str, rootdir: Path) -> Iterator[Path]:
    """Yield what a path may mean: as typed in this folder, or as an ini file says it."""
    written = Path(name).expanduser() if name.startswith("~") else Path(name)
    yield Path.cwd() / written
    yield rootdir / written


def _existing(name: str, rootdir: Path) -> Path | None:
    for path in _places(name, rootdir):
        if os.path.exists(path):  # noqa: PTH110  # a long command line is no error here
            return path  # not resolved: the python of a virtual environment is a link
    return None


def _variant(name: str, rootdir: Path) -> Agent | None:
    """Return the agent ``aide/dev`` of ``…/agents/aide/config.yaml`` for ``…/agents/aide/dev``."""
    # late: only for a name that is nothing else
    from pytest_mlebench.agents import reference_config

    for path in _places(name, rootdir):
        for folder in path.parents:
            file = folder / reference_config.FILE
            agent_id = path.relative_to(folder.parent).as_posix()
            if os.path.isfile(file) and agent_id in reference_config.list_ids(file):  # noqa: PTH113  # same
                return reference_config.read_agent(file, agent_id)
    return None


def _program(name: str, path: Path | None) -> Agent | None:
    """Return the agent that an executable is, or say what is wrong with what looks like a path."""
    if path is None:
        if " " not in name and (name[:1] in "/.~" or name.endswith((".toml", ".yaml", *_SCRIPTS))):
            raise ConfigError(f"{_OPTION} names a path that does not exist: {name}")
        return None
    if path.is_dir():
        if "/" not in name:
            return None  # a folder that merely has the name's letters
        raise ConfigError(f"{_OPTION} names a folder without agent.toml or config.yaml: {path}")
    if not os.access(path, os.X_OK):
        raise ConfigError(
            f"{_OPTION} names a file that is not executable: {path}; "
            f"give the whole command, such as {_OPTION}='python {name}'"
        )
    return Agent(name=path.stem, command=(str(path),))


def _command(line: str, rootdir: Path) -> Agent | None:
    if not any(map(str.isspace, line.strip())):
        return None
    try:
        words = shlex.split(line)
    except ValueError as problem:
        raise ConfigError(f"{_OPTION} cannot be split into words ({problem}): {line}") from None
    files = {word: path for word in words if (path := _existing(word, rootdir)) and path.is_file()}
    command = tuple(str(files.get(word, word)) for word in words)
    if shutil.which(command[0]) is None:
        raise ConfigError(f"{_OPTION} is no known agent, and no program is called {words[0]!r}")
    if len(words) > 1 and words[1].endswith(_SCRIPTS) and words[1] not in files:
        raise ConfigError(f"{_OPTION} names a script that does not exist: {words[1]}")
    return Agent(name=_called(words, files), command=command)


def _called(words: list[str], files: dict[str, Path]) -> str:
    """Return what a command is called: as its script, its module (``-m``), or its program."""
    for before, word in pairwise(words):
        if word in files:
            return files[word].stem
        if before == "-m":
            return word
    return Path(words[0]).stem
