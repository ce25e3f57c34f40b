"""The command line beside pytest: ``pytest-mlebench``."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn, Protocol, cast

from pytest_mlebench.errors import DOCS, ConfigError, MlebenchError

PROGRAM = "pytest-mlebench"
PYTEST_OPTION = "--mle-"
# A mistake of usage is 4 as it is for pytest, whose 2 means an interrupt.
USAGE_ERROR, FAILURE, INTERRUPTED, PIPE_CLOSED = 4, 1, 130, 141


class Command(Protocol):
    """What the table below names: a module, or an object in one as ``module:object``."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""

    def run(self, args: argparse.Namespace) -> int:
        """Do it and return the exit status."""


# name: (one line of help, where the command is); only the command that runs is imported
COMMANDS = {
    "init": (
        "make the repository of an agent that passes at once",
        "pytest_mlebench.commands.init",
    ),
    "new": ("make a competition of your own from a table", "pytest_mlebench.commands.new"),
    "checksums": (
        "show or write the md5 sums of a dataset of your own",
        "pytest_mlebench.commands.checksums",
    ),
    "prepare": (
        "download, verify and prepare datasets ahead of time",
        "pytest_mlebench.commands.prepare",
    ),
    "list": ("show the competitions and what is known of them", "pytest_mlebench.commands.listing"),
    "report": (
        "show a run or a report; write it in another format",
        "pytest_mlebench.commands.report",
    ),
    "compare": (
        "compare two runs, or several over a budget",
        "pytest_mlebench.commands.compare",
    ),
    "board": (
        "show the published results, and the place of a run among them",
        "pytest_mlebench.commands.board",
    ),
    "publish": (
        "write what a pull request to a leaderboard consists of",
        "pytest_mlebench.commands.publish",
    ),
    "bundle": (
        "pack a run into one file that anybody can verify",
        "pytest_mlebench.commands.bundle",
    ),
    "verify": (
        "verify a bundle: hashes, signature, every score graded anew",
        "pytest_mlebench.commands.verify",
    ),
    "familiarity": (
        "measure how familiar a model is with competitions",
        "pytest_mlebench.commands.familiarity",
    ),
    "kernels": (
        "show the notebooks that are known of a competition; fetch them from Kaggle",
        "pytest_mlebench.commands.kernels",
    ),
    "audit": (
        "look for what is suspicious in a run, with evidence",
        "pytest_mlebench.commands.audit",
    ),
    "grade": (
        "grade many submissions named in a .jsonl file",
        "pytest_mlebench.commands.grade",
    ),
    "validate": (
        "check the form of one submission, without any answers",
        "pytest_mlebench.commands.validate",
    ),
    "grade-sample": ("grade one submission", "pytest_mlebench.commands.grade_sample"),
    "leaderboard": (
        "show a leaderboard; fetch the full one from Kaggle",
        "pytest_mlebench.commands.leaderboard",
    ),
    "export": (
        "write a competition as a task description in YAML",
        "pytest_mlebench.commands.export",
    ),
    "doctor": (
        "look at this machine: what is missing, and how to get it",
        "pytest_mlebench.commands.doctor",
    ),
    "hosts": (
        "look at other hosts, install there, prepare datasets there",
        "pytest_mlebench.commands.hosts",
    ),
    "slurm-script": (
        "write a file for sbatch that runs a session as a job",
        "pytest_mlebench.commands.slurm_script",
    ),
    "build-image": (
        "build the base image for agents in containers",
        "pytest_mlebench.commands.build_image",
    ),
    "view": (
        "look at runs in a browser, also while they go on",
        "pytest_mlebench.commands.view",
    ),
    "clean": (
        "remove what killed sessions left: workspaces, leases, containers",
        "pytest_mlebench.commands.clean",
    ),
    "regrade": (
        "grade the submissions of a run again, without running any agent",
        "pytest_mlebench.commands.regrade",
    ),
    "self-check": (
        "grade the best and the sample submission of every prepared dataset",
        "pytest_mlebench.commands.self_check",
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status; bad input is a line or a list on stderr."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal that lacks a letter shows it as "?"
            stream.reconfigure(errors="replace")
    try:
        status = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # the reader has gone (``| head``): keep the interpreter from trying again at its exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except KeyboardInterrupt:
        return _complain("interrupted", INTERRUPTED)
    except MlebenchError as error:
        status = USAGE_ERROR if isinstance(error, ConfigError) else FAILURE
        return _complain(in_own_words(str(error), arguments), status, error.see)
    except OSError as error:
        return _complain(f"{error.strerror or error}: {error.filename or ''}", FAILURE)
    return status


def _run(arguments: list[str]) -> int:
    parser = _Parser(
        prog=PROGRAM,
        description="Machine-learning competitions as pytest test cases: the tools beside pytest.",
        epilog=f"'{PROGRAM} COMMAND --help' explains a command; the documentation is at {DOCS}/",
    )
    from pytest_mlebench import __version__

    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    chosen: Command | None = None
    name = next((word for word in arguments if not word.startswith("-")), None)
    for command, (text, target) in COMMANDS.items():
        subparser = subparsers.add_parser(
            command, help=text, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        if command == name:
            chosen = _load(target)
            subparser.description = (chosen.__doc__ or text).strip()
            chosen.add_arguments(subparser)
    _refuse_empty(arguments)
    args = parser.parse_args(arguments)
    if chosen is None:  # argparse has refused everything else
        raise ConfigError(f"no command given, see {PROGRAM} --help")
    return chosen.run(args)


def _refuse_empty(arguments: list[str]) -> None:
    """Refuse a value that is empty: argparse takes it for the current folder, or for nothing."""
    before = ""
    for word in arguments:
        name, equals, value = word.partition("=")
        flag = name if word.startswith("-") and equals else before
        if not (value if word.startswith("-") and equals else word).strip(" ,"):
            what = flag if flag.startswith("-") else "an argument"
            raise ConfigError(
                f"{what} is empty, as a variable that is not set leaves it: give it a value, "
                "or leave it out"
            )
        before = word


class _Parser(argparse.ArgumentParser):
    """A parser, and by inheritance those of the commands, that ends as pytest does."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the command line."""
        self.print_usage(sys.stderr)
        self.exit(USAGE_ERROR, f"{self.prog}: error: {message}\n")


def in_own_words(text: str, arguments: Sequence[str]) -> str:
    """Return a message of the code that pytest shares with a command in the command's options."""
    name = next((word for word in arguments if word in COMMANDS), None)
    if name is None or PYTEST_OPTION not in text:
        return text
    parser = argparse.ArgumentParser()
    _load(COMMANDS[name][1]).add_arguments(parser)
    own = set(parser._option_string_actions)

    def renamed(match: re.Match[str]) -> str:
        return f"--{match[1]}" if f"--{match[1]}" in own else match[0]

    return re.sub(rf"{PYTEST_OPTION}([a-z]+(?:-[a-z]+)*)", renamed, text)


def _load(target: str) -> Command:
    module, _, attribute = target.partition(":")
    found = import_module(module)
    return cast(Command, getattr(found, attribute) if attribute else found)


def _complain(text: str, status: int, see: str | None = None) -> int:
    sys.stderr.write(f"{PROGRAM}: error: {text.rstrip()}\n" + (f"see {see}\n" if see else ""))
    return status
