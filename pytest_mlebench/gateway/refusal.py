"""Calls that are not passed on: why, in one sentence that the agent reads."""

from __future__ import annotations

from typing import Literal

Kind = Literal[
    "bad_request", "authentication", "permission", "not_found", "too_large", "budget", "busy"
]

STATUS: dict[Kind, int] = {
    "bad_request": 400,
    "authentication": 401,
    "permission": 403,
    "not_found": 404,
    "too_large": 413,
    "budget": 429,
    "busy": 429,
}


class CallRefusal(Exception):
    """Say why a call is not passed on; its dialect gives it the provider's own form."""

    def __init__(self, kind: Kind, message: str) -> None:
        super().__init__(message)
        self.kind = kind

    @property
    def status(self) -> int:
        """Return the status of the answer."""
        return STATUS[self.kind]
