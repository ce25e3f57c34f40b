"""Make the repository of an agent that passes at once: the agent, its tests, a gate for releases.

    pytest-mlebench init my-agent
    cd my-agent
    pytest

Nothing that exists is replaced. The kind is command (a program, run as a process), python (a
function
in a conftest.py), docker (a program in an image) or reference (as the reference implementation has
its agents: config.yaml, start.sh, Dockerfile).
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from pytest_mlebench.commands.shared import say
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.scaffolds.write import TEMPLATES, fill, templates, write_scaffold

KINDS = ("command", "python", "docker", "reference")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "folder", nargs="?", type=Path, default=Path(), metavar="DIR", help="default: this folder"
    )
    parser.add_argument(
        "--kind", choices=KINDS, default="command", help="what the agent is (default: %(default)s)"
    )
    parser.add_argument("--name", metavar="NAME", help="the agent's name (default: the folder's)")


def run(args: argparse.Namespace) -> int:
    """Write the repository and say what to do next."""
    folder: Path = args.folder
    name = args.name or re.sub(r"[^a-z0-9._-]+", "-", folder.resolve().name.lower()).strip("-._")
    if not _NAME.fullmatch(name):
        raise ConfigError(f"--name must be small letters, digits and ._-, given: {name!r}")
    paths = write_scaffold(folder, repository(args.kind, name))
    for path in paths:
        say(f"wrote {path}")
    say(f"next: {'' if folder == Path() else f'cd {folder} && '}pytest")
    return 0


def repository(kind: str, name: str) -> dict[str, str]:
    """Return the files of a repository."""
    code = (TEMPLATES / "agent" / "agent.py.txt").read_text(encoding="utf-8")
    main = (TEMPLATES / "agent" / "main.txt").read_text(encoding="utf-8")
    if kind == "python":
        place, program, where = "solver.py", code.replace("import os\n", ""), _IN_PYTHON
    else:
        place, program, where = f"agents/{name}/agent.py", code + main, _IN_FOLDER[kind]
    values = {"NAME": name, "WHERE": fill(where, {"NAME": name})}
    files = templates("agent/common", f"agent/{kind}") | {place: program}
    return {
        path.replace("agents/NAME/", f"agents/{name}/"): fill(text, values)
        for path, text in files.items()
    }


_IN_PYTHON = "- `solver.py` is the agent, `conftest.py` hands it to the tests as `mle_agent`"
_IN_FOLDER = {
    "command": "- `agents/@NAME@/` is the agent: `agent.toml` says how it starts",
    "docker": "- `agents/@NAME@/` is the agent: `agent.toml`, its program, its `Dockerfile`",
    "reference": "- `agents/@NAME@/` is the agent, declared as for the reference implementation",
}
