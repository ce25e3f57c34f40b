"""JSON objects as tables: read as strictly as TOML, with null the same as absent.

They are written for people, too: indented, and a list of thousands with a line for each row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pytest_mlebench._toml import Table
from pytest_mlebench.errors import ConfigError

# The encoder of the standard library is compiled only where it does not indent.
_row = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def json_table(data: object, where: str) -> Table:
    """Return a JSON object as a table in which null is the same as absent."""
    if not isinstance(data, Mapping):
        raise ConfigError(f"{where}: must be an object, given: {type(data).__name__}")
    return Table(_without_null(data), where, ConfigError)


def text_with_rows(data: Mapping[str, Any], key: str) -> str:
    """Return the text of an object, whose list *key* comes last, each element on its own line."""
    rest = {name: value for name, value in data.items() if name != key}
    head = json.dumps(rest, indent=1, ensure_ascii=False, allow_nan=False).removesuffix("\n}")
    rows = "".join(f"\n  {_row(each)}," for each in data[key]).removesuffix(",")
    return f'{head},\n "{key}": [{rows}\n ]\n}}\n'


def _without_null(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _plain(value) for key, value in data.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _without_null(value)
    return [_plain(each) for each in value] if isinstance(value, list) else value
