"""Checks whose complaints are gathered, so that a user meets one list and not one error a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from pytest_mlebench.errors import ConfigError, ConfigErrors

T = TypeVar("T")


@dataclass(frozen=True)
class Without:
    """A remedy for an option that is given several times: leave some of its values out."""

    values: frozenset[str]

    @classmethod
    def of(cls, value: str) -> Without:
        """Return the remedy that leaves one value out."""
        return cls(frozenset({value}))


# option: the value that would work, None to leave it out
Remedy = Mapping[str, "str | Without | None"]


@dataclass(frozen=True)
class Problem:
    """A sentence with its way out, and what of it can be typed."""

    text: str
    remedy: Remedy | None = None  # None: nothing that can be typed would help
    page: str | None = None  # of the documentation


class Problems:
    """What is wrong, as far as it has been looked for."""

    def __init__(self) -> None:
        self.found: list[Problem] = []

    @property
    def remedy(self) -> Remedy | None:
        """Return all remedies as one; None if a problem has none."""
        merged: Remedy = {}
        for problem in self.found:
            if problem.remedy is None:
                return None
            merged = merge(merged, problem.remedy)
        return merged

    def check(self, check: Callable[[], T], stand_in: T, remedy: Remedy | None = None) -> T:
        """Return what a check returns; take note of what it refuses and return the stand-in."""
        try:
            return check()
        except ConfigError as error:
            self.add(error, remedy)
        return stand_in

    def add(self, error: ConfigError, remedy: Remedy | None = None) -> None:
        """Take note of an error, or of all in it, each sentence once."""
        known = {problem.text for problem in self.found}
        for each in error.errors if isinstance(error, ConfigErrors) else (error,):
            if str(each) not in known:
                self.found.append(Problem(str(each), remedy, each.page))

    def __bool__(self) -> bool:
        return bool(self.found)


def merge(first: Remedy, second: Remedy) -> Remedy:
    """Return two remedies as one; of an option that both name, the second wins."""
    merged = dict(first)
    for name, value in second.items():
        known = merged.get(name)
        if isinstance(known, Without) and isinstance(value, Without):
            merged[name] = Without(known.values | value.values)
        else:
            merged[name] = value
    return merged


def together(*checks: Callable[[], object]) -> None:
    """Make all the checks; raise what they refuse as one error."""
    errors = []
    for check in checks:
        try:
            check()
        except ConfigError as error:
            errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ConfigErrors(errors)


def as_list(problems: Problems) -> str:
    """Return the problems as people read them: a sentence, or a numbered list."""
    texts = [problem.text for problem in problems.found]
    if len(texts) == 1:
        return texts[0]
    lines = [f"{len(texts)} problems:"]
    for number, text in enumerate(texts, start=1):
        first, *more = text.splitlines()
        lines += [f"  {number}. {first}", *(f"     {line}" for line in more)]
    return "\n".join(lines)
