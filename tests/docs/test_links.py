"""Every link of every page leads somewhere: files, anchors, and pages that messages name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown.extensions.toc import slugify

import pytest_mlebench
from pytest_mlebench import cli, errors
from pytest_mlebench.host import allocation

ROOT = Path(__file__).parents[2]
REPOSITORY = re.compile(r"https://github\.com/pytest-mlebench/pytest-mlebench/(?:blob|tree)/main/")
SITE = f"{errors.DOCS}/"
PAGES = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "examples").rglob("*.md"),
]


def links(page: Path) -> list[str]:
    """Return what a page links to, code aside."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.S)
    return re.findall(r"\]\(([^)\s]+)\)", text)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page: one for each heading."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    plain = (re.sub(r"\[([^]]*)\]\([^)]*\)|`", r"\1", title) for title in titles)
    return {slugify(title, "-") for title in plain}


def target(page: Path, link: str) -> Path | None:
    """Return the file that a link means; None for one that is not ours."""
    if link.startswith(SITE):
        name = link.removeprefix(SITE).strip("/")
        return ROOT / "docs" / f"{name or 'index'}.md"
    if found := REPOSITORY.match(link):
        return ROOT / link[found.end() :]
    return None if re.match(r"[a-z]+:", link) else page.parent / link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_to_a_heading_in_it(page: Path) -> None:
    for link in links(page):
        path, _, anchor = link.partition("#")
        found = page if not path else target(page, path)
        if found is None:
            continue
        assert found.exists(), link
        if anchor and found.suffix == ".md":
            assert anchor in anchors(found), link


def subclasses(kind: type[errors.MlebenchError]) -> Iterator[type[errors.MlebenchError]]:
    """Yield a kind of error and all below it."""
    yield kind
    for below in kind.__subclasses__():
        yield from subclasses(below)


def test_every_page_that_a_message_names_exists() -> None:
    for _, target in cli.COMMANDS.values():
        cli._load(target)
    named = {kind.page for kind in subclasses(errors.MlebenchError)} - {None}
    assert {"agents", "competitions", "datasets", "limits", "machines"} <= named
    sources = Path(pytest_mlebench.__file__).parent.rglob("*.py")
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    named |= set(re.findall(r"page_address\(['\"]([a-z-]+)", text)) | {"troubleshooting"}
    for page in named:
        assert (ROOT / "docs" / f"{page}.md").is_file(), page


def test_the_reference_has_every_exit_status_and_variable() -> None:
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    for status in (cli.USAGE_ERROR, cli.FAILURE, cli.INTERRUPTED):
        assert f"\n| {status} |" in text
    sources = Path(pytest_mlebench.__file__).parent.rglob("*.py")
    read = {
        name
        for path in sources
        for name in re.findall(r"\"(MLEBENCH_[A-Z_]+)\"", path.read_text(encoding="utf-8"))
    }
    read -= {allocation.ENDS}  # which a session sets itself, for its workers
    assert read == set(re.findall(r"`(MLEBENCH_[A-Z_]+)`", text))
