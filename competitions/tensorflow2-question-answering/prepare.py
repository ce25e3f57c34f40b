"""Questions are split at random within each thousand lines of the file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any

import pandas as pd

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing import new_file, reading, require, split_list, write_csv

FILE = "simplified-nq-{}.jsonl"
SHOWN = ("example_id", "question_text", "document_text", "long_answer_candidates")
CHUNK_LINES = 1000

Record = dict[str, Any]


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the questions."""
    source = require(raw / FILE.format("train"))
    gold: list[tuple[str, str | None]] = []
    with (
        reading(source),
        source.open(encoding="utf-8") as lines,
        new_file(public / FILE.format("train")) as train_file,
        new_file(public / FILE.format("test")) as test_file,
        new_file(private / "test.jsonl") as answers,
    ):
        for records in _chunks(lines, source):
            train, test = split_list(records, 0.1)
            _write(train, train_file)
            _write(test, answers)
            _write(({key: record[key] for key in SHOWN} for record in test), test_file)
            for record in test:
                gold += _answers(record)
    if not gold:
        raise PreparationError(f"{source} has no lines")
    table = pd.DataFrame(gold, columns=["example_id", "PredictionString"])
    write_csv(table, private / "gold_submission.csv")
    write_csv(table.assign(PredictionString=""), public / "sample_submission.csv")


def _chunks(lines: IO[str], source: Path) -> Iterator[list[Record]]:
    """Yield the records of a thousand lines each, all with the same keys in the same order."""
    while chunk := list(islice(lines, CHUNK_LINES)):
        records: list[Record] = [json.loads(line) for line in chunk if not line.isspace()]
        if len(records) == 1:
            raise PreparationError(f"{source}: its last line stands alone, damaged or cut off")
        keys = list(dict.fromkeys(key for record in records for key in record))
        for needed in (*SHOWN, "annotations"):
            if not all(needed in record for record in records):
                raise PreparationError(f"{source} has a line without {needed!r}")
        for number, record in enumerate(records):
            ordered = {key: record.get(key) for key in keys}
            records[number] = {**ordered, "example_id": str(record["example_id"])}
        yield records


def _write(records: Iterable[Record], file: IO[bytes]) -> None:
    file.writelines(f"{_encoded(record)}\n".encode() for record in records)


def _encoded(record: Record) -> str:
    """Return a record as JSON in the dialect of pandas: no blanks, slashes escaped, DEL not."""
    text = json.dumps(record, separators=(",", ":")).replace("/", "\\/")
    if "\\u007f" in text:
        text = re.sub(r"(\\\\)|\\u007f", lambda found: found[1] or "\x7f", text)
    return text


def _answers(record: Record) -> Iterator[tuple[str, str | None]]:
    """Yield the rows of a question: its short answer, or the first of several, and its long one."""
    annotation = record["annotations"][0]
    yes_no, spans = annotation["yes_no_answer"], annotation["short_answers"]
    first = _span(spans[0]) if spans else None
    long = annotation["long_answer"]
    yield f"{record['example_id']}_short", first if yes_no == "NONE" else yes_no
    yield f"{record['example_id']}_long", None if long["start_token"] == -1 else _span(long)


def _span(answer: Record) -> str:
    return f"{answer['start_token']}:{answer['end_token']}"
