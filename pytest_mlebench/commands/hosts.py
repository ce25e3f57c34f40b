"""Look at the hosts of a hosts.toml, install what they need, prepare datasets on them.

    pytest-mlebench hosts check --hosts=hosts.toml                  what is there, what is missing
    pytest-mlebench hosts setup --hosts=hosts.toml [--wheel=FILE]   install pytest-mlebench there
    pytest-mlebench hosts prepare --hosts=hosts.toml --split=lite   prepare datasets there

All hosts at the same time; exit status 1 if something is wrong with one of them. "setup" makes the
virtual environment that the file's "python" is in, if there is none, and installs the versions that
are here: from a package index that the host reaches, or from a wheel that is sent to it.
"""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from pytest_mlebench.commands.shared import add_split_option, say
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.machines.hosts_file import Machine, Machines, read_hosts
from pytest_mlebench.machines.ssh import at_once, look_at, own_versions, run_there

VERBS = ("check", "setup", "prepare")


@dataclass(frozen=True)
class HostAnswer:
    """What became of a verb on one host."""

    machine: Machine
    well: bool
    lines: tuple[str, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("verb", choices=VERBS, help="what to do with the hosts")
    parser.add_argument(
        "--hosts",
        type=Path,
        default=Path("hosts.toml"),
        metavar="FILE",
        help="which hosts (default: hosts.toml)",
    )
    parser.add_argument(
        "--wheel", type=Path, metavar="FILE", help="with setup: a wheel of ours to send and install"
    )
    parser.add_argument(
        "--offline", action="store_true", help="with setup: install nothing but the wheel"
    )
    add_split_option(parser, "with prepare: the competitions of these splits")
    parser.add_argument("id", nargs="*", metavar="ID", help="with prepare: these competitions")


def run(args: argparse.Namespace) -> int:
    """Do it on all hosts at once, and print what they answer, host by host."""
    machines = read_hosts(args.hosts)
    verbs: dict[str, Callable[[Machine], HostAnswer]] = {
        "check": partial(_check, machines),
        "setup": lambda machine: _set_up(machines, machine, args.wheel, offline=args.offline),
        "prepare": lambda machine: _prepare(machines, machine, _selection(args)),
    }
    if args.verb == "prepare":
        _selection(args)  # refuse it here, once
    if args.wheel is not None and not args.wheel.is_file():
        raise ConfigError(f"--wheel names a file that does not exist: {args.wheel}")
    return _on_all(machines, verbs[args.verb])


def check_hosts(machines: Machines) -> int:
    """Print what is there on every host and what is missing; return 1 if one is not ready."""
    return _on_all(machines, partial(_check, machines))


def _on_all(machines: Machines, verb: Callable[[Machine], HostAnswer]) -> int:
    answers = at_once(machines.machines, verb)
    for answer in answers:
        say(f"{answer.machine}: {'ok' if answer.well else 'not ready'}")
        for line in answer.lines:
            say(f"  {line}")
    failed = sum(not answer.well for answer in answers)
    say(f"{len(answers) - failed} of {len(answers)} hosts: ok")
    return int(failed > 0)


def _check(machines: Machines, machine: Machine) -> HostAnswer:
    look = look_at(machine, machines.keepalive, own_versions(), on_node=True)
    if look.problems:
        return HostAnswer(machine, False, look.problems)
    words = (machine.python, "-m", "pytest_mlebench", "doctor")
    data = ("--data-dir", machine.data) if machine.data else ()
    done = run_there(machine, machines.keepalive, *words, *data, on_node=True)
    head = f"Python {look.facts['python']}, host name {look.facts['host']}"
    return HostAnswer(machine, True, (head, *_lines(done)))  # without an engine it is a host, too


def _set_up(
    machines: Machines, machine: Machine, wheel: Path | None, *, offline: bool
) -> HostAnswer:
    look = look_at(machine, machines.keepalive, own_versions())
    if look.problems and look.problems[0].startswith("cannot be reached"):
        return HostAnswer(machine, False, look.problems)
    steps: list[tuple[tuple[str, ...], bytes]] = []
    python = PurePosixPath(machine.python)
    if look.problems and look.problems[0].startswith("has no /"):
        steps.append((("python3", "-m", "venv", str(python.parent.parent)), b""))
    versions = own_versions()
    wanted = [f"{name}=={versions[name]}" for name in ("pytest-xdist", "execnet")]
    install = (machine.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    if wheel is None:
        wanted.insert(0, f"pytest-mlebench=={versions['pytest-mlebench']}")
    else:
        place = f"{machine.folder}/{wheel.name}"
        steps.append((("sh", "-c", 'mkdir -p "${0%/*}" && cat > "$0"', place), wheel.read_bytes()))
        again = ("--force-reinstall", "--no-deps")
        steps.append(((*install, *again, place), b""))
        if not offline:
            steps.append(((*install, place), b""))
        steps.append((("rm", place), b""))
    if not offline:
        steps.append(((*install, *wanted), b""))
    for words, data in steps:
        done = run_there(machine, machines.keepalive, *words, data=data)
        if done.returncode != 0:
            return HostAnswer(machine, False, _lines(done)[-5:])
    problems = look_at(machine, machines.keepalive, versions).problems
    return HostAnswer(machine, not problems, problems or ("installed",))


def _prepare(machines: Machines, machine: Machine, selection: tuple[str, ...]) -> HostAnswer:
    data = ("--data-dir", machine.data) if machine.data else ()
    words = (machine.python, "-m", "pytest_mlebench", "prepare", *selection, *data)
    done = run_there(machine, machines.keepalive, *words)
    return HostAnswer(machine, done.returncode == 0, _lines(done))


def _selection(args: argparse.Namespace) -> tuple[str, ...]:
    if not args.split and not args.id:
        raise ConfigError("nothing to prepare: name competitions, or a split with --split")
    return (*(("--split", args.split) if args.split else ()), *args.id)


def _lines(done: subprocess.CompletedProcess[bytes]) -> tuple[str, ...]:
    text = (done.stdout + done.stderr).decode(errors="replace")
    return tuple(line.rstrip() for line in text.splitlines() if line.strip())
