"""An endpoint that speaks OpenAI's protocol, asked politely: bounded tries, waits as it is told."""

from __future__ import annotations

import http.client
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_mlebench.errors import ConfigError, InfrastructureError

TRIES = 5
FIRST_WAIT_SECONDS = 1.0
MAX_WAIT_SECONDS = 60.0
TIMEOUT_SECONDS = 300.0
MAX_ANSWER_BYTES = 64 << 20
KEY_VARIABLE = "OPENAI_API_KEY"

# too many requests, and what a server says that is out of order for a while (RFC 9110, RFC 6585)
_PASSING = (408, 409, 425, 429, 500, 502, 503, 504)


@dataclass(frozen=True)
class Endpoint:
    """Where a model is reached, and how patiently."""

    url: str  # up to and including /v1
    model: str
    key: str = field(default="", repr=False)
    tries: int = TRIES
    sleep: Callable[[float], object] = field(default=time.sleep, repr=False)

    @classmethod
    def of(cls, url: str, model: str, variable: str = KEY_VARIABLE) -> Endpoint:
        """Return the endpoint of two options, with the key from the environment if it is there."""
        if not url.startswith(("http://", "https://")):
            raise ConfigError(f"a model's URL must begin with http:// or https://, given: {url}")
        return cls(url.rstrip("/"), model, os.environ.get(variable, ""))

    def post(self, path: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a request; after several tries in vain say why there is none."""
        body = json.dumps({"model": self.model, **payload}).encode()
        problem = ""
        for number in range(self.tries):
            try:
                return self._ask(path, body)
            except _Passing as passing:
                problem = str(passing)
                if number + 1 < self.tries:
                    backoff = min(FIRST_WAIT_SECONDS * 2**number, MAX_WAIT_SECONDS)
                    self.sleep(backoff if passing.wait is None else passing.wait)
        raise InfrastructureError(f"{self.url} does not answer ({problem}): try again later")

    def _ask(self, path: str, body: bytes) -> dict[str, Any]:
        headers = {"Content-Type": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        request = urllib.request.Request(f"{self.url}{path}", body, headers)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
                text = response.read(MAX_ANSWER_BYTES)
            data = json.loads(text)
        except urllib.error.HTTPError as error:
            with error:
                words = " ".join(error.read(500).decode(errors="replace").split())
            if error.code in _PASSING:
                wait = _seconds(error.headers.get("Retry-After"))
                raise _Passing(f"status {error.code}", wait) from None
            raise ConfigError(f"{self.url}{path}: status {error.code}: {words}") from None
        except (OSError, http.client.HTTPException) as error:
            raise _Passing(str(getattr(error, "reason", error)) or type(error).__name__) from None
        except ValueError:
            raise _Passing("the answer is no JSON, or half of it") from None
        if not isinstance(data, dict):
            raise _Passing("the answer is no object")
        return data


class _Passing(Exception):
    """Something that may be better the next time."""

    def __init__(self, text: str, wait: float | None = None) -> None:
        super().__init__(text)
        self.wait = wait


def _seconds(value: str | None) -> float | None:
    """Return how long a server asks to be left alone, within reason."""
    try:
        return None if value is None else min(max(0.0, float(value)), MAX_WAIT_SECONDS)
    except ValueError:
        return None
