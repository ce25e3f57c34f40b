"""The identity of an attempt: everything that decides it, as short texts, and their fingerprint.

Two attempts with the same fingerprint would be the same attempt, so the second one is judged by the
first. Whatever differs makes another attempt in another folder. Values of secrets take no part: of
the environment the names count, and what ``agent.toml`` itself says about them.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from pytest_mlebench.agent import Agent
from pytest_mlebench.agents.command_files import modules_beside, named_paths
from pytest_mlebench.agents.content import content_digest, file_digest
from pytest_mlebench.budget import Budget

SHOWN_DIGITS = 12  # of a digest, where people see it
AGENT = "agent."


@dataclass(frozen=True)
class Identity:
    """Facts that decide an attempt: name to value, as texts."""

    facts: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def fingerprint(self) -> str:
        """Return what is the same only if all facts are."""
        return _digest(dict(self.facts))[:SHOWN_DIGITS]

    @property
    def agent_fingerprint(self) -> str:
        """Return the fingerprint of the agent alone, whatever it runs on and under."""
        return self.only(AGENT).fingerprint

    def only(self, prefix: str) -> Identity:
        """Return the facts whose names begin with *prefix*."""
        return Identity({k: v for k, v in self.facts.items() if k.startswith(prefix)})

    def with_facts(self, **facts: str) -> Identity:
        """Return the identity with further facts."""
        return Identity({**self.facts, **facts})

    def differences(self, other: Identity) -> list[str]:
        """Return a phrase for every fact that is another one in *other*."""
        names = dict.fromkeys((*self.facts, *other.facts))
        return [
            f"{name.replace('.', ' ').replace('_', ' ')} was {_shown(self.facts.get(name))}, "
            f"is {_shown(other.facts.get(name))}"
            for name in names
            if self.facts.get(name) != other.facts.get(name)
        ]


def identify_agent(
    agent: Agent, *, hidden: Iterable[Path] = (), image: str | None = None
) -> Identity:
    """Return what an agent is: its name, version, command, files, image, variables and models."""
    hidden = agent.without_image(hidden)
    facts = {
        "agent.name": agent.name,
        "agent.version": agent.version or "",
        "agent.command": json.dumps([_word(agent, word) for word in agent.command]),
        "agent.env": f"{' '.join(sorted(agent.env))} {_digest(dict(agent.env))[:SHOWN_DIGITS]}",
        "agent.options": _digest([agent.runtime, agent.mounts, agent.devices, agent.privileged]),
    }
    if agent.models:
        facts["agent.models"] = _digest([upstream.to_dict() for upstream in agent.models])
    if agent.folder is not None:
        facts["agent.files"] = content_digest(agent.folder, hidden)
    if agent.build is not None:
        facts["agent.build"] = content_digest(agent.build, hidden)
    if image is not None and agent.build is None:  # what is built may differ from host to host
        facts["agent.image"] = image
    if agent.function is not None:
        facts["agent.function"] = _function(agent.function)
    if named := _named(agent, hidden):
        facts["agent.named_files"] = _digest(named)
    return Identity(facts)


def budget_facts(agent: Agent, budget: Budget) -> dict[str, str]:
    """Return what a budget decides about an attempt; what all attempts share decides none."""
    if not agent.models:
        return {}
    return {"budget": replace(budget, session_usd=None).describe()}


def _word(agent: Agent, word: str) -> str:
    """Return a word of a command; a file outside the agent's folder is its name."""
    if word == sys.executable:
        return f"python {platform.python_version()}"
    path = Path(word)
    if agent.folder is not None and path.is_relative_to(agent.folder):
        return str(path.relative_to(agent.folder))
    return path.name if path.is_absolute() and path.is_file() else word


def _named(agent: Agent, hidden: Iterable[Path]) -> dict[str, str]:
    """Return what the files that a command names, and modules beside them, amount to."""
    found: dict[str, str] = {}
    for named in named_paths(agent.command[1:]):
        if agent.folder is not None and named.is_relative_to(agent.folder):
            continue
        for path in (named, *modules_beside(named)):
            if path != named and _is_test(path.name):
                continue
            if path.is_file():
                found[path.name] = file_digest(path)
            elif path != named:  # a package; a folder that is only named may be of any size
                found[path.name] = content_digest(path, hidden)
    return found


def _is_test(name: str) -> bool:
    """Tell whether a file is collected by pytest: tests beside a script are no part of an agent."""
    return name == "conftest.py" or name.startswith("test_") or name.endswith("_test.py")


def _function(function: Callable[..., Any], seen: tuple[object, ...] = ()) -> str:
    """Return what a Python agent does: its source, and the plain values it has taken along.

    Where it holds values that cannot be compared, it is like no other, not even of the next
    session: better one attempt too many than one under a wrong name.
    """
    if isinstance(function, partial):
        given = (*function.args, *sorted(function.keywords.items()))
        return f"{_function(function.func, seen)} {_digest([_value(v, seen) for v in given])}"
    code = getattr(function, "__code__", None)
    if code is None:
        return f"unique {uuid.uuid4().hex}"
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    held = (*cells, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items())
    source = _sources(function.__module__, Path(code.co_filename)) or code.co_code.hex()
    values = _digest([_value(value, (*seen, function)) for value in held])
    return f"{function.__module__}.{function.__qualname__} {source} {values}"


def _sources(module: str, file: Path) -> str | None:
    """Return what a module's own source amounts to, with all it imports that is not installed."""
    from pytest_mlebench.agents.imported_sources import imported_sources  # late: rarely needed

    if not file.is_file():
        return None
    sources = imported_sources(module, file)
    return _digest({name: file_digest(path) for name, path in sources.items()})


def _value(value: Any, seen: tuple[object, ...]) -> Any:
    """Return a value in JSON types that are the same only if the value is."""
    match value:
        case str() | int() | float() | bytes() | None | os.PathLike():
            plain: Any = repr(value)
        case list() | tuple():
            plain = [_value(each, seen) for each in value]
        case set() | frozenset():
            plain = sorted(_digest(_value(each, seen)) for each in value)
        case dict():
            plain = [[_value(key, seen), _value(inner, seen)] for key, inner in value.items()]
        case _ if any(value is other for other in seen):
            plain = "itself"
        case _ if isinstance(value, partial) or hasattr(value, "__code__"):
            plain = _function(value, seen)
        case _:
            plain = f"unique {uuid.uuid4().hex}"
    return plain


def _digest(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def _shown(value: str | None) -> str:
    if value is None:
        return "not known"
    if len(value) == 64 and not value.strip("0123456789abcdef"):
        return value[:SHOWN_DIGITS]
    return value or "nothing"
