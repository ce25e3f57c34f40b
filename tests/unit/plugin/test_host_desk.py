"""What the controller takes from a host: only what belongs to it, under the latest lease."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from attempt_folders import write_attempt, write_run

from pytest_mlebench.attempts.record import Conditions
from pytest_mlebench.errors import InfrastructureError
from pytest_mlebench.layout import RunFolder
from pytest_mlebench.machines.large_files import LargeFiles
from pytest_mlebench.plugin.custody import Custody
from pytest_mlebench.plugin.host_desk import HostDesk
from pytest_mlebench.reports.results import ItemKey

KEY = ItemKey("demo-digits", 0, "mine")
ONE, OTHER = SimpleNamespace(machine="gpu1"), SimpleNamespace(machine="gpu2")


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return write_run(tmp_path / "run", ("demo-digits", 0))


def desk_of(run: RunFolder) -> HostDesk:
    return HostDesk(run, Custody(run, 60), (), lambda _: KEY, lambda _: None, LargeFiles(60))


def begin(desk: HostDesk, node: Any) -> dict[str, Any]:
    """Return what a worker knows of an attempt that it was given."""
    given = desk.answers()["number"](node, competition="demo-digits", seed=0)
    name = f"demo-digits/seed0/attempt{given['number']}"
    return {"name": name, "lease": given["lease"]}


def left(attempt: dict[str, Any], **facts: Any) -> list[dict[str, Any]]:
    return [{**attempt, "item": KEY.to_dict(), "kept": True, "phase": "running", **facts}]


def test_a_machine_delivers_what_it_has_the_latest_lease_of(run: RunFolder) -> None:
    desk = desk_of(run)
    attempt = begin(desk, ONE)
    desk.answers()["piece"](ONE, **attempt, file="run.log", offset=0, data=b"hello")
    for node, lease in ((OTHER, attempt["lease"]), (ONE, "another"), (ONE, None)):
        with pytest.raises(InfrastructureError, match="does not belong to"):
            desk.answers()["piece"](
                node, name=attempt["name"], lease=lease, file="run.log", offset=0, data=b"lies"
            )


def test_whoever_was_given_an_item_before_another_delivers_and_adopts_nothing(
    run: RunFolder,
) -> None:
    desk = desk_of(run)
    stale = begin(desk, ONE)
    desk.custody.release(KEY)  # the grace is over
    begin(desk, OTHER)
    desk.custody.release(KEY)  # and that one is lost, too: the item is nobody's now
    with pytest.raises(InfrastructureError, match="does not belong to gpu1 any more"):
        desk.answers()["record"](ONE, **stale, record="{}")
    assert desk.unwanted("gpu1", left(stale)) == [stale["name"]]


def test_a_resumed_session_knows_which_lease_was_the_latest(run: RunFolder) -> None:
    before = desk_of(run)
    stale = begin(before, ONE)
    before.custody.release(KEY)
    latest = begin(before, OTHER)
    desk = desk_of(run)
    assert desk.unwanted("gpu1", left(stale)) == [stale["name"]]
    assert desk.unwanted("gpu2", left(latest)) == []
    assert desk.custody.machine_of(KEY) == "gpu2"


def test_an_item_that_nobody_else_was_given_is_still_adopted_after_its_grace(
    run: RunFolder,
) -> None:
    desk = desk_of(run)
    attempt = begin(desk, ONE)
    desk.custody.release(KEY)
    assert desk.unwanted("gpu1", left(attempt)) == []
    assert desk.custody.allows("gpu1", attempt["name"], attempt["lease"])


def test_a_machines_question_renews_its_lease(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_attempt(
        run, "demo-digits", 0, "running", conditions=Conditions(machine="gpu1"), ending=None
    )
    desk = desk_of(run)
    renewed: list[str] = []
    monkeypatch.setattr(desk.custody, "renew", renewed.append)
    desk.answers()["renew"](ONE)
    assert renewed == ["gpu1"]
