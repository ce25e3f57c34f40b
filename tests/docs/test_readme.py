"""The README says what the code does."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import readme  # noqa: E402  # a script, found just above

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def test_options_and_differences_are_those_of_the_code() -> None:
    assert readme.filled(TEXT) == TEXT, "run python scripts/readme.py"


def test_every_fixture_hook_and_page_is_there() -> None:
    from pytest_mlebench.plugin import fixtures, hookspecs

    for name in dir(fixtures):
        if name.startswith("mle_"):
            assert f"`{name}`" in TEXT
    for name in dir(hookspecs):
        if name.startswith("pytest_mle_"):
            assert f"`{name}`" in TEXT
    for page in ROOT.glob("docs/*.md"):
        assert f"docs/{page.name}" in TEXT
