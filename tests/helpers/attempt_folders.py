"""Runs and attempts on disk, as sessions leave them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_mlebench.attempts.identity import Identity
from pytest_mlebench.attempts.plan import Plan, write_plan
from pytest_mlebench.attempts.record import AttemptRecord, Conditions, Phase, Run
from pytest_mlebench.layout import RunFolder
from pytest_mlebench.reports.results import ItemKey
from pytest_mlebench.sandbox import Ending

AGENT = "mine"
IDENTITY = Identity({"agent.name": AGENT, "agent.files": "a" * 64, "sandbox": "process"})


def write_run(path: Path, *keys: tuple[str, int], **changes: Any) -> RunFolder:
    """Write the plan of a run that expects some items of the agent."""
    folder = RunFolder(path)
    expected = tuple(ItemKey(competition, seed, AGENT) for competition, seed in keys)
    plan = Plan(agent=AGENT, seeds=2, identity=IDENTITY, expected=expected)
    write_plan(folder, replace(plan, **changes))
    return folder


def write_attempt(
    folder: RunFolder, competition: str, seed: int, phase: Phase, number: int = 1, **changes: Any
) -> Run:
    """Write the record of an attempt that has reached *phase*."""
    record = AttemptRecord(
        competition=competition,
        seed=seed,
        attempt=number,
        agent=AGENT,
        item=ItemKey(competition, seed, AGENT),
        session="first",
        identity=IDENTITY,
        conditions=Conditions(agent_version="1.2", sandbox="process", network="none"),
        ending=Ending("exited", 0, 7.5, format_checks=3, image="sha256:1"),
        error="the engine is gone" if phase == "error" else None,
    )
    run = Run(folder.seed(competition, seed).attempt(number).path, replace(record, **changes))
    run.enter(phase)
    return run
