"""Build the base image for agents: Python and the usual packages, pinned.

An agent's Dockerfile begins with FROM pytest-mlebench/base:cpu (or :cuda), copies the agent to
/home/agent and adds what it needs. The engine is the one that DOCKER_HOST or the current docker
context names.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_mlebench._units import show_size
from pytest_mlebench.commands.shared import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--cuda", action="store_true", help="with torch and the CUDA libraries (default: without)"
    )
    parser.add_argument(
        "--base", metavar="IMAGE", help="build on this image instead of Python's own"
    )
    parser.add_argument(
        "--tag", metavar="NAME", help="call it so (default: pytest-mlebench/base:cpu or :cuda)"
    )
    parser.add_argument(
        "--log-dir",
        metavar="DIR",
        type=Path,
        default=Path("mle-runs/.docker"),
        help="keep the build's log here (default: mle-runs/.docker)",
    )


def run(args: argparse.Namespace) -> int:
    """Build the image and say what it is called."""
    # late on purpose: heavy
    from pytest_mlebench.sandbox.docker.base_image import base_image_name, build_base_image
    from pytest_mlebench.sandbox.docker.engine import Engine

    variant = "cuda" if args.cuda else "cpu"
    engine = Engine()
    name = args.tag or base_image_name(variant)
    say(f"building {name} on {engine.facts.describe()}")
    image, log = build_base_image(engine, args.log_dir, variant=variant, base=args.base, tag=name)
    size = engine.api.inspect_image(image.id)["Size"]
    say(f"{name}: {show_size(size)}, {image.id}")
    if log.exists():  # not if the same was built before, for another folder
        say(f"log: {log}")
    return 0
