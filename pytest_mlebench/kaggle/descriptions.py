"""The original descriptions: a competition's own pages, as Markdown, kept beside its data."""

from __future__ import annotations

import contextlib
import hashlib
import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pytest_mlebench._files import write_text
from pytest_mlebench._messages import Log, silent
from pytest_mlebench.competition import Competition
from pytest_mlebench.dataset import Dataset
from pytest_mlebench.errors import ConfigError, DatasetError
from pytest_mlebench.kaggle.client import Kaggle, Page
from pytest_mlebench.preparing.files import link_tree

Kind = Literal["ours", "kaggle", "obfuscated"]

FILE = "description.kaggle.md"
NEUTRAL_VIEWS = ".views"  # in the store, of all competitions
FIRST = ("description", "evaluation", "data-description", "timeline", "prizes")
LEFT_OUT = ("rules",)  # a contract between Kaggle and people, not a task

_CODE = re.compile(r"<(script|style)\b.*?</\1\s*>", re.DOTALL | re.IGNORECASE)


def description(competition: Competition, kept: Path, kind: Kind, log: Log | None = None) -> str:
    """Return the text that the agent is given: our own, the original one, or one without names."""
    if kind == "obfuscated":
        return competition.obfuscated_description
    if kind == "ours" or competition.source != "kaggle":
        return competition.description
    return original_description(competition, kept, log)


def original_description(competition: Competition, kept: Path, log: Log | None = None) -> str:
    """Return the competition's pages as Markdown, fetched once and kept in the folder *kept*."""
    path = kept / FILE
    if path.is_file():
        return path.read_text(encoding="utf-8")
    with Kaggle(log) as kaggle:
        pages = kaggle.pages(competition.id)
    text = to_markdown(competition, pages)
    try:
        write_text(path, text)
    except OSError:  # a read-only store: fetched again next time
        (log or silent)(f"{competition.id}: its description cannot be kept in {path.parent}")
    return text


def with_description(dataset: Dataset, kept: Path, kind: Kind, log: Log | None = None) -> Dataset:
    """Return the dataset with the wanted text as ``description.md``.

    Where another one lies there (the reference implementation prepares the original) the agent
    sees a view of the public folder: the same files, linked, with the other text.
    """
    competition = dataset.competition
    text = description(competition, kept, kind, log)
    path = dataset.public / "description.md"
    if path.is_file() and path.read_text(encoding="utf-8", errors="replace") == text:
        return dataset
    name = f"{hashlib.md5(text.encode()).hexdigest()[:12]}-{dataset.public.stat().st_ino}"
    # what an agent could learn from a path must not give the competition away
    views = kept.parent / NEUTRAL_VIEWS if kind == "obfuscated" else kept / "views"
    view = views / name
    try:
        if not view.is_dir():
            _make_view(dataset.public, view, text)
    except OSError as error:
        raise ConfigError(
            f"{competition.id}: cannot put a description beside the data in {view.parent} "
            f"({error.strerror or error}): make the store writable once"
        ) from None
    return replace(dataset, public=view)


def _make_view(public: Path, view: Path, text: str) -> None:
    view.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".view.", dir=view.parent) as scratch:
        new = Path(scratch) / "public"
        link_tree(public, new)
        (new / "description.md").unlink(missing_ok=True)
        (new / "description.md").write_text(text, encoding="utf-8")
        with contextlib.suppress(FileExistsError, NotADirectoryError):  # another was first
            new.rename(view)


def to_markdown(competition: Competition, pages: list[Page]) -> str:
    """Return the pages as one Markdown text, the description first."""
    chosen = [page for page in pages if page.name.lower() not in LEFT_OUT and page.content.strip()]
    if not chosen:
        raise DatasetError(
            f"{competition.id}: Kaggle has no description of it, use --mle-description=ours"
        )
    chosen.sort(key=lambda page: _rank(page.name.lower()))  # stable: others as they come
    sections = [f"# {competition.title}", *map(_section, chosen)]
    return "\n\n".join(sections) + "\n"


def _rank(name: str) -> int:
    return FIRST.index(name) if name in FIRST else len(FIRST)


def _section(page: Page) -> str:
    title = page.name.replace("-", " ").capitalize()
    body = _markdown(page.content) if page.is_html else page.content
    body = re.sub(r"[ \t]+$", "", body, flags=re.MULTILINE)
    return f"## {title}\n\n" + re.sub(r"\n{3,}", "\n\n", body).strip()


def _markdown(html: str) -> str:
    try:
        from markdownify import markdownify  # late on purpose: optional
    except ImportError:
        raise ConfigError(
            "original descriptions need markdownify: pip install 'pytest-mlebench[kaggle]'"
        ) from None
    html = _CODE.sub("", html)  # the library would keep its text
    return str(markdownify(html, heading_style="ATX"))
