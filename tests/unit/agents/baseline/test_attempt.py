"""The baseline agent, run as a process on a data folder of each kind."""

from __future__ import annotations

import json
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from baseline_agent import Home, imported
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score


def split(table: pd.DataFrame, size: int = 150) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return *size* rows to learn from and as many to predict, with ids that start with zeros."""
    table = table.sample(2 * size, random_state=0, ignore_index=True)
    table.insert(0, "id", [f"{number:05d}" for number in range(len(table))])
    return table[:size], table[size:]


def shuffled(table: pd.DataFrame) -> pd.DataFrame:
    return table.sample(frac=1, random_state=1)


def test_probabilities_of_several_classes(home: Home) -> None:
    wine = load_wine(as_frame=True)
    table = wine.data.assign(cultivar=np.array(["red", "white", "rosé"])[wine.target])
    train, test = split(table, 89)
    home.write("train.csv", train)
    home.write("test.csv", test.drop(columns="cultivar"))
    home.write(
        "sample_submission.csv",
        shuffled(test[["id"]]).assign(red=0.33, white=0.33, rosé=0.34),
    )
    home.run()
    truth = test.set_index("id")["cultivar"]
    said = home.submission().loc[truth.index]
    assert list(said.columns) == ["red", "white", "rosé"]
    np.testing.assert_allclose(said.sum(axis=1), 1, atol=1e-9)
    assert log_loss(truth, said[["red", "rosé", "white"]]) < 0.3


def test_the_probability_of_a_class(home: Home) -> None:
    cancer = load_breast_cancer(as_frame=True)
    train, test = split(cancer.frame)
    home.write("train.csv", train)
    home.write("test.csv", test.drop(columns="target"))
    home.write("sampleSubmission.csv", test[["id"]].assign(target=0.5))
    home.run()
    said = home.submission().loc[test["id"], "target"]
    assert said.between(0, 1).all()
    assert roc_auc_score(test["target"], said) > 0.95


def test_a_quantity_in_an_archive(home: Home) -> None:
    train, test = split(load_diabetes(as_frame=True).frame, 200)
    with zipfile.ZipFile(home.data / "train.csv.zip", "w") as archive:
        archive.writestr("train.csv", train.to_csv(index=False))
    home.write("test.csv", test.drop(columns="target"))
    home.write("sample_submission.csv", test[["id"]].assign(target=0))
    home.run()
    said = home.submission().loc[test["id"], "target"].to_numpy()
    errors = said - test["target"].to_numpy()
    assert np.sqrt((errors**2).mean()) < 0.85 * test["target"].std()
    assert said.min() >= train["target"].min()


def test_labels_of_pictures_in_columns(home: Home) -> None:
    digits = load_digits(as_frame=True).frame.astype(int)
    train, test = split(digits, 400)
    home.write("train.csv", train.rename(columns={"target": "label"}))
    home.write("test.csv", test.drop(columns="target"))
    home.write("sample_submission.csv", test[["id"]].assign(Label=0))
    home.run()
    said = home.submission().loc[test["id"], "Label"]
    assert said.dtype == np.int64
    assert accuracy_score(test["target"], said) > 0.93


def test_labels_of_text(home: Home) -> None:
    random = np.random.default_rng(0)
    themes = {"ship": "sail wind mast harbour wave", "farm": "cow plough field barn harvest"}
    common = ["the", "a", "of", "and", "it", "was", "so", "then", "there", "old"]
    rows = [
        (" ".join(random.choice([*words.split(), *common], 8)), theme)
        for theme, words in themes.items()
        for _ in range(100)
    ]
    train, test = split(pd.DataFrame(rows, columns=["text", "theme"]), 100)
    home.write("train.csv", train)
    home.write("test.csv", test.drop(columns="theme"))
    home.write("sample_submission.csv", test[["id"]].assign(theme="ship"))
    home.run()
    said = home.submission().loc[test["id"], "theme"]
    assert accuracy_score(test["theme"], said) > 0.9


def test_several_labels_from_categories_dates_and_gaps(home: Home) -> None:
    random = np.random.default_rng(0)
    size = 400
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 700, size), unit="D")
    colour = random.choice(["red", "green", "blue"], size)
    weight = random.normal(size=size)
    table = pd.DataFrame(
        {
            "when": np.where(random.random(size) < 0.05, None, days.strftime("%Y-%m-%d")),
            "colour": colour,
            "weight": np.where(random.random(size) < 0.1, np.nan, weight),
            "same": 1,
            "warm": (days.month.isin([5, 6, 7, 8])).astype(int),
            "loud": ((colour == "red") ^ (random.random(size) < 0.05)).astype(int),
        }
    )
    train, test = split(table, 200)
    home.write("train.csv", train)
    home.write("test.csv", test.drop(columns=["warm", "loud"]))
    home.write("sample_submission.csv", test[["id"]].assign(warm=0.5, loud=0.5))
    home.run()
    said = home.submission().loc[test["id"]]
    assert roc_auc_score(test["warm"], said["warm"]) > 0.95
    assert roc_auc_score(test["loud"], said["loud"]) > 0.85


@contextmanager
def format_check(refuses: str) -> Iterator[tuple[str, list[bytes]]]:
    """Serve a format check that refuses uploads with some text in them."""
    seen: list[bytes] = []

    class Check(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(self.rfile.read(int(self.headers["Content-Length"])))
            refused = refuses.encode() in seen[-1]
            answer = "Submission is invalid" if refused else "Submission is valid"
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"result": answer}).encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Check)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/validate", seen
    finally:
        server.shutdown()
        server.server_close()


def write_zeros(home: Home) -> pd.DataFrame:
    """Write a binary competition whose sample does not tell labels from probabilities."""
    train, test = split(load_breast_cancer(as_frame=True).frame.iloc[:, -8:], 60)
    home.write("train.csv", train)
    home.write("test.csv", test.drop(columns="target"))
    home.write("sample_submission.csv", test[["id"]].assign(target=0))
    return test


def test_a_format_check_that_refuses_scores_gets_labels(home: Home) -> None:
    test = write_zeros(home)
    with format_check(refuses=",0.") as (url, seen):
        log = home.run(MLE_VALIDATE_URL=url)
    said = home.submission().loc[test["id"], "target"]
    assert set(said) == {0, 1}
    assert accuracy_score(test["target"], said) > 0.85
    assert 'format check: {"result": "Submission is invalid"}' in log
    assert log.endswith('format check: {"result": "Submission is valid"}\n')
    assert len(seen) == 3


def test_without_an_objection_scores_are_handed_in_the_same_for_the_same_seed(home: Home) -> None:
    test = write_zeros(home)
    log = home.run(MLE_VALIDATE_URL="http://127.0.0.1:9/validate")
    said = home.submission().loc[test["id"], "target"]
    assert said.nunique() > 10
    assert "format check: no answer" in log
    home.run()
    assert said.equals(home.submission().loc[test["id"], "target"])


def test_without_time_the_prior_is_handed_in(home: Home) -> None:
    write_zeros(home)
    log = home.run(MLE_TIME_LIMIT_SECS="0.01")
    said = home.submission()["target"]
    train = pd.read_csv(home.data / "train.csv")
    assert said.to_numpy() == pytest.approx(train["target"].mean())
    assert "no time for logistic regression" in log


def test_a_constant_that_is_refused_gets_a_tiny_spread(home: Home) -> None:
    train, test = split(load_diabetes(as_frame=True).frame, 200)
    home.write("train.csv", train)
    home.write("test.csv", test.drop(columns="target"))
    home.write("sample_submission.csv", test[["id"]].assign(target=0))
    with format_check(refuses=f",{train['target'].mean()}\n") as (url, seen):
        home.run(MLE_VALIDATE_URL=url, MLE_TIME_LIMIT_SECS="0.01")
    said = home.submission()["target"]
    assert said.is_unique
    assert said.to_numpy() == pytest.approx(train["target"].mean(), abs=1)
    assert len(seen) == 3


def test_what_the_format_check_always_refuses_is_taken_back(home: Home) -> None:
    write_zeros(home)
    with format_check(refuses="target") as (url, _):
        log = home.run(MLE_VALIDATE_URL=url)
    assert (home.submission()["target"] == 0).all()
    assert log.count("handed in again what was valid before") == 2


def test_a_surprise_costs_the_rest_of_the_search_and_nothing_else(home: Home) -> None:
    sample = pd.DataFrame({"id": ["1", "2"], "y": ["0", "0"]})
    home.write("sample_submission.csv", sample)
    with imported("attempt", "workspace") as (attempt, workspace):
        place = workspace.Workspace(
            data=home.data,
            submission=home.path / "submission" / "submission.csv",
            log_file=home.path / "logs" / "baseline.log",
            seed=0,
            deadline=0.0,
            validate_url=None,
        )
        with patch.object(attempt, "list_media", side_effect=KeyError("surprise")):
            assert attempt.attempt(place) == 1
    assert home.submission()["y"].tolist() == [0, 0]
    assert "KeyError: 'surprise'" in (home.path / "logs" / "baseline.log").read_text()


def test_text_that_the_sample_repeats_is_learnt_from(home: Home) -> None:
    random = np.random.default_rng(0)
    rude = random.permutation([0, 1] * 60)
    words = [["you", "are", "fool" if flag else "friend", "of", "mine"] for flag in rude]
    table = pd.DataFrame(
        {"rude": rude, "id": "", "comment": [" ".join(random.permutation(w)) for w in words]}
    )
    home.write("train.csv", table[:80])
    home.write("test.csv", table[80:].drop(columns="rude"))
    home.write("sample_submission_null.csv", table[80:].assign(rude=0))
    home.run()
    said = pd.read_csv(home.path / "submission" / "submission.csv")
    assert said["comment"].tolist() == table["comment"][80:].tolist()
    assert roc_auc_score(rude[80:], said["rude"]) > 0.95


def test_rows_that_are_nowhere_described_get_the_prior(home: Home) -> None:
    home.write("train.csv", pd.DataFrame({"id": range(30), "kind": ["a"] * 20 + ["b"] * 10}))
    home.write("sample_submission.csv", pd.DataFrame({"id": ["x", "y"], "a": 0.5, "b": 0.5}))
    log = home.run()
    assert home.submission().loc["y"].tolist() == pytest.approx([2 / 3, 1 / 3])
    assert "there is nothing to learn from: the prior must do" in log


def test_without_tables_the_sample_is_handed_in(home: Home) -> None:
    sample = pd.DataFrame({"id": ["01", "NA"], "text": ["1 2", ""]})
    home.write("sample_submission.csv", sample)
    (home.data / "train.json").write_text('{"a": [1, 2], "b": [1]}')
    log = home.run()
    written = (home.path / "submission" / "submission.csv").read_text()
    assert written == "id,text\n01,1 2\nNA,\n"
    assert "the tables cannot be read: All arrays must be of the same length" in log
