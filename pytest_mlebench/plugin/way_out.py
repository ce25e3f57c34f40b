"""What to type instead: a command line that works on this host."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

import pytest

from pytest_mlebench._problems import Problems, as_list
from pytest_mlebench.plugin import options

PREFIX = "--mle-"


def explain(config: pytest.Config, problems: Problems) -> str:
    """Return all problems as text, with a command line at its end that would work here."""
    line = working_command(config, problems)
    text = as_list(problems)
    return text if line is None else f"{text}\nthis would work here: {line}"


def working_command(config: pytest.Config, problems: Problems) -> str | None:
    """Return what was typed with every remedy in it; None where the ini file is in the way."""
    remedy = problems.remedy
    if not remedy:
        return None
    known = {option.name: option for option in options.OPTIONS}
    typed = {name for name in known if options.on_command_line(config, name)}
    if any(
        value is None and name not in typed and config.getini(known[name].key)
        for name, value in remedy.items()
    ):
        return None
    words = []
    for name, option in known.items():
        if name in remedy:
            value = remedy[name]
            words += [] if value is None else [f"{option.flag}={value}"]
        elif name in typed:
            given = getattr(config.option, option.key)
            values = given if option.repeatable else [given]
            words += [option.flag if option.switch else f"{option.flag}={v}" for v in values]
    return shlex.join(("pytest", *words, *_other_words(config.invocation_params.args)))


def _other_words(arguments: Iterable[object]) -> Iterator[str]:
    """Yield what was typed beside our options."""
    switches = {option.flag for option in options.OPTIONS if option.switch}
    words = iter(map(str, arguments))
    for word in words:
        if not word.startswith(PREFIX):
            yield word
        elif "=" not in word and word not in switches:
            next(words, None)  # its value
