"""Make the leaderboards of the demo split: train a population of models, place their scores.

    python scripts/demo_leaderboards.py [ID ...]

For each competition 240 models of many kinds are drawn at random, from a constant guess to tuned
ensembles, with few or all features, on parts or all of the rows; each is trained on the public
data and graded like a submission. The scores go to ``population.csv`` beside the competition, and
the medal rule applied to them to its ``competition.toml``. Rerunning gives the same population;
scores may move in the last digits with the version of scikit-learn.
"""

from __future__ import annotations

import sys
import tempfile
import tomllib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import ensemble, linear_model, naive_bayes, neighbors, neural_network, svm, tree
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, QuantileTransformer, StandardScaler

from pytest_mlebench import list_competitions, load_competition
from pytest_mlebench.competition import Competition
from pytest_mlebench.medals import DECIMALS, Leaderboard

POPULATION = 240
Random = np.random.RandomState


@dataclass(frozen=True)
class Task:
    """What a population needs to know of a competition."""

    target: str
    regression: bool = False
    text: str | None = None
    classes: tuple[str, ...] = ()  # probability columns of the submission
    positive: bool = False  # the submission is the probability of class 1


TASKS = {
    "demo-wine-cultivars": Task("cultivar", classes=("barolo", "grignolino", "barbera")),
    "demo-tumour-diagnosis": Task("malignant", positive=True),
    "demo-diabetes-progression": Task("progression", regression=True),
    "demo-digits": Task("digit"),
    "demo-support-desk": Task("team", text="message"),
    "demo-bakery-orders": Task("loaves", regression=True),
}

Draw = Callable[[Random], Any]

CLASSIFIERS: dict[str, Draw] = {
    "prior": lambda r: DummyClassifier(strategy="prior"),
    "neighbours": lambda r: neighbors.KNeighborsClassifier(
        int(r.choice([1, 2, 3, 5, 8, 13, 21, 34])), weights=_pick(r, "uniform", "distance")
    ),
    "bayes": lambda r: naive_bayes.GaussianNB(var_smoothing=_log(r, -9, 0)),
    "tree": lambda r: tree.DecisionTreeClassifier(
        max_depth=_pick(r, 1, 2, 3, 5, 8, None), min_samples_leaf=_pick(r, 1, 3, 10), random_state=r
    ),
    "logistic": lambda r: linear_model.LogisticRegression(C=_log(r, -4, 3), max_iter=500),
    "vectors": lambda r: svm.SVC(C=_log(r, -2, 2), gamma="scale", probability=True, random_state=0),
    "forest": lambda r: ensemble.RandomForestClassifier(
        int(r.choice([10, 30, 100])), max_features=_pick(r, "sqrt", 0.5), random_state=r
    ),
    "extra trees": lambda r: ensemble.ExtraTreesClassifier(
        int(r.choice([30, 100])), min_samples_leaf=_pick(r, 1, 2, 5), random_state=r
    ),
    "boosting": lambda r: ensemble.HistGradientBoostingClassifier(
        max_iter=int(r.choice([10, 30, 60])), learning_rate=_log(r, -2, -0.3), random_state=0
    ),
    "network": lambda r: neural_network.MLPClassifier(
        (int(r.choice([8, 32, 64])),), alpha=_log(r, -4, 1), max_iter=200, random_state=r
    ),
}
REGRESSORS: dict[str, Draw] = {
    "mean": lambda r: DummyRegressor(strategy=_pick(r, "mean", "median")),
    "neighbours": lambda r: neighbors.KNeighborsRegressor(
        int(r.choice([1, 2, 3, 5, 8, 13, 21, 34])), weights=_pick(r, "uniform", "distance")
    ),
    "ridge": lambda r: linear_model.Ridge(alpha=_log(r, -3, 4)),
    "lasso": lambda r: linear_model.Lasso(alpha=_log(r, -2, 2)),
    "poisson": lambda r: linear_model.PoissonRegressor(alpha=_log(r, -4, 1), max_iter=300),
    "tree": lambda r: tree.DecisionTreeRegressor(
        max_depth=_pick(r, 1, 2, 3, 5, 8, None), min_samples_leaf=_pick(r, 1, 3, 10), random_state=r
    ),
    "vectors": lambda r: svm.SVR(C=_log(r, -1, 3), epsilon=_log(r, -2, 1)),
    "forest": lambda r: ensemble.RandomForestRegressor(
        int(r.choice([10, 30, 100])), max_features=_pick(r, 0.3, 0.6, 1.0), random_state=r
    ),
    "extra trees": lambda r: ensemble.ExtraTreesRegressor(
        int(r.choice([30, 100])), min_samples_leaf=_pick(r, 1, 3, 8), random_state=r
    ),
    "boosting": lambda r: ensemble.HistGradientBoostingRegressor(
        max_iter=int(r.choice([20, 60, 120])), learning_rate=_log(r, -2, -0.5), random_state=0
    ),
    "quantile boosting": lambda r: ensemble.HistGradientBoostingRegressor(
        loss="quantile", quantile=float(r.uniform(0.4, 0.9)), max_iter=60, random_state=0
    ),
}
TEXT = ("prior", "neighbours", "tree", "logistic", "vectors", "forest", "extra trees")


def main(ids: list[str]) -> int:
    """Make the leaderboards of some competitions of the demo split, or of all."""
    warnings.simplefilter("ignore")  # models that do not converge are part of the population
    for competition_id in ids or list_competitions("demo"):
        competition = load_competition(competition_id)
        with tempfile.TemporaryDirectory() as scratch:
            population = _population(competition, Path(scratch))
        _write(competition, population)
        print(f"{competition_id}: {len(population)} models", flush=True)
    return 0


def _population(competition: Competition, scratch: Path) -> pd.DataFrame:
    raw, public, private = (scratch / name for name in ("raw", "public", "private"))
    raw.mkdir()
    competition.generate(raw)
    competition.prepare(raw, public, private)
    task = TASKS[competition.id]
    train, test = pd.read_csv(public / "train.csv"), pd.read_csv(public / "test.csv")
    rows = []
    for number in range(POPULATION):
        name, prediction = _member(task, train, test, Random(number))
        submission = scratch / "submission.csv"
        prediction.to_csv(submission, index=False)
        rows.append((name, round(competition.score(submission, private), DECIMALS)))
    return pd.DataFrame(rows, columns=["model", "score"])


def _member(
    task: Task, train: pd.DataFrame, test: pd.DataFrame, random: Random
) -> tuple[str, pd.DataFrame]:
    """Draw one model, train it on a part of the rows and columns, and predict."""
    models = REGRESSORS if task.regression else CLASSIFIERS
    name = str(random.choice(list(TEXT) if task.text else list(models)))
    part = train.sample(frac=_pick(random, 0.5, 1.0, 1.0, 1.0), random_state=random)
    features = [column for column in test.columns if column != "id"]
    if not task.text and random.uniform() < 0.2:
        features = random.choice(features, max(2, len(features) // 2), replace=False).tolist()
    steps = _preparation(task, part, features, random)
    model = make_pipeline(*steps, models[name](random)).fit(
        _inputs(task, part, features), part[task.target]
    )
    return name, _submission(task, model, test, _inputs(task, test, features))


def _inputs(task: Task, table: pd.DataFrame, features: list[str]) -> Any:
    return table[task.text] if task.text else table[features]


def _preparation(task: Task, part: pd.DataFrame, features: list[str], random: Random) -> list[Any]:
    if task.text:
        letters = random.uniform() < 0.5
        return [
            TfidfVectorizer(
                analyzer="char_wb" if letters else "word",
                ngram_range=(2, int(random.choice([3, 4])))
                if letters
                else (1, int(random.choice([1, 2]))),
                min_df=int(random.choice([1, 2, 5])),
                sublinear_tf=bool(random.choice([True, False])),
            )
        ]
    words = [column for column in features if part[column].dtype.kind not in "if"]
    numbers = [column for column in features if column not in words]
    scaler = _pick(random, "passthrough", StandardScaler(), QuantileTransformer(n_quantiles=50))
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return [make_column_transformer((scaler, numbers), (encoder, words))]


def _submission(task: Task, model: Any, test: pd.DataFrame, inputs: Any) -> pd.DataFrame:
    ids = test[["id"]]
    if task.regression:
        return ids.assign(**{task.target: np.maximum(model.predict(inputs), 0)})
    if not task.classes and not task.positive:
        return ids.assign(**{task.target: model.predict(inputs)})
    chances = pd.DataFrame(model.predict_proba(inputs), columns=model.classes_, index=test.index)
    if task.positive:
        return ids.assign(**{task.target: chances[1]})
    chances = chances.reindex(columns=list(task.classes), fill_value=0.0).clip(0, 1)
    return ids.join(chances.div(chances.sum(axis=1), axis=0))


def _write(competition: Competition, population: pd.DataFrame) -> None:
    """Keep the population, and put the leaderboard it makes into the competition's facts."""
    lower = competition.lower_is_better
    ranked = population.sort_values("score", ascending=lower, kind="stable")
    ranked.to_csv(competition.folder / "population.csv", index=False)
    board = Leaderboard.from_scores(ranked["score"].tolist(), lower_is_better=lower)
    path = competition.folder / "competition.toml"
    facts = path.read_text(encoding="utf-8").partition("[leaderboard]")[0]
    lines = ["[leaderboard]", f"teams = {board.teams}"]
    figures = ("gold", "silver", "bronze", "median")
    lines += [f"{key} = {round(getattr(board, key), 6)!r}" for key in figures]
    lines += ["percentiles = [", *_wrapped(board.percentiles), "]"]
    text = facts + "\n".join(lines) + "\n"
    tomllib.loads(text)
    path.write_text(text, encoding="utf-8")


def _wrapped(numbers: tuple[float, ...]) -> list[str]:
    return [
        "    " + ", ".join(map(repr, numbers[start : start + 10])) + ","
        for start in range(0, len(numbers), 10)
    ]


def _pick(random: Random, *choices: Any) -> Any:
    return choices[random.randint(len(choices))]


def _log(random: Random, low: float, high: float) -> float:
    return float(10 ** random.uniform(low, high))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
