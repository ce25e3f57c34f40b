"""The base image for agents, built from the recipe that comes with the package."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.sandbox.docker.engine import Engine
from pytest_mlebench.sandbox.docker.images import REPOSITORY, Image, Images

RECIPE = Path(__file__).parents[2] / "images"
VARIANTS = ("cpu", "cuda")


def base_image_name(variant: str) -> str:
    """Return the name that an agent's Dockerfile begins with."""
    return f"{REPOSITORY}/base:{variant}"


def build_base_image(
    engine: Engine, cache: Path, *, variant: str = "cpu", base: str | None = None, tag: str = ""
) -> tuple[Image, Path]:
    """Build a variant of the base image, on *base* if given; return it and the build's log."""
    arguments = {"VARIANT": variant} | ({"BASE": base} if base else {})
    images = Images(engine, cache)
    image = images.build(
        RECIPE, f"base-{variant}", alias=tag or base_image_name(variant), arguments=arguments
    )
    return image, images.build_log(image.name)
