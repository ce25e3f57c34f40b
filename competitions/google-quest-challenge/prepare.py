"""Question-answer pairs are split at random; the rarest rating occurs in the test part."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing import read_csv, split_rows, write_csv

FEATURES = [
    "qa_id",
    "question_title",
    "question_body",
    "question_user_name",
    "question_user_page",
    "answer",
    "answer_user_name",
    "answer_user_page",
    "url",
    "category",
    "host",
]
TARGETS = [
    "question_asker_intent_understanding",
    "question_body_critical",
    "question_conversational",
    "question_expect_short_answer",
    "question_fact_seeking",
    "question_has_commonly_accepted_answer",
    "question_interestingness_others",
    "question_interestingness_self",
    "question_multi_intent",
    "question_not_really_a_question",
    "question_opinion_seeking",
    "question_type_choice",
    "question_type_compare",
    "question_type_consequence",
    "question_type_definition",
    "question_type_entity",
    "question_type_instructions",
    "question_type_procedure",
    "question_type_reason_explanation",
    "question_type_spelling",
    "question_well_written",
    "answer_helpful",
    "answer_level_of_information",
    "answer_plausible",
    "answer_relevance",
    "answer_satisfaction",
    "answer_type_instructions",
    "answer_type_procedure",
    "answer_type_reason_explanation",
    "answer_well_written",
]
RAREST = "question_type_spelling"


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the pairs."""
    path = raw / "train.csv"
    train, test = split_rows(read_csv(path, needs=[*FEATURES, *TARGETS]), 0.1)
    if test[RAREST].nunique() == 1:
        train, test = _exchanged(train, test, path)
    answers = test[["qa_id", *TARGETS]]
    steps = np.linspace(0, 1, len(test))  # a constant would have no correlation
    write_csv(train, public / "train.csv")
    write_csv(test[FEATURES], public / "test.csv")
    write_csv(answers.assign(**dict.fromkeys(TARGETS, steps)), public / "sample_submission.csv")
    write_csv(answers, private / "test.csv")


def _exchanged(
    train: pd.DataFrame, test: pd.DataFrame, path: Path
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Let the first train row that has the rarest rating and the first test row change places."""
    rated = np.flatnonzero(train[RAREST] != 0)
    if not len(rated):
        raise PreparationError(f"{path}: {RAREST} is 0 in every row that could be a test row")
    both = pd.concat([train, test])
    order = np.arange(len(both))
    order[[rated[0], len(train)]] = len(train), rated[0]
    both = both.iloc[order]
    return both.iloc[: len(train)], both.iloc[len(train) :]
