"""What to type instead: a command line that works on this host."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace

import pytest

from pytest_mlebench._problems import Problems, Remedy, Without, as_list, merge
from pytest_mlebench.errors import page_address
from pytest_mlebench.plugin import options
from pytest_mlebench.plugin.checks import BASELINE, examine
from pytest_mlebench.plugin.session import MleSession
from pytest_mlebench.plugin.settings import settings_of

PREFIX = "--mle-"
MAX_ROUNDS = 4  # a remedy may uncover what was behind another problem


def explain(config: pytest.Config, problems: Problems) -> str:
    """Return all problems as text, where to read on, and a command line that would work here."""
    line = working_command(config, problems)
    pages = {problem.page for problem in problems.found}
    page = (pages.pop() if len(pages) == 1 else None) or "troubleshooting"
    text = f"{as_list(problems)}\nsee {page_address(page)}"
    return text if line is None else f"{text}\nthis would work here: {line}"


def session_of(config: pytest.Config, problems: Problems) -> MleSession:
    """Return the session that the options ask for, as far as nothing is wrong with them."""
    settings = settings_of(config, problems)
    session = problems.check(lambda: MleSession(config, settings), None, BASELINE)
    if session is None:
        session = MleSession(config, replace(settings, agent=str(BASELINE["agent"])))
        session.agent_is_stand_in = True
    return session


def working_command(config: pytest.Config, problems: Problems) -> str | None:
    """Return what was typed with every remedy in it, once it has been examined; else None."""
    remedy = problems.remedy
    for _ in range(MAX_ROUNDS):
        changed = None if remedy is None else _with(config, remedy)
        if remedy is None or changed is None:
            return None
        try:
            left = _problems_of(config, changed)
        except Exception:  # a user's hook has met options that nobody typed: then no suggestion
            return None
        if not left:
            words = (*_words(changed), *_other_words(config.invocation_params.args))
            return shlex.join(("pytest", *words))
        more = left.remedy
        merged = None if more is None else merge(remedy, more)
        if merged == remedy:
            return None
        remedy = merged
    return None


def _problems_of(config: pytest.Config, changed: Namespace) -> Problems:
    """Return what would be wrong with other options."""
    left = Problems()
    with _as_if(config, changed):
        session = session_of(config, left)
        if session.settings.ids:
            examine(session, left)
    return left


def _with(config: pytest.Config, remedy: Remedy) -> Namespace | None:
    """Return the options with a remedy in them; None where the ini file is in the way."""
    changed = copy(config.option)
    for option in options.OPTIONS:
        if option.name not in remedy:
            continue
        value = remedy[option.name]
        in_file = config.getini(option.key)
        if isinstance(value, Without):
            given = getattr(config.option, option.key) or in_file or []
            kept = [each for each in given if each not in value.values]
            if not kept and in_file:
                return None
            setattr(changed, option.key, kept or None)
            continue
        if value is None and in_file is not None:
            if option.default is None:
                return None
            value = option.default
        setattr(changed, option.key, [value] if option.repeatable and value else value)
    return changed


@contextmanager
def _as_if(config: pytest.Config, changed: Namespace) -> Iterator[None]:
    """Let the options be others for a block."""
    typed, config.option = config.option, changed
    try:
        yield
    finally:
        config.option = typed


def _words(given: Namespace) -> Iterator[str]:
    """Yield options of ours as they are typed."""
    for option in options.OPTIONS:
        value = getattr(given, option.key)
        if value is None or value == []:
            continue
        for each in value if option.repeatable else [value]:
            yield option.flag if option.switch else f"{option.flag}={each}"


def _other_words(arguments: Iterable[object]) -> Iterator[str]:
    """Yield what was typed beside our options."""
    switches = {option.flag for option in options.OPTIONS if option.switch}
    words = iter(map(str, arguments))
    for word in words:
        if not word.startswith(PREFIX):
            yield word
        elif "=" not in word and word not in switches:
            next(words, None)  # its value
