"""Write a file for sbatch that runs the session itself as a job of Slurm.

    pytest-mlebench slurm-script --hosts=hosts.toml --time=7-0 -- --mle-agent=myagent
    sbatch mlebench.sbatch

The job needs one CPU and no GPU: attempts run in allocations of their own, or on hosts reached by
ssh, as hosts.toml says. Two minutes before its time is up the session is told to end. The file
names the run: submitted again, it goes on with what is left. What follows "--" is given to pytest.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_mlebench._files import write_text
from pytest_mlebench._units import show_duration
from pytest_mlebench.commands.shared import say
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.machines.hosts_file import Machines, read_hosts
from pytest_mlebench.machines.slurm import seconds_of, time_of

NOTICE_SECONDS = 120  # for the session to end what it has begun, before its own time is up
_OTHER_WAYS = ("-n", "--numprocesses", "--tx", "--dist")  # to say where attempts run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--hosts",
        type=Path,
        default=Path("hosts.toml"),
        metavar="FILE",
        help="where attempts run (default: hosts.toml)",
    )
    parser.add_argument(
        "--time",
        required=True,
        metavar="TIME",
        help="for the whole session, as sbatch writes it: 7-0 is a week",
    )
    parser.add_argument("--partition", metavar="NAME", help="for the session's own job")
    parser.add_argument(
        "--sbatch",
        default="",
        metavar="WORDS",
        help="further options of sbatch for it: '--account=lab --qos=long'",
    )
    parser.add_argument(
        "--log",
        default="mlebench-%j.log",
        metavar="FILE",
        help="what the session prints (default: mlebench-%%j.log, with the number of the job)",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("mlebench.sbatch"),
        metavar="FILE",
        help="the file to write (default: mlebench.sbatch)",
    )
    parser.add_argument("pytest", nargs="*", metavar="-- OPTION", help="options of pytest")


def run(args: argparse.Namespace) -> int:
    """Write the file and say how to use it."""
    machines = read_hosts(args.hosts)
    _refuse_short_time(machines, args.time)
    _refuse_other_ways(args.pytest)
    if not args.output.parent.is_dir():
        raise ConfigError(f"--output names a folder that does not exist: {args.output.parent}")
    script = "".join(f"{line}\n" for line in _lines(args))
    write_text(args.output, script)
    say(f"{args.output}: start it with sbatch {shlex.quote(str(args.output))}")
    return 0


def _refuse_short_time(machines: Machines, text: str) -> None:
    """Refuse a session that would end before the first attempt may have."""
    seconds = seconds_of(text)
    if not seconds:
        raise ConfigError(f"--time must be as sbatch writes it, 7-0 or 36:00:00, given: {text!r}")
    for machine in machines.machines:
        asked = time_of(machine.srun or ())
        if asked is not None and seconds < asked:
            raise ConfigError(
                f"--time of {show_duration(seconds)} is shorter than the {show_duration(asked)} "
                f"that {machine} asks for in {machines.path}: the session outlasts its attempts"
            )


def _refuse_other_ways(words: Sequence[str]) -> None:
    if not words:
        raise ConfigError("nothing to run: end with the options of pytest, -- --mle-agent=NAME")
    for word in words:
        name = word.partition("=")[0]
        if name in _OTHER_WAYS or (word.startswith("-n") and word[2:].isdecimal()):
            raise ConfigError(f"--hosts says where attempts run, and so does {word}: leave it out")
        if name == "--mle-hosts":
            raise ConfigError(f"give the file of hosts once, with --hosts, and not with {word}")


def _lines(args: argparse.Namespace) -> Iterator[str]:
    given = {
        "job-name": "mlebench",
        "chdir": str(Path.cwd()),
        "time": args.time,
        "partition": args.partition,
        "output": args.log,
        "open-mode": "append",
        "nodes": "1",
        "ntasks": "1",
        "cpus-per-task": "1",
        "mem": "2G",
        # to the session itself, which then ends everything that it has begun (man sbatch)
        "signal": f"B:TERM@{NOTICE_SECONDS}",
    }
    yield "#!/bin/bash"
    for name, value in given.items():
        if value is not None:
            yield f"#SBATCH --{name}={_quoted(name, value)}"
    for word in _words(args.sbatch):
        yield f"#SBATCH {_quoted('sbatch', word)}"
    yield "# attempts run elsewhere: this job connects, hands out, collects and reports"
    named = any(word.partition("=")[0] == "--mle-run" for word in args.pytest)
    run = [] if named else [f"--mle-run=slurm-{time.strftime('%Y%m%d-%H%M%S')}"]
    command = [sys.executable, "-m", "pytest", f"--mle-hosts={args.hosts}", *run, *args.pytest]
    yield f"exec {shlex.join(command)}"


def _words(text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as problem:
        raise ConfigError(f"--sbatch cannot be split into words ({problem}): {text!r}") from None
    for word in words:
        if not word.startswith("-"):
            raise ConfigError(
                f"--sbatch must be options with their values attached, --account=lab, given: {word}"
            )
    return words


def _quoted(name: str, value: str) -> str:
    """Return a word as sbatch reads it in a file: quotes hold spaces together."""
    if not value or "\n" in value or '"' in value:
        raise ConfigError(f"--{name} must not be empty, or have quotes or lines, given: {value!r}")
    return f'"{value}"' if any(map(str.isspace, value)) else value
