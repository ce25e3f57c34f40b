"""Hostile agents come to nothing in an image, too; ``benchmarks/hostile.py`` has all of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hostile_agents import ATTACKS
from hostile_scene import attempt
from rootless_images import needs_busybox, rootless_sandbox

from pytest_mlebench.sandbox.process.order import Builder

pytestmark = needs_busybox

SHORT = ("answers-behind-a-link", "privileges", "network-none")


def test_attacks_come_to_nothing(
    builder: Builder, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    sandbox, image = rootless_sandbox(tmp_path_factory.mktemp("rootless"), builder)
    found = {}
    for attack in ATTACKS:
        if attack.name in SHORT:
            folder = tmp_path / attack.name
            folder.mkdir()
            found[attack.name] = attempt(attack, sandbox, "open", folder, image)
    assert found == {name: [] for name in SHORT}
