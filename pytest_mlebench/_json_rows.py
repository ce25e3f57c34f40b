"""JSON that people read and programs write by the thousand: indented, with a line for each row."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

# The encoder of the standard library is compiled only where it does not indent.
_row = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def text_with_rows(data: Mapping[str, Any], key: str) -> str:
    """Return the text of an object, whose list *key* comes last, each element on its own line."""
    rest = {name: value for name, value in data.items() if name != key}
    head = json.dumps(rest, indent=1, ensure_ascii=False, allow_nan=False).removesuffix("\n}")
    rows = "".join(f"\n  {_row(each)}," for each in data[key]).removesuffix(",")
    return f'{head},\n "{key}": [{rows}\n ]\n}}\n'
