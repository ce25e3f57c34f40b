"""The README and the generated pages say what the code does."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import readme  # noqa: E402  # a script, found just above

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOB = "https://github.com/pytest-mlebench/pytest-mlebench/blob/main/"
TREE = BLOB.replace("/blob/", "/tree/")
RAW = "https://raw.githubusercontent.com/pytest-mlebench/pytest-mlebench/main/"
SITE = "https://pytest-mlebench.github.io/pytest-mlebench/"


@pytest.mark.parametrize("page", readme.SECTIONS, ids=lambda page: page.name)
def test_tables_are_those_of_the_code(page: Path) -> None:
    assert readme.filled(page) == page.read_text(encoding="utf-8"), "run python scripts/readme.py"


def test_every_fixture_and_hook_is_in_the_reference() -> None:
    from pytest_mlebench.plugin import fixtures, hookspecs

    text = readme.REFERENCE.read_text(encoding="utf-8")
    for name in dir(fixtures):
        if name.startswith("mle_"):
            assert f"`{name}`" in text
    for name in dir(hookspecs):
        if name.startswith("pytest_mle_"):
            assert f"`{name}(" in text


def test_every_field_of_a_public_class_is_documented() -> None:
    import pytest_mlebench

    found = {
        n: readme.documented_fields(getattr(pytest_mlebench, n)) for n in pytest_mlebench.__all__
    }
    assert {"Agent", "Budget", "Competition", "Grade", "KnownIssue", "Rules"} <= {
        name for name, fields in found.items() if fields
    }
    bare = [f"{n}.{field}" for n, fields in found.items() for field, _, what in fields if not what]
    assert bare == []


def test_the_readme_is_a_page_on_pypi() -> None:
    assert len(TEXT.splitlines()) <= 200
    links = re.findall(r"\]\(([^)\s]+)\)", TEXT)
    assert len(links) > 10
    assert [link for link in links if not link.startswith(("https://", "#"))] == []


def test_every_link_of_the_readme_leads_to_a_file() -> None:
    for link in re.findall(r"\]\(([^)\s#]+)", TEXT):
        if link.startswith((BLOB, TREE, RAW)):
            assert (ROOT / re.sub(r".*/main/", "", link)).exists(), link
        elif link.startswith(SITE):
            page = link.removeprefix(SITE).strip("/") or "index"
            assert (ROOT / "docs" / f"{page}.md").is_file(), link
