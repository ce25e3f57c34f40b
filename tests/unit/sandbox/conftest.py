"""Sandboxes without an engine are tried behind bubblewrap's walls and behind our own."""

from __future__ import annotations

import os

import pytest

from pytest_mlebench.sandbox.process import bubblewrap
from pytest_mlebench.sandbox.process.order import Builder

REQUIRED = "MLEBENCH_REQUIRE_BUBBLEWRAP"  # CI sets it: a test that skips there is a failure


@pytest.fixture(params=["bubblewrap", "namespaces"])
def builder(request: pytest.FixtureRequest) -> Builder:
    """Who builds the walls."""
    if request.param == "bubblewrap" and bubblewrap.find() is None:
        verdict = pytest.fail if os.environ.get(REQUIRED) else pytest.skip
        verdict("bubblewrap is not installed")
    name: Builder = request.param
    return name
