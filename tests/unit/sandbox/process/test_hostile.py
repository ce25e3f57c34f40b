"""Agents that are out to cheat or to do harm come to nothing, whoever runs them.

``benchmarks/hostile.py`` runs the same in every sandbox and prints a table.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hostile_agents import ATTACKS, Attack
from hostile_scene import HELPERS, attempt
from other_user import command_as_user

from pytest_mlebench.sandbox.process import landlock
from pytest_mlebench.sandbox.process.order import Builder
from pytest_mlebench.sandbox.process.process_sandbox import ProcessSandbox

SLOW = {
    "fork-bomb",
    "many-files",
    "unlinked-files",
    "unlinked-mapped",
}  # and the same for every user


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_comes_to_nothing(attack: Attack, builder: Builder, tmp_path: Path) -> None:
    if attack.name == "abstract-sockets" and landlock.version() < landlock.SIGNALS:
        pytest.skip("nothing but Landlock 6 stops that in an open network, see SECURITY.md")
    sandbox = ProcessSandbox(grace_seconds=0.5, builders=(builder,))
    assert attempt(attack, sandbox, "open", tmp_path, None) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="the tests above have been run by a user already")
def test_they_come_to_nothing_when_an_ordinary_user_runs_them(builder: Builder) -> None:
    names = [attack.name for attack in ATTACKS if attack.name not in SLOW]
    command = command_as_user(sys.executable, str(HELPERS / "hostile_scene.py"), builder, *names)
    variables = os.environ | {"PYTHONPATH": str(HELPERS)}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert [result for result in results if result["holes"]] == [], done.stderr
    assert [result["attack"] for result in results] == names, done.stderr


def test_attacks_find_what_is_there_where_nothing_keeps_them(tmp_path: Path) -> None:
    """Without namespaces an agent gets through in many ways: the attacks are real ones."""
    sandbox = ProcessSandbox(grace_seconds=0.5, builders=("none",))
    found = set()
    for name in ("engine-socket", "modes-and-times", "terminals", "shared-memory"):
        attack = next(one for one in ATTACKS if one.name == name)
        folder = tmp_path / name
        folder.mkdir()
        if attempt(attack, sandbox, "open", folder, None):
            found.add(name)
    assert found == {"engine-socket", "modes-and-times", "terminals", "shared-memory"}
