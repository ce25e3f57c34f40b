"""Every test of the rootless sandbox runs behind bubblewrap's walls and behind our own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rootless_images import Run, busybox_archive
from sandbox_job import Finished, Place

from pytest_mlebench.agent import Agent
from pytest_mlebench.sandbox.process.order import Builder
from pytest_mlebench.sandbox.rootless import RootlessSandbox


@pytest.fixture(scope="session")
def busybox(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An image with a shell."""
    return busybox_archive(tmp_path_factory.mktemp("image"))


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where images are unpacked."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def run(tmp_path: Path, busybox: Path, cache: Path, builder: Builder) -> Run:
    """Run a shell script in the image, and return how it ended."""
    place = Place(tmp_path)
    sandbox = RootlessSandbox(cache=cache, builders=(builder,), grace_seconds=0.3)

    def run(script: str = "", *, network: str = "none", agent: Any = None, **limits: Any) -> Any:
        given = agent or Agent("tester", command=("sh", "-c", script))
        if given.image is None:
            given = replace(given, image=str(busybox))
        job = place.job(given, network=network, **limits)
        return Finished(job, sandbox.run(job))

    return run
