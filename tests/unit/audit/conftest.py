"""A run that was really graded, and its bundle."""

from __future__ import annotations

from pathlib import Path

import pytest
from bundles import GradedRun, graded_run

from pytest_mlebench.audit.bundle import write_bundle


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> GradedRun:
    """Return a run that was really graded, and audited."""
    run = graded_run(tmp_path_factory.mktemp("graded"))
    run.audit()
    return run


@pytest.fixture(scope="module")
def bundle(run: GradedRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return its bundle."""
    path = tmp_path_factory.mktemp("bundle") / "b.zip"
    write_bundle(run.path, path, run.registry)
    return path
