"""Every test of the process sandbox runs behind bubblewrap's walls and behind our own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from sandbox_job import Place

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


@pytest.fixture
def place(tmp_path: Path, builder: Builder) -> Place:
    """A store and runs whose agents get the walls of one builder."""
    return Place(tmp_path, builders=(builder,))


@pytest.fixture(params=[True, False], ids=["cgroup", "counted"])
def bounded_place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A store and runs whose agents are bounded by the kernel if it lets us, and by counts."""
    return Place(tmp_path, builders=("namespaces",), cgroup=request.param)


@pytest.fixture
def own_place(tmp_path: Path) -> Place:
    """A store and runs for agents that are functions, which only our own calls take inside."""
    return Place(tmp_path, builders=("namespaces",))


@pytest.fixture
def open_place(tmp_path: Path) -> Place:
    """A store and runs on a host whose kernel gives us no namespaces."""
    return Place(tmp_path, builders=("none",))
