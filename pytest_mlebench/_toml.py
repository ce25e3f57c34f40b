"""Strict reading of TOML tables: a missing, unknown or ill-typed key names file and key.

A table reports the first thing that is wrong as soon as it is found. One that ``read_toml`` is told
to collect takes note of everything, hands out stand-ins for what is wrong, and reports the whole
file in one error when the outermost table is finished, which finishes all tables in it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast, overload

from pytest_mlebench.errors import (
    CompetitionFileError,
    ConfigError,
    did_you_mean,
    near_names,
    suggestion,
)

REQUIRED: Any = object()

L = TypeVar("L", bound=str)
D = TypeVar("D")


@dataclass(frozen=True)
class TableProblems:
    """What is wrong with a file: noted until it has been read, or raised at once."""

    file: str
    error: type[ConfigError]
    collect: bool
    noted: list[str] = field(default_factory=list)

    def add(self, problem: str) -> None:
        """Take note of a sentence that begins with the file, or raise it."""
        self.noted.append(problem)
        if not self.collect:
            self.report()

    def report(self) -> None:
        """Raise one error with everything noted, if there is anything."""
        if len(self.noted) > 1:
            shorter = (problem.removeprefix(f"{self.file}: ") for problem in self.noted)
            raise self.error("\n  ".join((f"{self.file}: {len(self.noted)} problems:", *shorter)))
        if self.noted:
            raise self.error(self.noted[0])


class Table:
    """A table of a TOML file whose keys are taken one by one; ``finish`` refuses the rest."""

    def __init__(
        self,
        data: Mapping[str, Any],
        where: str,
        error: type[ConfigError] = CompetitionFileError,
        problems: TableProblems | None = None,
    ) -> None:
        self.where = where
        self._data = dict(data)
        self._known: set[str] = set()
        self._wrong: set[str] = set()
        self._missing: list[str] = []
        self._inner: list[Table] = []
        self._problems = problems or TableProblems(where, error, collect=False)

    @property
    def is_wrong(self) -> bool:
        """Tell whether something is wrong with a key taken so far."""
        return bool(self._wrong)

    def __contains__(self, key: str) -> bool:
        """Tell whether a key is there and not taken yet."""
        return key in self._data

    @overload
    def text(self, key: str) -> str: ...
    @overload
    def text(self, key: str, default: D) -> str | D: ...
    def text(self, key: str, default: Any = REQUIRED) -> Any:
        """Take a string."""
        return self._take(key, (str,), "a string", default, "")

    @overload
    def number(self, key: str) -> float: ...
    @overload
    def number(self, key: str, default: D) -> float | D: ...
    def number(self, key: str, default: Any = REQUIRED) -> Any:
        """Take an integer or a float."""
        return self._take(key, (int, float), "a number", default, 0)

    def count(self, key: str, default: Any = REQUIRED) -> int:
        """Take a positive integer."""
        value = self._take(key, (int,), "a whole number", default, 1)
        if value < 1 and value is not default:
            self.refuse(key, f"must be positive, given: {value}")
        return cast(int, value)

    def whole(self, key: str, default: Any = REQUIRED) -> int:
        """Take a whole number, zero or more, however it is written."""
        value = self.number(key, default)
        if value < 0 or (isinstance(value, float) and not value.is_integer()):
            self.refuse(key, f"must be a whole number, zero or more, given: {value}")
            return 0
        return int(value)

    def flag(self, key: str, default: bool) -> bool:
        """Take a boolean."""
        return cast(bool, self._take(key, (bool,), "true or false", default, default))

    def choice(self, key: str, choices: Sequence[L], default: Any = REQUIRED) -> L:
        """Take one of a few words."""
        value = self._take(key, (str,), "a string", default, choices[0])
        if value not in choices:
            near = suggestion(near_names(value, choices))
            self.refuse(key, f"must be one of {', '.join(choices)}, given: {value!r}{near}")
            return choices[0]
        return cast(L, value)

    def numbers(self, key: str, default: Any = REQUIRED) -> tuple[float, ...]:
        """Take a list of numbers."""
        return cast(tuple[float, ...], self._list(key, (int, float), "numbers", default))

    def texts(self, key: str, default: Any = REQUIRED) -> tuple[str, ...]:
        """Take a list of strings."""
        return cast(tuple[str, ...], self._list(key, (str,), "strings", default))

    def words(self, key: str, default: Any = REQUIRED) -> tuple[str, ...]:
        """Take a command: a list of strings, or one string that is split as a shell would."""
        value = self._data.get(key)
        if isinstance(value, str):
            import shlex  # late on purpose: only a written command needs it

            try:
                self._data[key] = shlex.split(value)
            except ValueError as problem:
                self.refuse(key, f"cannot be split into words ({problem}), given: {value!r}")
        return self.texts(key, default)

    def one_or_more(self, key: str, default: Any = REQUIRED) -> tuple[str, ...]:
        """Take a string, or a list of strings that is not empty."""
        if isinstance(self._data.get(key), str):
            return (self.text(key),)
        values = self.texts(key, default)
        if not values and values is not default:
            self.refuse(key, "must not be empty")
        return values

    @overload
    def table(self, key: str) -> Table: ...
    @overload
    def table(self, key: str, default: D) -> Table | D: ...
    def table(self, key: str, default: Any = REQUIRED) -> Any:
        """Take a table."""
        value = self._take(key, (dict,), "a table", default, {})
        if value is default:
            return default
        return self._below(key, value)

    def tables(self, key: str) -> tuple[Table, ...]:
        """Take an array of tables, none by default."""
        values = self._list(key, (dict,), "tables", ())
        return tuple(self._below(f"{key}[{n}]", value) for n, value in enumerate(values))

    def all_tables(self) -> dict[str, Table]:
        """Take every key that is left; each must be a table."""
        return {key: self.table(key) for key in tuple(self._data)}

    def all_texts(self) -> dict[str, str]:
        """Take every key that is left; each must be a string."""
        return {key: self.text(key) for key in tuple(self._data)}

    def values(self, required: Iterable[str], optional: Iterable[str]) -> dict[str, Any]:
        """Take some keys of any type; the optional ones may be absent."""
        for key in required:
            if key not in self._data:
                self._lack(key, None)
        wanted = [key for key in (*required, *optional) if key in self._data]
        self._known.update(required, optional)
        return {key: self._data.pop(key) for key in wanted}

    def take_all(self) -> dict[str, Any]:
        """Take every key that is left, whatever it is."""
        rest, self._data = self._data, {}
        return rest

    def finish(self) -> None:
        """Refuse keys that nobody has taken; of a file as a whole, report what was collected."""
        for table in self._inner:
            table.finish()
        mistyped = self._explain_missing()
        for key in self._data:
            if key not in mistyped:
                self.refuse(key, f"is not a known key{did_you_mean(key, self._known)}")
        if self.where == self._problems.file:
            self._problems.report()

    def error(self, key: str, problem: str) -> ConfigError:
        """Return the error that says what is wrong with *key*."""
        return self._problems.error(f"{self.where}: {key} {problem}")

    def refuse(self, key: str, problem: str) -> None:
        """Say what is wrong with *key*, unless something is known to be wrong with it already."""
        if key not in self._wrong:
            self._wrong.add(key)
            self._problems.add(f"{self.where}: {key} {problem}")

    def _below(self, key: str, data: Mapping[str, Any]) -> Table:
        table = Table(data, f"{self.where}: {key}", problems=self._problems)
        if self._problems.collect and key not in self._wrong:
            self._inner.append(table)  # but what a stand-in lacks is no further problem
        return table

    def _take(
        self, key: str, types: tuple[type, ...], name: str, default: Any, stand_in: Any
    ) -> Any:
        self._known.add(key)
        if key not in self._data:
            return self._lack(key, stand_in) if default is REQUIRED else default
        value = self._data.pop(key)
        if _is_of(value, types):
            return value
        self.refuse(key, f"must be {name}, given: {value!r}")
        return stand_in

    def _lack(self, key: str, stand_in: Any) -> Any:
        self._wrong.add(key)
        self._missing.append(key)
        if not self._problems.collect:
            self._explain_missing()
        return stand_in

    def _explain_missing(self) -> set[str]:
        """Report the keys that are missing; return those that may have been meant for them."""
        unknown = self._data.keys() - self._known
        mistyped: set[str] = set()
        for key in self._missing:
            near = near_names(key, unknown)
            mistyped.update(near)
            self._problems.add(f"{self.where}: {key} is missing{suggestion(near)}")
        return mistyped

    def _list(self, key: str, types: tuple[type, ...], name: str, default: Any) -> Any:
        values = self._take(key, (list,), f"a list of {name}", default, ())
        if values is default:
            return default
        for value in values:
            if not _is_of(value, types):
                self.refuse(key, f"must be a list of {name}, given: {value!r}")
                return ()
        return tuple(values)


def read_toml(
    path: Path, error: type[ConfigError] = CompetitionFileError, *, collect: bool = False
) -> Table:
    """Read a TOML file into a strict table, which may *collect* what is wrong with it."""
    try:
        with path.open("rb") as file:
            data = tomllib.load(file)
    except FileNotFoundError:
        raise error(f"{path}: no such file") from None
    except IsADirectoryError:
        raise error(f"{path}: is a folder, not a file") from None
    except OSError as problem:
        raise error(f"{path}: cannot be read: {problem.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise error(f"{path}: not valid TOML: {problem}") from None
    return Table(data, str(path), error, TableProblems(str(path), error, collect))


def _is_of(value: Any, types: tuple[type, ...]) -> bool:
    """Tell whether a value has one of some types; True is a number to Python, not to TOML."""
    return isinstance(value, types) and (bool in types or not isinstance(value, bool))
