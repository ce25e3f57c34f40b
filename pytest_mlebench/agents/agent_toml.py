"""An agent as ``agent.toml`` or a ``[tool.mlebench.agents.NAME]`` table describes it."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_mlebench._toml import Table, read_toml
from pytest_mlebench.agent import (
    Agent,
    check_models,
    parse_env,
    parse_network,
    start_script,
)
from pytest_mlebench.agents.model_tables import parse_bounds, parse_models
from pytest_mlebench.budget import Budget
from pytest_mlebench.errors import AgentFileError
from pytest_mlebench.limits import STANDARD, Limits

FILE = "agent.toml"
START = "start.sh"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+-]*")
_MOUNT = re.compile(r"(?P<source>[^:]+):(?P<target>/[^:]*)(?P<mode>:ro|:rw)?")


def read_agent(file: Path) -> Agent:
    """Read an ``agent.toml``; the agent is called as its folder unless the file says otherwise."""
    file = file.absolute()
    return parse_agent(read_toml(file, AgentFileError), name=file.parent.name, base=file.parent)


def read_project(file: Path) -> dict[str, Table]:
    """Return the tables below ``[tool.mlebench.agents]`` by name; none where there is no file."""
    if not file.is_file():
        return {}
    tool = read_toml(file, AgentFileError).table("tool", None)
    project = tool and tool.table("mlebench", None)
    if not project:
        return {}
    agents = project.table("agents", None)
    project.finish()
    return {} if agents is None else agents.all_tables()


def parse_agent(table: Table, *, name: str, base: Path) -> Agent:
    """Return the agent of a strict table; relative paths are relative to *base*."""
    folder = _folder(table, base)
    build = table.text("build", None)
    network = table.text("network", None)
    limits = table.table("limits", None)
    env = table.table("env", None)
    models = table.table("models", None)
    budget = table.table("budget", None)
    agent = Agent(
        name=table.text("name", name),
        version=table.text("version", None),
        command=_command(table, folder),
        folder=folder,
        image=_image(table, base),
        build=None if build is None else _build(table, (base / build).resolve()),
        env={} if env is None else parse_env(env.take_all(), env.where),
        models=() if models is None else parse_models(models),
        budget=Budget() if budget is None else parse_bounds(budget),
        limits={} if limits is None else _limits(limits),
        network=network and parse_network(network, f"{table.where}: network"),
        runtime=table.text("runtime", None),
        mounts=tuple(_mount(table, mount, base) for mount in table.texts("mounts", ())),
        devices=table.texts("devices", ()),
        privileged=table.flag("privileged", False),
        llms=table.one_or_more("llms", ()),
        url=table.text("url", None),
        paper=table.text("paper", None),
        statement=table.text("statement", None),
    )
    table.finish()
    if not _NAME.fullmatch(agent.name):
        raise table.error("name", f"must be letters, digits and ._/+-, given: {agent.name!r}")
    if not (agent.command or agent.image or agent.build):
        raise table.error("command", f"is missing: give a command, an image, a build or a {START}")
    check_models(agent, table.where)
    return agent


def _folder(table: Table, base: Path) -> Path:
    folder = (base / table.text("folder", ".")).resolve()
    if not folder.is_dir():
        raise table.error("folder", f"must be a folder, given: {folder}")
    return folder


def _command(table: Table, folder: Path) -> tuple[str, ...]:
    command = _words(table)
    start = table.text("start", None)
    if command and start:
        raise table.error("start", "cannot stand beside command: one of them starts the agent")
    if command:
        return command
    if start is None:
        return start_script(START) if (folder / START).is_file() else ()
    if not (folder / start).is_file():
        raise table.error("start", f"names a file that does not exist: {folder / start}")
    if not (folder / start).resolve().is_relative_to(folder):
        raise table.error("start", f"must be inside the agent's folder {folder}, given: {start!r}")
    return start_script(start)


def _words(table: Table) -> tuple[str, ...]:
    command = table.words("command", ())
    for word in command:
        if re.fullmatch(r"\$\{\w+\}", word):
            raise table.error(
                "command", f"is not searched for references, put {word} into env, given: {word!r}"
            )
    return command


def _build(table: Table, folder: Path) -> Path:
    if not (folder / "Dockerfile").is_file():
        raise table.error("build", f"must be a folder with a Dockerfile, given: {folder}")
    return folder


def _image(table: Table, base: Path) -> str | None:
    """Return an image's name, or the absolute path of its archive."""
    image = table.text("image", None)
    if image is None or not (image.endswith(".tar") or image.startswith(("/", "./", "../", "~"))):
        return image
    return str((base / Path(image).expanduser()).resolve())


def _limits(table: Table) -> dict[str, object]:
    limits = table.take_all()
    Limits.from_table(limits, where=table.where, base=STANDARD)
    return limits


def _mount(table: Table, mount: str, base: Path) -> str:
    match = _MOUNT.fullmatch(mount)
    if match is None:
        raise table.error(
            "mounts", f"must be SOURCE:/TARGET or SOURCE:/TARGET:ro, given: {mount!r}"
        )
    source = base / Path(match["source"]).expanduser()
    return f"{source}:{match['target']}{match['mode'] or ''}"
