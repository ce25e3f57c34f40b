"""Put what the code knows of competition.toml into docs/competitions.md and its JSON Schema.

python scripts/competition_docs.py
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import readme

from pytest_mlebench.competition import Complexity, IssueKind, Source
from pytest_mlebench.grading.metrics import METRICS, load_metric
from pytest_mlebench.grading.rules import KINDS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "competitions.md"
SCHEMA = ROOT / "docs" / "competition.schema.json"

TYPES: dict[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "texts": {"type": "array", "items": {"type": "string"}},
    "text or texts": {
        "anyOf": [
            {"type": "string"},
            {"type": "array", "items": {"type": "string"}, "minItems": 1},
        ]
    },
    "number": {"type": "number"},
    "count": {"type": "integer", "minimum": 1},
    "flag": {"type": "boolean"},
    "two numbers": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
    "101 numbers": {
        "type": "array",
        "items": {"type": "number"},
        "minItems": 101,
        "maxItems": 101,
    },
    "table of texts": {"type": "object", "additionalProperties": {"type": "string"}},
}


@dataclass(frozen=True)
class Key:
    """A key of competition.toml."""

    table: str  # "" is the file itself
    name: str
    type: str  # one of TYPES, or words separated by " | "
    default: str  # as people write it; "" means required
    example: str
    meaning: str

    @property
    def schema(self) -> dict[str, Any]:
        """Return what a value must look like."""
        found = TYPES.get(self.type) or {"enum": self.type.split(" | ")}
        return {"description": self.meaning, **found}


def _words(type_: Any) -> str:
    return " | ".join(get_args(type_))


KEYS = (
    Key("", "title", "text", "", '"Tide Heights"', "the name for people"),
    Key(
        "",
        "complexity",
        _words(Complexity),
        "",
        '"custom"',
        "`custom` for your own: such "
        "competitions run under the limits of the demo split and are in no rate of MLE-bench",
    ),
    Key("", "category", "text", "", '"Forecasting"', "what kind of task it is, in a word or two"),
    Key(
        "",
        "source",
        _words(Source),
        '"kaggle"',
        '"local"',
        "where the raw files come from: "
        "downloaded by the competition's id, made by `generate` in `prepare.py`, or found in "
        "`raw/` beside this file or in the store",
    ),
    Key("", "size_gb", "number", "none", "1.9", "the size of the download"),
    Key(
        "", "answers", "text", "", '"answers.csv"', "the file with the truth, in the private folder"
    ),
    Key(
        "",
        "sample",
        "text",
        "",
        '"sample_submission.csv"',
        "a valid submission, in the public folder",
    ),
    Key(
        "",
        "gold",
        "text",
        "none",
        '"gold.csv"',
        "the best submission, in the private folder, where the answers themselves are none",
    ),
    Key(
        "",
        "forbidden_words",
        "texts",
        "[]",
        '["harbour"]',
        "what `description_obfuscated.md` must not mention",
    ),
    Key("submission", "id", "text or texts", "", '"id"', "the columns that identify a row"),
    Key("submission", "targets", "text or texts", "", '["level"]', "the columns to predict"),
    Key(
        "submission",
        "kind",
        " | ".join(KINDS),
        '"number"',
        '"probability"',
        "what the targets hold: see kinds below",
    ),
    Key(
        "submission",
        "range",
        "two numbers",
        "none",
        "[0, 100]",
        "the lowest and the highest number",
    ),
    Key(
        "submission",
        "row_sum",
        "number",
        "none",
        "1e-5",
        "how far the sum of a row may be from one",
    ),
    Key(
        "submission",
        "missing",
        "reject | empty | nan",
        '"reject"',
        '"empty"',
        "what a missing text is",
    ),
    Key(
        "submission",
        "extra_columns",
        "ignore | reject | zeros",
        '"ignore"',
        '"reject"',
        "what becomes of further columns",
    ),
    Key(
        "submission.quirks",
        "kinds",
        "table of texts",
        "{}",
        '{ level = "integer" }',
        "the `kind` of single targets",
    ),
    Key(
        "submission.quirks",
        "booleans",
        "flag",
        "true",
        "false",
        "whether True and False are numbers",
    ),
    Key("submission.quirks", "true", "number", "1", "1.0", "the number that True counts as"),
    Key(
        "submission.quirks",
        "only_booleans",
        "flag",
        "true",
        "false",
        "whether all targets may hold nothing but True and False",
    ),
    Key(
        "submission.quirks",
        "varied",
        "flag",
        "false",
        "true",
        "refuse a target with one value in all rows",
    ),
    Key(
        "submission.quirks",
        "same_names",
        "reject | first",
        '"reject"',
        '"first"',
        "two columns of one name",
    ),
    Key(
        "submission.quirks",
        "rows",
        "exact | cover | scored",
        '"exact"',
        '"cover"',
        "`exact`: every id "
        "once; `cover`: further ids are ignored; `scored`: only the scored ones of the sample are "
        "needed",
    ),
    Key(
        "submission.quirks",
        "as_written",
        "texts",
        "[]",
        '["id"]',
        "columns not to be read as numbers",
    ),
    Key(
        "submission.quirks",
        "other_names",
        "table of texts",
        "{}",
        '{ level = "height" }',
        "further names of targets",
    ),
    Key(
        "metric",
        "name",
        "text",
        "",
        '"mae"',
        "a metric by name, see below; with a `grade.py` any text",
    ),
    Key(
        "metric",
        "direction",
        "lower | higher",
        "the metric's",
        '"lower"',
        "which scores are better; with a `grade.py` only, and required then",
    ),
    Key(
        "leaderboard",
        "scores",
        "text",
        "none",
        '"leaderboard.csv"',
        "a csv file beside this one with "
        "a column `score`: thresholds follow by Kaggle's medal rule; the other keys are not needed",
    ),
    Key(
        "leaderboard",
        "teams",
        "count",
        "unknown",
        "40",
        "how many teams the figures are of; required with percentiles",
    ),
    *(
        Key("leaderboard", name, "number", "", value, what)
        for name, value, what in (
            ("gold", "0.06", "the score that just earns gold"),
            ("silver", "0.1", "the score that just earns silver"),
            ("bronze", "0.2", "the score that just earns bronze"),
            ("median", "0.4", "the median team's score"),
        )
    ),
    Key(
        "leaderboard",
        "percentiles",
        "101 numbers",
        "none",
        "[0.05, …]",
        "scores from the best to the "
        "worst team; without them the place among the teams is not known",
    ),
    Key("checksums", "zip", "text", "none", '"9e10…"', "md5 of the download"),
    Key(
        "checksums",
        "public",
        "table of texts",
        "",
        '{ "train.csv" = "d41d…" }',
        "md5 of prepared files; `pytest-mlebench checksums ID --write` fills both in",
    ),
    Key(
        "checksums",
        "private",
        "table of texts",
        "",
        '{ "answers.csv" = "0cc1…" }',
        "the same for the private folder",
    ),
    Key("known_issues", "kind", _words(IssueKind), "", '"leak"', "what kind of issue it is"),
    Key("known_issues", "what", "text", "", '"the ids are in the order of time"', "one sentence"),
    Key("known_issues", "certain", "flag", "true", "false", "false where it is only suspected"),
    Key(
        "known_issues",
        "markers",
        "texts",
        "[]",
        '["giver_username_if_known"]',
        "words by which code that uses a leak is known to an audit",
    ),
)

HEADS = {
    "": "At the top of the file",
    "submission": "`[submission]`: what a submission looks like",
    "submission.quirks": "`[submission.quirks]`: what single competitions of MLE-bench need",
    "metric": "`[metric]`: how it is scored",
    "leaderboard": "`[leaderboard]`: what earns a medal (optional)",
    "checksums": "`[checksums]`: what the data must be (optional)",
    "known_issues": "`[[known_issues]]`: what a reader of results should know (optional)",
}
OPTIONAL_TABLES = ("submission.quirks", "leaderboard", "checksums", "known_issues")


def keys() -> str:
    """Return all keys as Markdown, a table for each table."""
    parts = []
    for table, head in HEADS.items():
        parts += [
            f"### {head}",
            "",
            "| key | type | default | example | meaning |",
            "|---|---|---|---|---|",
        ]
        parts += [_row(key) for key in KEYS if key.table == table]
        parts.append("")
    return "\n".join(parts)


def _row(key: Key) -> str:
    type_ = key.type.replace(" | ", ", ") if " | " in key.type else key.type
    default = f"`{key.default}`" if key.default else "required"
    example = f"`{key.example}`"
    return f"| `{key.name}` | {type_} | {default} | {example} | {key.meaning} |"


def metrics() -> str:
    """Return the metrics by name as a Markdown table."""
    rows = ["| metric | better | parameters | what it is |", "|---|---|---|---|"]
    for name, entry in sorted(METRICS.items()):
        sentence = (load_metric(name).__doc__ or "").split("\n")[0].removeprefix("Return ")
        parameters = [f"`{key}`" for key in entry.required]
        parameters += [f"`{key}` (optional)" for key in entry.optional]
        better = "lower" if entry.lower_is_better else "higher"
        rows.append(f"| `{name}` | {better} | {', '.join(parameters)} | {sentence} |")
    return "\n".join(rows) + "\n"


def kinds() -> str:
    """Return the kinds of values as Markdown, as the module that converts them lists them."""
    from pytest_mlebench.grading import values

    lines = (values.__doc__ or "").split("\n\n")[1].splitlines()
    text = "\n".join(lines)
    return f"```text\n{text}\n```\n"


def schema() -> str:
    """Return the JSON Schema of a competition.toml."""
    root = _object("")
    root["properties"]["submission"] = _object("submission")
    root["properties"]["submission"]["properties"]["quirks"] = _object("submission.quirks")
    metric = _object("metric")
    metric["additionalProperties"] = True  # a metric has parameters of its own
    root["properties"]["metric"] = metric
    board = _object("leaderboard")
    names = board.pop("required")
    board["anyOf"] = [{"required": ["scores"]}, {"required": names}]
    root["properties"]["leaderboard"] = board
    root["properties"]["checksums"] = _object("checksums")
    root["properties"]["known_issues"] = {"type": "array", "items": _object("known_issues")}
    root["required"] += ["submission", "metric"]
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "competition.toml of pytest-mlebench",
    }
    return json.dumps(head | root, indent=2, ensure_ascii=False) + "\n"


def _object(table: str) -> dict[str, Any]:
    mine = [key for key in KEYS if key.table == table]
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {key.name: key.schema for key in mine},
        "required": [key.name for key in mine if not key.default],
    }


def filled(text: str) -> str:
    """Return the page with the tables as they are to be."""
    for mark, content in {"keys": keys(), "metrics": metrics(), "kinds": kinds()}.items():
        text = readme.fill(text, mark, content)
    return text


def main() -> int:
    """Rewrite the page and the schema."""
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    SCHEMA.write_text(schema(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
