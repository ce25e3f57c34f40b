"""Which lease of an item is the latest: whoever has an earlier one has lost the item for good.

A token is given out with every attempt on another host, and written down before that host has it:
a session that resumes the run knows it, too.
"""

from __future__ import annotations

import json
import secrets
from typing import Any

from pytest_mlebench._files import write_text
from pytest_mlebench.layout import RunFolder
from pytest_mlebench.reports.results import ItemKey

FILE = ".leases.json"  # in the run's folder


class LeaseTokens:
    """The token of the latest lease, by item."""

    def __init__(self, run: RunFolder) -> None:
        self._path = run.path / FILE
        self._latest = dict(self._read())

    def issue(self, key: ItemKey) -> str:
        """Give out a token; all earlier ones of the item are stale from now on."""
        token = secrets.token_hex(8)
        self._latest[key] = token
        leases = [{"item": each.to_dict(), "token": text} for each, text in self._latest.items()]
        write_text(self._path, json.dumps(leases))
        return token

    def is_stale(self, key: ItemKey, token: str | None) -> bool:
        """Tell whether an item has been given out anew since a token was."""
        latest = self._latest.get(key)
        return latest is not None and latest != token

    def _read(self) -> list[tuple[ItemKey, str]]:
        try:
            leases: list[dict[str, Any]] = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return []
        where = str(self._path)
        return [(ItemKey.from_dict(each["item"], where), str(each["token"])) for each in leases]
