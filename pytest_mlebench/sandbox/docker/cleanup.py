"""What dead processes of this host left on the engine; nobody else's."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pytest_mlebench.sandbox.docker.engine import Engine
from pytest_mlebench.sandbox.docker.labels import COPIED, OWNED, PREFIX, PREPARED, owner_of

Kind = Literal["container", "network", "volume"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Orphan:
    """Something of ours whose owner is dead."""

    kind: Kind
    id: str
    name: str
    pid: int
    run: str

    def describe(self) -> str:
        """Return one line for people."""
        run = f" of run {self.run}" if self.run else ""
        return f"{self.kind} {self.name}{run} (left by process {self.pid})"


@dataclass(frozen=True)
class Cached:
    """Something of ours that is kept for the next attempt."""

    kind: Literal["image", "volume"]
    name: str

    def describe(self) -> str:
        """Return one line for people."""
        return f"{self.kind} {self.name}"


def find_orphans(engine: Engine) -> list[Orphan]:
    """Return what dead processes of this host left, in the order in which it can be removed."""
    ours = {"label": OWNED}
    api = engine.api
    with engine.asked("cannot look for orphans"):
        containers = api.containers(all=True, filters=ours)
        networks = api.networks(filters=ours)
        volumes = api.volumes(filters=ours).get("Volumes") or []
    return [
        *_orphans("container", containers, lambda item: (item["Id"], _name(item))),
        *_orphans("network", networks, lambda item: (item["Id"], item["Name"])),
        *_orphans("volume", volumes, lambda item: (item["Name"], item["Name"])),
    ]


def remove_orphans(engine: Engine) -> list[Orphan]:
    """Remove what dead processes of this host left, and return what was removed."""
    removed = []
    for orphan in find_orphans(engine):
        try:
            _remove(engine, orphan)
        except engine.sdk.errors.APIError as problem:
            # Another session may be at it too, or a container may still hold a network.
            logger.debug("cannot remove %s: %s", orphan.describe(), problem)
        else:
            removed.append(orphan)
    return removed


def find_cache(engine: Engine) -> list[Cached]:
    """Return the images made ready for attempts and the volumes with copied datasets."""
    with engine.asked("cannot look for what is kept"):
        images = engine.api.images(filters={"label": PREPARED})
        volumes = engine.api.volumes(filters={"label": COPIED}).get("Volumes") or []
    tags = [tag for image in images for tag in image.get("RepoTags") or ()]
    return [
        *(Cached("image", tag) for tag in tags),
        *(Cached("volume", volume["Name"]) for volume in volumes),
    ]


def remove_cache(engine: Engine) -> list[Cached]:
    """Remove of it what no container uses, and return what was removed."""
    removed = []
    for item in find_cache(engine):
        remove = engine.api.remove_image if item.kind == "image" else engine.api.remove_volume
        try:
            remove(item.name)
        except engine.sdk.errors.APIError as problem:
            logger.debug("cannot remove %s: %s", item.describe(), problem)
        else:
            removed.append(item)
    return removed


def _orphans(
    kind: Kind, found: list[dict[str, Any]], names: Callable[[dict[str, Any]], tuple[str, str]]
) -> Iterator[Orphan]:
    for item in found:
        labels = item.get("Labels") or {}
        owner = owner_of(labels)
        if owner is not None and owner.is_dead():
            identity, name = names(item)
            yield Orphan(kind, identity, name, owner.pid, labels.get(f"{PREFIX}run", ""))


def _remove(engine: Engine, orphan: Orphan) -> None:
    if orphan.kind == "container":
        engine.api.remove_container(orphan.id, force=True, v=True)
    elif orphan.kind == "network":
        engine.api.remove_network(orphan.id)
    else:
        engine.api.remove_volume(orphan.id)


def _name(container: dict[str, Any]) -> str:
    names = container.get("Names") or [container["Id"][:12]]
    return str(names[0]).lstrip("/")
