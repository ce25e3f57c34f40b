"""Strict reading of TOML tables: a missing, unknown or ill-typed key names file and key."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar, cast, overload

from pytest_mlebench.errors import CompetitionFileError, ConfigError, did_you_mean

REQUIRED: Any = object()

L = TypeVar("L", bound=str)
D = TypeVar("D")


class Table:
    """A table of a TOML file whose keys are taken one by one; ``finish`` refuses the rest."""

    def __init__(
        self,
        data: Mapping[str, Any],
        where: str,
        error: type[ConfigError] = CompetitionFileError,
    ) -> None:
        self.where = where
        self._data = dict(data)
        self._known: set[str] = set()
        self._error = error

    @overload
    def text(self, key: str) -> str: ...
    @overload
    def text(self, key: str, default: D) -> str | D: ...
    def text(self, key: str, default: Any = REQUIRED) -> Any:
        """Take a string."""
        return self._take(key, (str,), "a string", default)

    @overload
    def number(self, key: str) -> float: ...
    @overload
    def number(self, key: str, default: D) -> float | D: ...
    def number(self, key: str, default: Any = REQUIRED) -> Any:
        """Take an integer or a float."""
        return self._take(key, (int, float), "a number", default)

    def count(self, key: str) -> int:
        """Take a positive integer."""
        value = self._take(key, (int,), "a whole number", REQUIRED)
        if value < 1:
            self._fail(key, f"must be positive, given: {value}")
        return cast(int, value)

    def flag(self, key: str, default: bool) -> bool:
        """Take a boolean."""
        return cast(bool, self._take(key, (bool,), "true or false", default))

    def choice(self, key: str, choices: Sequence[L], default: Any = REQUIRED) -> L:
        """Take one of a few words."""
        value = self._take(key, (str,), "a string", default)
        if value not in choices:
            self._fail(key, f"must be one of {', '.join(choices)}, given: {value!r}")
        return cast(L, value)

    def numbers(self, key: str) -> tuple[float, ...]:
        """Take a list of numbers."""
        return cast(tuple[float, ...], self._list(key, (int, float), "numbers", REQUIRED))

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
                self._fail(key, f"cannot be split into words ({problem}), given: {value!r}")
        return self.texts(key, default)

    @overload
    def table(self, key: str) -> Table: ...
    @overload
    def table(self, key: str, default: D) -> Table | D: ...
    def table(self, key: str, default: Any = REQUIRED) -> Any:
        """Take a table."""
        value = self._take(key, (dict,), "a table", default)
        return Table(value, f"{self.where}: {key}", self._error) if value is not default else value

    def tables(self, key: str) -> tuple[Table, ...]:
        """Take an array of tables, none by default."""
        values = self._list(key, (dict,), "tables", ())
        return tuple(Table(value, f"{self.where}: {key}", self._error) for value in values)

    def all_tables(self) -> dict[str, Table]:
        """Take every key that is left; each must be a table."""
        return {key: self.table(key) for key in tuple(self._data)}

    def take_all(self) -> dict[str, Any]:
        """Take every key that is left, whatever it is."""
        rest, self._data = self._data, {}
        return rest

    def finish(self) -> None:
        """Refuse keys that nobody has taken."""
        for key in self._data:
            self._fail(key, f"is not a known key{did_you_mean(key, self._known)}")

    def error(self, key: str, problem: str) -> ConfigError:
        """Return the error that says what is wrong with *key*."""
        return self._error(f"{self.where}: {key} {problem}")

    def _take(self, key: str, types: tuple[type, ...], name: str, default: Any) -> Any:
        self._known.add(key)
        if key not in self._data:
            if default is REQUIRED:
                near = did_you_mean(key, set(self._data) - self._known) if self._data else ""
                self._fail(key, f"is missing{near if 'did you' in near else ''}")
            return default
        value = self._data.pop(key)
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            self._fail(key, f"must be {name}, given: {value!r}")
        return value

    def _list(self, key: str, types: tuple[type, ...], name: str, default: Any) -> Any:
        values = self._take(key, (list,), f"a list of {name}", default)
        if values is default:
            return default
        for value in values:
            if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
                self._fail(key, f"must be a list of {name}, given: {value!r}")
        return tuple(values)

    def _fail(self, key: str, problem: str) -> NoReturn:
        raise self.error(key, problem)


def read_toml(path: Path, error: type[ConfigError] = CompetitionFileError) -> Table:
    """Read a TOML file into a strict table."""
    try:
        with path.open("rb") as file:
            return Table(tomllib.load(file), str(path), error)
    except FileNotFoundError:
        raise error(f"{path}: no such file") from None
    except IsADirectoryError:
        raise error(f"{path}: is a folder, not a file") from None
    except OSError as problem:
        raise error(f"{path}: cannot be read: {problem.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise error(f"{path}: not valid TOML: {problem}") from None
