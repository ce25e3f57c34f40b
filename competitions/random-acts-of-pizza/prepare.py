"""Requests are split at random; test requests keep the fields that Kaggle's test requests have."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing import read_records, split_list, write_csv, write_json, write_zip

ID, TARGET = "request_id", "requester_received_pizza"


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out as large a share as Kaggle's test set is of all requests."""
    unlabelled = read_records(raw / "test.json", needs=[ID])
    if not unlabelled:
        raise PreparationError(f"{raw / 'test.json'} has no requests")
    fields = list(unlabelled[0])  # what is known only later is missing there
    requests = read_records(raw / "train.json", needs=[TARGET, *fields])
    share = len(unlabelled) / (len(requests) + len(unlabelled))
    train, test = split_list(requests, share)
    shown = [{field: request[field] for field in fields} for request in test]
    for name, records in (("train", train), ("test", shown)):
        path = public / f"{name}.json"
        write_json(records, path, indent=4)
        write_zip(public / f"{name}.zip", {path.name: path})
    answers = pd.DataFrame(
        {ID: [request[ID] for request in test], TARGET: [int(request[TARGET]) for request in test]}
    )
    write_csv(answers, private / "test.csv")
    write_csv(answers.assign(**{TARGET: 0}), public / "sampleSubmission.csv")
