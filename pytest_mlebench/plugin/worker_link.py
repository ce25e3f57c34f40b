"""What a worker has of its controller: the connection, the settings, the agent that came by it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_mlebench.agent import Agent
from pytest_mlebench.machines.link import Link
from pytest_mlebench.machines.posting import KEY, Parcel, Posting
from pytest_mlebench.store.location import default_store

if TYPE_CHECKING:
    from pytest_mlebench.machines.host_keeping import HostKeeping
    from pytest_mlebench.plugin.session import MleSession
    from pytest_mlebench.plugin.settings import Settings

CHANNEL = "mle_channel"  # in what a worker is given: a way beside the one for xdist's own events
AGENTS, COMPETITIONS, RUNS = "agents", "competitions", "runs"  # folders below the machine's own
_LINK = pytest.StashKey[Link]()
_KEEPING = pytest.StashKey["HostKeeping"]()


def posting_of(config: pytest.Config) -> Posting | None:
    """Return what a worker on another machine has been told; None in any other process."""
    data = getattr(config, "workerinput", {}).get(KEY)
    return None if data is None else Posting.from_dict(data)


def link_of(config: pytest.Config) -> Link:
    """Return a worker's connection to its controller, made once."""
    if _LINK not in config.stash:
        posting = posting_of(config)
        channel = config.workerinput[CHANNEL]  # type: ignore[attr-defined]  # of xdist
        config.stash[_LINK] = Link(channel, silence=None if posting is None else posting.silence)
    return config.stash[_LINK]


def settings_here(settings: Settings, posting: Posting) -> Settings:
    """Return the controller's settings with the folders of this machine."""
    from pytest_mlebench.machines.host_keeping import sees  # late on purpose: on other machines

    own = Path.cwd() / RUNS / f"{settings.run_path.name}-{posting.token[:8]}"
    path = Path(posting.run) if sees(Path(posting.run), posting.token) else own
    store = str(settings.store)
    return replace(
        settings,
        run_path=path,
        store=default_store() if store == "." else Path(store).expanduser(),
    )


def travelled_agent(config: pytest.Config, posting: Posting) -> Agent:
    """Return the agent that has come from the controller, fetched unless it is here already."""
    from pytest_mlebench.machines.packing import read_agent  # late on purpose: on other machines

    os.environ.update(posting.secrets)  # to this process' memory, and its children's
    return read_agent(_fetched(config, posting.agent, AGENTS))


def travelled_competitions(config: pytest.Config, posting: Posting) -> list[Path]:
    """Return where the competitions are that have come from the controller, if any have."""
    parcel = posting.competitions
    return [] if parcel is None else [_fetched(config, parcel, COMPETITIONS)]


def _fetched(config: pytest.Config, parcel: Parcel, folder: str) -> Path:
    # late on purpose: only on other machines
    from pytest_mlebench.machines.packing import unpack, unpacked_folder

    cache = Path.cwd() / folder
    place = unpacked_folder(cache, parcel.sha256)
    if place.is_dir():
        return place
    data = bytearray()
    while len(data) < parcel.size:
        data += link_of(config).ask("parcel", sha256=parcel.sha256, offset=len(data))
    return unpack(bytes(data), parcel.sha256, cache)


def keeping_of(session: MleSession, posting: Posting) -> HostKeeping:
    """Return how this worker keeps attempts, made once."""
    from pytest_mlebench.machines.host_keeping import HostKeeping  # late on purpose: elsewhere

    config = session.config
    if _KEEPING not in config.stash:
        run = session.settings.run
        shared = run.path == Path(posting.run)
        config.stash[_KEEPING] = HostKeeping(link_of(config), run, posting, shared=shared)
    return config.stash[_KEEPING]
