"""An agent as the reference implementation describes it: ``agents/NAME/config.yaml``.

A file holds several agents: each top-level key with a ``start`` is an agent's id, such as ``aide``
or ``aide/dev``; paths are relative to the folder above the file's own. Other keys carry YAML
anchors. The image is called as the file's folder, which is also what it is built from.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_mlebench._toml import Table
from pytest_mlebench.agent import Agent, check_models, parse_env, start_script
from pytest_mlebench.agents.model_tables import parse_bounds, parse_models
from pytest_mlebench.budget import Budget
from pytest_mlebench.errors import AgentFileError, UnknownName, did_you_mean

FILE = "config.yaml"
KEYS = (
    *("start", "dockerfile", "image", "kwargs", "kwargs_type", "env_vars", "privileged"),
    *("models", "budget"),  # of our own
)
TIME_LIMIT = "TIME_LIMIT_SECS"  # what agents of the reference plan their time by

_SECRET = re.compile(r"\$\{\{\s*secrets\.(\w+)\s*\}\}")
_ANCHOR = "defaults"  # has a start, but only for the agents below it to inherit


def list_ids(file: Path) -> tuple[str, ...]:
    """Return the ids of the agents in a ``config.yaml``; none if it is something else."""
    try:
        return tuple(_entries(file))
    except AgentFileError:
        return ()  # said when an agent of this file is asked for; others need not suffer


def read_agent(file: Path, agent_id: str | None = None) -> Agent:
    """Return one agent of a ``config.yaml``: *agent_id*, else the one called as the folder."""
    file = file.absolute()
    entries = _entries(file)
    name = agent_id or (next(iter(entries)) if len(entries) == 1 else file.parent.name)
    if name not in entries:
        raise UnknownName(f"agent in {file}:", name, entries)
    given = {key: value for key, value in entries[name].items() if value is not None}
    return _agent(name, Table(given, f"{file}: {name}", AgentFileError), file.parent)


def _entries(file: Path) -> dict[str, Mapping[str, Any]]:
    content = _load(file)
    if not isinstance(content, dict):
        raise AgentFileError(f"{file}: must map agent ids to tables, given: {content!r:.60}")
    return {
        str(key): entry
        for key, entry in content.items()
        if isinstance(entry, dict) and "start" in entry and key != _ANCHOR
    }


def _load(file: Path) -> Any:
    import yaml  # late on purpose: only agents of the reference implementation need it

    try:
        return yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as problem:
        raise AgentFileError(f"{file}: cannot be read: {problem.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as problem:
        raise AgentFileError(f"{file}: not valid YAML: {' '.join(str(problem).split())}") from None


def _agent(name: str, table: Table, folder: Path) -> Agent:
    start = _file(table, "start", folder)
    image = table.text("image", None)
    build = None if image else _dockerfile(table, folder).parent
    words, secrets = _arguments(table)
    env = table.table("env_vars", None)
    models, budget = table.table("models", None), table.table("budget", None)
    variables = {} if env is None else {k: _reference(v) for k, v in env.take_all().items()}
    agent = Agent(
        name=name,
        command=start_script(start.name, *words),
        folder=start.parent,
        image=image or folder.name,
        build=build,
        env=parse_env(variables, f"{table.where}: env_vars") | secrets,
        models=() if models is None else parse_models(_with_references(models)),
        budget=Budget() if budget is None else parse_bounds(budget),
        privileged=table.flag("privileged", False),
        time_variables=(TIME_LIMIT,) if TIME_LIMIT in variables else (),
        notes=tuple(_passed_over(table, key) for key in table.take_all()),
    )
    check_models(agent, table.where)
    return agent


def _passed_over(table: Table, key: str) -> str:
    return f"{table.where}: {key} is passed over: not a known key{did_you_mean(key, KEYS)}"


def _file(table: Table, key: str, folder: Path) -> Path:
    path = (folder.parent / table.text(key)).resolve()
    if not path.is_file():
        raise table.error(key, f"names a file that does not exist: {path}")
    return path


def _dockerfile(table: Table, folder: Path) -> Path:
    path = _file(table, "dockerfile", folder)
    if path.name != "Dockerfile":
        raise table.error("dockerfile", f"must be called Dockerfile, given: {path}")
    return path


def _arguments(table: Table) -> tuple[list[str], dict[str, str]]:
    """Return the start script's arguments as shell words, and the variables that carry secrets."""
    kwargs = table.table("kwargs", None)
    style = table.text("kwargs_type", None)
    values = {} if kwargs is None else kwargs.take_all()
    if values and style is None:
        raise table.error("kwargs_type", "is missing: kwargs need argparse or omegaconf")
    if style not in {None, "argparse", "omegaconf"}:
        raise table.error("kwargs_type", f"must be argparse or omegaconf, given: {style!r}")
    secrets: dict[str, str] = {}
    if style == "omegaconf":
        return [_word(f"{key}={value}", secrets) for key, value in values.items()], secrets
    pairs = ((f"--{key}", str(value)) for key, value in values.items())
    return [_word(word, secrets) for pair in pairs for word in pair], secrets


def _word(value: str, secrets: dict[str, str]) -> str:
    """Return a shell word; a secret in it comes from a variable and never stands in the command."""
    pieces: list[str] = []
    for position, piece in enumerate(_SECRET.split(value)):  # text and names of secrets in turn
        if position % 2:
            secrets[f"MLE_SECRET_{piece}"] = f"${{{piece}}}"
            pieces.append(f'"$MLE_SECRET_{piece}"')
        elif piece:
            pieces.append(shlex.quote(piece))
    return "".join(pieces) or "''"


def _with_references(tables: Table) -> Table:
    """Return the tables of models with their keys as ``agent.toml`` would have them."""
    content = {
        name: {key: _reference(value) if key == "key" else value for key, value in model.items()}
        if isinstance(model, dict)
        else model
        for name, model in tables.take_all().items()
    }
    return Table(content, tables.where, AgentFileError)


def _reference(value: object) -> str:
    return _SECRET.sub(r"${\1}", str(value))
