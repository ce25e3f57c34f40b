"""The options: a table, from which the command line, the ini keys and the documentation come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

GROUP = "MLE-bench"


@dataclass(frozen=True)
class Option:
    """An option ``--mle-NAME``, twin of the ini key ``mle_NAME``."""

    name: str
    metavar: str
    help: str
    default: str | None = None
    repeatable: bool = False
    choices: tuple[str, ...] = ()
    switch: bool = False  # the option alone means on; its ini twin is on or off

    @property
    def flag(self) -> str:
        """Return the option as people type it."""
        return f"--mle-{self.name}"

    @property
    def usage(self) -> str:
        """Return the option with what it takes."""
        return self.flag if self.switch else f"{self.flag}={self.metavar}"

    @property
    def key(self) -> str:
        """Return the ini key, which is also the attribute of ``config.option``."""
        return f"mle_{self.name.replace('-', '_')}"


OPTIONS = (
    Option("agent", "NAME", "the agent under test, which turns the suite on: a name, a path to an "
           "agent.toml or its folder, or a command line"),
    Option("split", "NAME[,NAME]", "splits to run: demo, lite (= low), medium, high, all, dev, "
           "systemcard, one of your own, or a text file of ids (default: demo)"),
    Option("competition", "ID", "a single competition to run; repeatable", repeatable=True),
    Option("seeds", "N", "repetitions of each competition (default: 1; 3 are recommended for "
           "published numbers)", "1"),
    Option("require", "LEVEL", "what an item must reach to pass: pass (a valid submission), "
           "median, bronze, silver or gold (default: pass)", "pass",
           choices=("pass", "median", "bronze", "silver", "gold")),
    Option("fail-under", "[SPLIT:]PERCENT", "fail the session when the any-medal rate of the "
           "split is lower; repeatable", repeatable=True),
    Option("fail-over", "AMOUNT", "fail the session when its models cost more dollars than, for "
           "example, 250usd, or when nobody knows what they cost"),
    Option("baseline", "REPORT.json", "compare with an earlier report, or the folder of a run, and "
           "fail the session on a significant regression"),
    Option("sandbox", "NAME", "where the agent runs: auto, docker, rootless (in its image, without "
           "an engine) or process (default: auto: docker if the agent has an image, rootless if "
           "that is an archive, else process)", "auto",
           choices=("auto", "docker", "process", "rootless")),
    Option("limits", "WHOSE", "the limits of an attempt unless an option or the agent changes one: "
           "standard, or host for as much of them as this host has, which is disclosed as not "
           "standard (default: standard)", "standard", choices=("standard", "host")),
    Option("require-walls", "", "start no agent where a wall of its sandbox is missing, as "
           "SECURITY.md lists them (default: name in the header what is missing)", "off",
           choices=("on", "off"), switch=True),
    Option("time-limit", "DURATION", "wall clock of one attempt (standard: 24h)"),
    Option("cpus", "N", "processors of one attempt (standard: 36)"),
    Option("memory", "SIZE", "memory of one attempt (standard: 440GB)"),
    Option("gpus", "N", "GPUs of one attempt (standard: 1)"),
    Option("shm-size", "SIZE", "shared memory of one attempt (standard: 64GB)"),
    Option("network", "POLICY", "what the agent may reach: none, open or allow:HOST[,HOST] "
           "(default: what agent.toml says, else open)"),
    Option("budget", "AMOUNT", "what an attempt may spend on its models: 20usd, 5Mtok, 2000calls, "
           "or several with commas (default: what agent.toml says, else unlimited)"),
    Option("transcripts", "WHETHER", "keep what is said in the calls of models: on or off "
           "(default: off)", "off", choices=("on", "off")),
    Option("gpu-hour-usd", "DOLLARS", "what an hour of a GPU costs, to be shown in the report"),
    Option("snapshot-every", "DURATION", "keep the submission as it changes while an agent runs, "
           "and grade what was kept after the run: score, medal and percentile over time "
           "(default: off)"),
    Option("hosts", "hosts.toml", "run attempts on the machines that this file names"),
    Option("hosts-missing", "WHAT", "what a host does that cannot take part: fail, or warn and go "
           "on with the rest; it may join later (default: fail)", "fail", choices=("fail", "warn")),
    Option("grace", "DURATION", "how long an attempt on another host goes on when its connection, "
           "its worker or this session is lost; within that time it is adopted again "
           "(default: 30m)", "30m"),
    Option("data-dir", "DIR", "dataset store (default: $MLEBENCH_DATA_DIR, else the cache folder "
           "that the reference implementation uses)"),
    Option("runs-dir", "DIR", "where runs are kept (default: mle-runs)", "mle-runs"),
    Option("run", "NAME", "name of this run; naming an existing one resumes it (default: date, "
           "time and agent)"),
    Option("rerun", "WHAT", "what becomes of the attempts of a run that is resumed under other "
           "conditions or with another version of the agent: none (refuse to resume) or changed "
           "(run them anew) (default: none)", "none", choices=("none", "changed")),
    Option("prepare", "WHEN", "prepare datasets: auto (when needed), never, or only (and run "
           "nothing) (default: auto)", "auto", choices=("auto", "never", "only")),
    Option("missing", "WHAT", "what an unprepared competition does: fail or skip (default: fail: "
           "a gate must not shrink silently)", "fail", choices=("fail", "skip")),
    Option("verify", "HOW", "compare datasets with their checksums: on or off; recorded in the "
           "report (default: on)", "on", choices=("on", "off")),
    Option("description", "WHOSE", "which description the agent is given: ours, kaggle for the "
           "competition's own pages, or obfuscated for ours without names, under a code name "
           "instead of the competition's id; recorded in the report (default: ours)", "ours",
           choices=("ours", "kaggle", "obfuscated")),
    Option("audit", "HOW", "look for what is suspicious after grading: on or off; findings are in "
           "audit.json and all reports, and change no grade (default: off)", "off",
           choices=("on", "off")),
    Option("fail-on", "LEVEL", "fail the session if the audit finds a violation",
           choices=("violation",)),
    Option("report", "PATH", "write a report, by suffix .json .html .csv .md; repeatable",
           repeatable=True),
)  # fmt: skip

LIMITS = {  # option: the key of the limit in a limits table
    "time-limit": "time",
    "cpus": "cpus",
    "memory": "memory",
    "gpus": "gpus",
    "shm-size": "shm_size",
}
COMPETITIONS = "mle_competitions"


def add(parser: pytest.Parser) -> None:
    """Add every option and its ini twin to pytest's parser."""
    group = parser.getgroup(GROUP, "MLE-bench")
    for option in OPTIONS:
        if option.switch:
            shape: dict[str, Any] = {"action": "store_const", "const": "on"}
        else:
            action = "append" if option.repeatable else "store"
            shape = {"action": action, "metavar": option.metavar}
        group.addoption(option.flag, dest=option.key, default=None, help=option.help, **shape)
        twin = f"ini twin of {option.flag}"
        if option.repeatable:
            parser.addini(option.key, twin, type="linelist", default=None)
        else:
            parser.addini(option.key, twin, type="string", default=None)
    parser.addini(COMPETITIONS, "folders with competitions of your own", type="paths", default=None)


def given(config: pytest.Config, name: str) -> Any:
    """Return what the command line, else the ini file, says of an option; else its default."""
    value = explicit(config, name)
    return default(name) if value is None else value


def default(name: str) -> Any:
    """Return what an option is where nobody says it."""
    option = _BY_NAME[name]
    return [] if option.repeatable else option.default


def explicit(config: pytest.Config, name: str) -> Any:
    """Return what the command line, else the ini file, says of an option; None if neither does."""
    option = _BY_NAME[name]
    value = getattr(config.option, option.key, None)
    if value in (None, []):
        value = config.getini(option.key)
    if value is None:
        return None
    texts = value if option.repeatable else [value]
    if not texts or any(not text.strip(" ,") for text in texts):
        raise pytest.UsageError(
            f"{spelled(config, name)} is empty, as a variable that is not set leaves it: "
            f"give it a value ({option.metavar}), or leave the option out"
        )
    if option.choices and value not in option.choices:
        label = spelled(config, name)
        raise pytest.UsageError(
            f"{label} must be one of {', '.join(option.choices)}, given: {value}"
        )
    return value


def spelled(config: pytest.Config, name: str) -> str:
    """Return an option as the user wrote it: on the command line, else in the ini file."""
    option = _BY_NAME[name]
    if on_command_line(config, name) or config.getini(option.key) is None:
        return option.flag
    if any(text.startswith(f"{option.key}=") for text in config.option.override_ini or ()):
        return f"-o {option.key}"
    return option.key if config.inipath is None else f"{option.key} in {config.inipath.name}"


def written(config: pytest.Config, name: str, value: object) -> str:
    """Return an option with its value as the user wrote it."""
    label, option = spelled(config, name), _BY_NAME[name]
    key, _, place = label.partition(" in ")
    return f"{key} = {value} in {place}" if key == option.key and place else f"{label}={value}"


def values(config: pytest.Config, name: str) -> list[str]:
    """Return what an option that may be repeated is given, as it is, wrong values included."""
    key = _BY_NAME[name].key
    return getattr(config.option, key, None) or config.getini(key) or []


def is_given(config: pytest.Config, name: str) -> bool:
    """Tell whether the command line or the ini file says something of an option."""
    return bool(on_command_line(config, name)) or config.getini(_BY_NAME[name].key) is not None


def on_command_line(config: pytest.Config, *names: str) -> list[str]:
    """Return the options of ours that were typed, all of them or of some."""
    asked = [_BY_NAME[name] for name in names] or OPTIONS
    return [o.flag for o in asked if getattr(config.option, o.key, None) not in (None, [])]


_BY_NAME = {option.name: option for option in OPTIONS}
