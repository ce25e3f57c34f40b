"""Every test of the process sandbox runs behind bubblewrap's walls and behind our own."""

from __future__ import annotations

from pathlib import Path

import pytest
from sandbox_job import Place

from pytest_mlebench.sandbox.process.order import Builder


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
