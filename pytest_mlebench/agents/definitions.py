"""Where names of agents are defined, in the order in which a user would look for them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from pytest_mlebench import __version__
from pytest_mlebench.agent import Agent
from pytest_mlebench.agents import agent_toml, reference_config
from pytest_mlebench.errors import ConfigError

ENTRY_POINTS = "pytest_mlebench.agents"
BUILTIN = ("dummy", "baseline")


@dataclass(frozen=True)
class Definition:
    """A name, where it is defined, and how to load what it stands for."""

    name: str
    where: str
    load: Callable[[], Agent]


def answers(name: str, registered: Sequence[Agent]) -> Iterator[Definition]:
    """Yield what a hook says that *name* stands for, whatever the agents call themselves."""
    for number, agent in enumerate(registered, start=1):
        yield Definition(name, f"the hook's answer {number}", partial(_itself, agent))


def definitions(rootdir: Path) -> Iterator[Definition]:
    """Yield every definition, nothing loaded yet."""
    yield from _in_project(rootdir / "pyproject.toml")
    yield from _in_folders(rootdir / "agents")
    yield from _in_entry_points()
    for name in BUILTIN:
        yield Definition(name, "the built-in agents", partial(builtin_agent, name))


def at_path(path: Path) -> Definition | None:
    """Return the agent that a folder or a file describes, if it is one of an agent."""
    path = path.resolve()
    if path.is_dir():
        file = path / agent_toml.FILE
        return at_path(file if file.is_file() else path / reference_config.FILE)
    if path.suffix == ".toml" and path.is_file():
        return Definition(path.parent.name, str(path), partial(agent_toml.read_agent, path))
    if path.name == reference_config.FILE and path.is_file() and _is_ours(path):
        return Definition(path.parent.name, str(path), partial(reference_config.read_agent, path))
    return None


def _is_ours(file: Path) -> bool:
    """Tell the reference's ``config.yaml`` from others of that name, even if it is broken."""
    return bool(reference_config.list_ids(file)) or (file.parent / agent_toml.START).is_file()


def builtin_agent(name: str) -> Agent:
    """Return an agent that comes with the plugin: a folder that Python can run."""
    folder = Path(__file__).parent / name
    return Agent(
        name=name, version=__version__, command=(sys.executable, str(folder)), folder=folder
    )


def _in_project(file: Path) -> Iterator[Definition]:
    for name, table in agent_toml.read_project(file).items():
        load = partial(agent_toml.parse_agent, table, name=name, base=file.parent)
        yield Definition(name, table.where, load)


def _in_folders(folder: Path) -> Iterator[Definition]:
    for child in sorted(folder.iterdir()) if folder.is_dir() else ():
        definition = at_path(child) if child.is_dir() else None
        if definition is None:
            continue
        yield definition
        file = Path(definition.where)
        for agent_id in (
            reference_config.list_ids(file) if file.name == reference_config.FILE else ()
        ):
            if agent_id != definition.name:
                load = partial(reference_config.read_agent, file, agent_id)
                yield Definition(agent_id, definition.where, load)


def _in_entry_points() -> Iterator[Definition]:
    for entry in entry_points(group=ENTRY_POINTS):
        owner = "?" if entry.dist is None else entry.dist.name
        where = f"the entry point {entry.name} = {entry.value} of {owner}"
        yield Definition(entry.name, where, partial(_loaded, entry, where))


def _loaded(entry: EntryPoint, where: str) -> Agent:
    try:
        value = entry.load()
        agent = value() if callable(value) else value
    except Exception as error:  # anything may happen in somebody else's module
        raise ConfigError(f"{where} failed: {type(error).__name__}: {error}") from error
    if isinstance(agent, str | Path):
        return agent_toml.read_agent(Path(agent))
    if not isinstance(agent, Agent):
        raise ConfigError(
            f"{where} must give an Agent or the path of an agent.toml, given: {agent!r}"
        )
    return agent


def _itself(agent: Agent) -> Agent:
    return agent
