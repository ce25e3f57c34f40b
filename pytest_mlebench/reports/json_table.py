"""JSON objects as tables: read as strictly as TOML, with null the same as absent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_mlebench._toml import Table
from pytest_mlebench.errors import ConfigError


def json_table(data: object, where: str) -> Table:
    """Return a JSON object as a table in which null is the same as absent."""
    if not isinstance(data, Mapping):
        raise ConfigError(f"{where}: must be an object, given: {type(data).__name__}")
    return Table(_without_null(data), where, ConfigError)


def _without_null(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _plain(value) for key, value in data.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _without_null(value)
    return [_plain(each) for each in value] if isinstance(value, list) else value
