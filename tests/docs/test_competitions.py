"""docs/competitions.md and the JSON Schema say what the code reads."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from pytest_mlebench._toml import Table
from pytest_mlebench.cli import COMMANDS, main
from pytest_mlebench.competition import read_competition
from pytest_mlebench.registry import builtin_competitions

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import competition_docs as docs  # noqa: E402  # a script, found just above

TEXT = docs.PAGE.read_text(encoding="utf-8")
FILES = sorted(builtin_competitions().glob("*/competition.toml"))

WHOLE = """
title = "T"
complexity = "custom"
category = "C"
answers = "a.csv"
sample = "s.csv"
[submission]
id = "id"
targets = ["y"]
[submission.quirks]
[metric]
name = "mine"
direction = "lower"
[leaderboard]
gold = 1
silver = 2
bronze = 3
median = 4
[checksums]
public = {}
private = {}
[[known_issues]]
kind = "leak"
what = "w"
"""


def test_page_and_schema_are_generated() -> None:
    assert docs.filled(TEXT) == TEXT, "run python scripts/competition_docs.py"
    assert docs.schema() == docs.SCHEMA.read_text(encoding="utf-8"), "the same"


def test_the_documented_keys_are_those_that_the_code_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every table that is read notes the keys that it is asked for."""
    asked: dict[str, set[str]] = {}
    take = Table._take

    def noting(table: Table, key: str, *rest: Any) -> Any:
        asked.setdefault(table.where, set()).add(key)
        return take(table, key, *rest)

    monkeypatch.setattr(Table, "_take", noting)
    (tmp_path / "competition.toml").write_text(WHOLE)
    (tmp_path / "grade.py").write_text("")
    read_competition(tmp_path)
    start = f"{tmp_path / 'competition.toml'}"
    names = {"known_issues[0]": "known_issues", "submission: quirks": "submission.quirks"}
    found = {where.removeprefix(start).removeprefix(": "): keys for where, keys in asked.items()}
    tables = {names.get(where, where): keys for where, keys in found.items()}
    for head in docs.HEADS:
        below = {h.removeprefix(head).lstrip(".") for h in docs.HEADS if "." not in h} - {""}
        documented = {key.name for key in docs.KEYS if key.table == head}
        inner = below if head == "" else {"quirks"} if head == "submission" else set()
        assert tables[head] - inner == documented, head


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_every_competition_keeps_to_the_schema(path: Path) -> None:
    jsonschema.validate(tomllib.loads(path.read_text()), json.loads(docs.schema()))


@pytest.mark.parametrize(
    "change", ["complexity", "targets", "submission", "direction", "percentiles", "unknown"]
)
def test_the_schema_refuses_what_the_code_refuses(change: str) -> None:
    data = tomllib.loads(WHOLE)
    if change == "complexity":
        data[change] = "hard"
    elif change == "targets":
        del data["submission"][change]
    elif change == "direction":
        data["metric"][change] = "up"
    elif change == "percentiles":
        data["leaderboard"][change] = [1, 2]
    elif change == "unknown":
        data["submission"][change] = 1
    else:
        del data[change]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, json.loads(docs.schema()))


def test_every_command_it_names_exists() -> None:
    named = set(re.findall(r"pytest-mlebench ([a-z-]+)", TEXT))
    assert named <= set(COMMANDS)


def test_a_competition_is_exported_without_its_answers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "demo-digits", "--repository", "https://example.org/r.git"]) == 0
    task = yaml.safe_load(capsys.readouterr().out)
    assert list(task) == [
        *("name", "repository", "task_description", "input_data", "output", "parameters")
    ]
    assert task["repository"] == "https://example.org/r.git"
    assert task["input_data"]["path"].endswith("demo-digits/prepared/public")
    assert task["output"]["columns"][0] == "id"
    assert task["parameters"]["direction"] in ("lower", "higher")
    assert "private" not in json.dumps(task)
    assert task["output"]["check"] == "pytest-mlebench validate submission.csv demo-digits"
    assert "grade" not in json.dumps(task), "a command that scores is a leak of the answers"
