"""Kaggle's own split: its private test comments were published with all labels."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.competition import read_competition
from pytest_mlebench.preparing import link, read_csv, require, write_csv


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hide the labels of the private test comments."""
    labelled = raw / "test_private_expanded.csv"
    identities = read_competition(Path(__file__).parent).metric.parameters["identities"]
    test = read_csv(labelled, needs=["id", "comment_text", "toxicity", *identities])
    link(require(raw / "train.csv"), public / "train.csv")
    write_csv(test[["id", "comment_text"]], public / "test.csv")
    write_csv(test[["id"]].assign(prediction=0.0), public / "sample_submission.csv")
    link(labelled, private / "test.csv")
