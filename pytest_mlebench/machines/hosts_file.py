"""``hosts.toml``: the machines that a session may use, and how each is reached.

keepalive = "60s"                  # a host that is silent for longer is taken for lost

[hosts.gpu1]                       # a name for ssh, as in ~/.ssh/config
python = "/opt/mle/bin/python"     # has pytest-mlebench and pytest-xdist (default: python3)
data = "/data/mle"                 # its dataset store (default: what is usual there)
folder = ".pytest-mlebench"        # for agents and runs, in the home folder unless absolute
slots = "auto"                     # attempts at a time: a number, or what the leases allow

[slurm.a100]                       # workers that Slurm starts, each in an allocation of its own
srun = "--gres=gpu:1 -c36 --mem=440G --time=25:00:00"
slots = 32                         # at most so many at a time
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from pytest_mlebench._toml import Table, read_toml
from pytest_mlebench._units import parse_duration
from pytest_mlebench.errors import ConfigError

KEEPALIVE_SECONDS = 60.0
FOLDER = ".pytest-mlebench"


class HostsFileError(ConfigError):
    """``hosts.toml`` says something that cannot be."""

    page = "machines"


@dataclass(frozen=True)
class Machine:
    """A host that attempts may run on, or hosts that Slurm chooses."""

    name: str
    ssh: tuple[str, ...]  # the words that ssh is given: options, and the host; none with Slurm
    python: str = "python3"
    data: str | None = None
    folder: str = FOLDER
    slots: int | None = None  # None: as many as the host itself finds
    srun: tuple[str, ...] | None = None  # the words that srun is given, if Slurm starts the workers

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Machines:
    """All machines of a file."""

    path: Path
    machines: tuple[Machine, ...]
    keepalive: float = KEEPALIVE_SECONDS


def read_hosts(path: Path) -> Machines:
    """Read a ``hosts.toml``; everything that is wrong with it is one error."""
    table = read_toml(path, HostsFileError, collect=True)
    keepalive = _keepalive(table)
    hosts = table.table("hosts", None)
    config = table.text("ssh_config", None)
    options = () if config is None else ("-F", str(path.parent / Path(config).expanduser()))
    machines = [
        _machine(name, inner, options)
        for name, inner in (hosts.all_tables() if hosts is not None else {}).items()
    ]
    pools = table.table("slurm", None)
    for name, inner in (pools.all_tables() if pools is not None else {}).items():
        machines.append(_pool(name, inner))
    if not machines and not table.is_wrong:
        table.refuse("hosts", "names no machine: write a table [hosts.NAME] for each")
    if len({machine.name for machine in machines}) < len(machines):
        table.refuse("slurm", "has a name that hosts has, too")
    table.finish()
    return Machines(path, tuple(machines), keepalive)


def _keepalive(table: Table) -> float:
    text = table.text("keepalive", None)
    if text is None:
        return KEEPALIVE_SECONDS
    try:
        seconds = parse_duration(text, "keepalive")
    except ConfigError:
        seconds = 0.0
    if seconds < 2:
        table.refuse("keepalive", f"must be a duration of 2s or more, given: {text!r}")
    return seconds


def _machine(name: str, table: Table, options: tuple[str, ...]) -> Machine:
    address = table.text("ssh", name)
    python = table.text("python", "python3")
    folder = table.text("folder", FOLDER)
    for key, value in (("ssh", address), ("python", python), ("folder", folder)):
        if not value or "//" in value or any(map(str.isspace, value)):
            table.refuse(key, f"must be without spaces and '//', given: {value!r}")
    if address.startswith("-"):
        table.refuse("ssh", f"must be the name of a host, given: {address!r}")
    if not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
        table.refuse("ssh", f"needs a name of letters, digits and ._-, given: {name!r}")
    data = table.text("data", None)
    return Machine(name, (*options, address), python, data, folder, _slots(table))


def _pool(name: str, table: Table) -> Machine:
    text = table.text("srun")
    try:
        words = tuple(shlex.split(text))
    except ValueError as problem:
        table.refuse("srun", f"cannot be split into words ({problem}), given: {text!r}")
        words = ()
    if "//" in text:
        table.refuse("srun", f"must be without '//', given: {text!r}")
    python = table.text("python", "python3")
    folder = table.text("folder", str(Path.home() / FOLDER))
    if not Path(folder).is_absolute():
        table.refuse("folder", f"must be absolute, as all nodes see it, given: {folder!r}")
    return Machine(name, (), python, table.text("data", None), folder, table.count("slots"), words)


def _slots(table: Table) -> int | None:
    given = table.values((), ("slots",)).get("slots", "auto")
    if given == "auto":
        return None
    if isinstance(given, int) and not isinstance(given, bool) and given >= 1:
        return given
    table.refuse("slots", f"must be 'auto' or a number of 1 or more, given: {given!r}")
    return None
