"""A local upstream and gateways to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from gateway_attempt import VARIABLE, GatewayAttempt, attempt
from model_server import KEY, ModelServer


@pytest.fixture(autouse=True)
def real_key(monkeypatch: pytest.MonkeyPatch) -> str:
    """The key that no agent may see, in our own environment."""
    monkeypatch.setenv(VARIABLE, KEY)
    return KEY


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A local upstream."""
    with ModelServer() as server:
        yield server


@pytest.fixture
def open_gateway(tmp_path: Path, server: ModelServer) -> Iterator[Callable[..., GatewayAttempt]]:
    """A factory of gateways to the local upstream, each with a folder of its own."""
    with ExitStack() as stack:
        count = iter(range(1_000))

        def make(**settings: Any) -> GatewayAttempt:
            folder = tmp_path / f"attempt{next(count)}"
            folder.mkdir()
            upstream = settings.pop("server", server)
            return stack.enter_context(attempt(folder, upstream, **settings))

        yield make


@pytest.fixture
def gateway(open_gateway: Callable[..., GatewayAttempt]) -> GatewayAttempt:
    """A gateway without a budget."""
    return open_gateway()
