"""Which walls there are on this host: tried out once, named, and what is missing in words.

found = strongest(offline=False)
found.walls                # ("users", "mounts", "pids", "ipc", "uts", "seccomp", "landlock-7")
missing(found.walls)       # {"cgroup": "memory and processes are counted, not bounded …"}
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from pytest_mlebench.errors import SandboxError
from pytest_mlebench.host.demo_limits import demo_limits
from pytest_mlebench.sandbox.process import bubblewrap, kernel, landlock
from pytest_mlebench.sandbox.process.order import Builder, Order, Step
from pytest_mlebench.sandbox.process.supervised import Supervised
from pytest_mlebench.sandbox.process.view import bare_view, interpreter_view
from pytest_mlebench.sandbox.process.workspace import give, user_for

BUILDERS: tuple[Builder, ...] = ("bubblewrap", "namespaces", "none")  # the first that works is used

_MEANING = {
    "users": "the agent has the rights of whoever runs pytest",
    "mounts": "it reaches sockets of daemons, and can change modes and times of your files",
    "pids": "it sees your processes",
    "ipc": "it shares memory with your processes, and what it leaves there stays",
    "uts": "it has this host's name",
    "net": "it has this host's network",
    "seccomp": "it can make every system call",
    "landlock": "a second wall around files is not there",
    "cgroup": "memory and processes are counted, not bounded by the kernel",
    "disk": "what it writes is counted, not bounded by the kernel",
}


@dataclass(frozen=True)
class Strength:
    """The strongest walls that can be built here."""

    builder: Builder
    walls: tuple[str, ...]
    problems: tuple[str, ...] = ()  # of the builders that were tried before

    @property
    def kinds(self) -> tuple[str, ...]:
        """Return the walls without their versions."""
        return tuple(wall.partition("-")[0] for wall in self.walls)


@lru_cache(maxsize=8)
def strongest(
    *,
    offline: bool,
    cgroup: bool = True,
    builders: tuple[Builder, ...] = BUILDERS,
    root: str = "",
) -> Strength:
    """Return what the first builder gives that works here, by building it around nothing.

    With a *root*, by entering that one.
    """
    problems = []
    for builder in builders:
        if builder == "bubblewrap" and bubblewrap.find() is None:
            continue
        if builder != "none" and not kernel.LINUX:
            continue
        try:
            walls = _try(builder, offline=offline and builder != "none", cgroup=cgroup, root=root)
        except SandboxError as problem:
            problems.append(f"{builder}: {problem}")
        else:
            return Strength(builder, walls, tuple(problems))
    raise SandboxError(f"an agent cannot be started here: {'; '.join(problems)}")


def missing(
    walls: Sequence[str], *, network: str = "open", disk: bool = False
) -> Mapping[str, str]:
    """Return the walls that are not there and what that means, in words."""
    needless = {*(() if network == "none" else ("net",)), *(() if disk else ("disk",))}
    wanted = [name for name in _MEANING if name not in needless]
    kinds = {wall.partition("-")[0] for wall in walls}
    found = {name: _MEANING[name] for name in wanted if name not in kinds}
    version = next((int(wall[9:]) for wall in walls if re.fullmatch(r"landlock-\d+", wall)), 0)
    if version and (lacks := _old_landlock(version, kinds, network)):
        found[f"landlock-{landlock.SIGNALS}"] = f"version {version} does not stop {lacks}"
    return found


def _old_landlock(version: int, others: set[str], network: str) -> str:
    """Return what an old version of Landlock lets pass that no other wall stops."""
    lacks = []
    if version < landlock.TRUNCATION and "mounts" not in others:
        lacks.append("truncation of your files")
    if version < landlock.SIGNALS and "pids" not in others:
        lacks.append("signals to your processes")
    if version < landlock.SIGNALS and network != "none":
        lacks.append("connections to abstract unix sockets of this host")
    return " and ".join(lacks)


def _try(builder: Builder, *, offline: bool, cgroup: bool, root: str) -> tuple[str, ...]:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder).resolve() / "home"
        for name in ("tmp", "agent"):
            (home / name).mkdir(parents=True)
        user = None if builder == "none" else user_for(home)
        if user is not None:
            give(home, user)
        order = _order(builder, home, user, offline, cgroup)
        if root:
            order = _entering(order, root)
        with Supervised(order, None) as supervised:
            supervised.wait_for_start()
            return supervised.wait_for_end().walls


def _order(builder: Builder, home: Path, user: int | None, offline: bool, cgroup: bool) -> Order:
    return Order(
        command=(),
        environment={"AGENT_DIR": str(home / "agent")},
        home=str(home),
        log=str(home / "run.log"),
        stats=str(home / "stats.jsonl"),
        secrets=(),
        walls=builder,
        steps=bare_view(home, user=user),
        hidden=(),
        user=user,
        offline=offline,
        cgroup=cgroup,
        grace_seconds=0,
        limits=demo_limits(),
    )


def _entering(order: Order, root: str) -> Order:
    """Return the order with a root of the agent's own, in which there is an /home/agent."""
    place = "/home/agent"
    return replace(
        order,
        environment={"AGENT_DIR": place},
        steps=(Step("lend", place, f"{order.home}/agent"),),
        root=root,
        outside=interpreter_view(),
    )
