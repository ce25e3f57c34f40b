"""Images for the rootless sandbox, made of this machine's own files: no engine is needed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from docker_images import files_of_image
from image_archives import docker_archive, layer, member
from sandbox_job import Finished

from pytest_mlebench.sandbox.process.order import Builder
from pytest_mlebench.sandbox.rootless import RootlessSandbox

REQUIRED = "MLEBENCH_REQUIRE_BUBBLEWRAP"  # CI sets it: a test that skips there is a failure

needs_busybox = pytest.mark.skipif(
    shutil.which("busybox") is None and not os.environ.get(REQUIRED),
    reason="test images are made of a static busybox (Debian: busybox-static)",
)

Run = Callable[..., Finished]  # runs a shell script in an image


def busybox_archive(folder: Path, **settings: object) -> Path:
    """Write an image with a shell that starts nothing by itself, and return the archive."""
    own = layer(member("opt/only-here", content=b"of the image"))
    return docker_archive(folder / "busybox.tar", [files_of_image(python=False), own], settings)


def rootless_sandbox(folder: Path, builder: Builder) -> tuple[RootlessSandbox, str]:
    """Return a sandbox with its own cache, and the archive of an image with a Python."""
    archive = docker_archive(folder / "python.tar", [files_of_image(python=True)])
    sandbox = RootlessSandbox(cache=folder / "cache", builders=(builder,), grace_seconds=0.5)
    return sandbox, str(archive)
