"""Original descriptions come from Kaggle, once, as Markdown."""

from __future__ import annotations

from pathlib import Path

import pytest
from kaggle_server import KaggleServer
from store_files import MakeCompetition

from pytest_mlebench.errors import DatasetError
from pytest_mlebench.kaggle.descriptions import description, original_description

PAGES = [
    {"name": "rules", "content": "<p>No.</p>"},
    {"name": "Timeline", "content": "<ul><li>May</li><li>June</li></ul>"},
    {
        "name": "description",
        "content": "<h3>Goal</h3>\n<p>Predict <b>y</b>, see <a href='https://x.test'>here</a>.</p>"
        "<script>alert(1)</script><style>p {}</style>",
    },
    {"name": "data-description", "content": "# Files\n\n* a.csv", "mimeType": "text/markdown"},
    {"name": "empty", "content": " "},
]

MARKDOWN = """# A test

## Description

### Goal

Predict **y**, see [here](https://x.test).

## Data description

# Files

* a.csv

## Timeline

* May
* June
"""


def test_pages_become_markdown(
    kaggle: KaggleServer, tmp_path: Path, make_competition: MakeCompetition
) -> None:
    kaggle.add("tiny", b"zip")
    kaggle.page_lists["tiny"] = PAGES
    competition = make_competition(source="kaggle")
    kept = tmp_path / "data" / "tiny"
    assert original_description(competition, kept) == MARKDOWN
    assert original_description(competition, kept) == MARKDOWN
    assert kaggle.count("ListCompetitionPages") == 1
    assert (tmp_path / "data" / "tiny" / "description.kaggle.md").read_text() == MARKDOWN


def test_the_kind_decides(
    kaggle: KaggleServer, tmp_path: Path, make_competition: MakeCompetition
) -> None:
    kaggle.add("tiny", b"zip")
    kaggle.page_lists["tiny"] = PAGES
    kept = tmp_path / "data" / "tiny"
    competition = make_competition(source="kaggle")
    assert description(competition, kept, "ours") == "# tiny\n"
    assert description(competition, kept, "kaggle") == MARKDOWN
    assert description(make_competition("made"), kept, "kaggle") == "# made\n"


def test_a_competition_without_pages_says_so(
    kaggle: KaggleServer, tmp_path: Path, make_competition: MakeCompetition
) -> None:
    kaggle.add("tiny", b"zip")
    with pytest.raises(DatasetError) as caught:
        original_description(make_competition(source="kaggle"), tmp_path / "data" / "tiny")
    assert str(caught.value) == (
        "tiny: Kaggle has no description of it, use --mle-description=ours"
    )


def test_a_store_that_cannot_keep_it_says_so(
    kaggle: KaggleServer, tmp_path: Path, make_competition: MakeCompetition
) -> None:
    kaggle.add("tiny", b"zip")
    kaggle.page_lists["tiny"] = PAGES
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "tiny").write_text("in the way")
    said: list[str] = []
    kept = tmp_path / "data" / "tiny"
    assert original_description(make_competition(source="kaggle"), kept, said.append) == MARKDOWN
    assert said == [f"tiny: its description cannot be kept in {tmp_path / 'data' / 'tiny'}"]
