"""A cookbook of hooks: five recipes, each a class that is registered when its variable is set.

Take what you need into the conftest.py of your own repository.
"""

from __future__ import annotations

import hashlib
import json
import os
import urllib.request

import pytest


class Slack:
    """Post every medal, and how the session ended."""

    def __init__(self, webhook: str) -> None:
        self.webhook = webhook
        self.medals = 0

    def pytest_mle_graded(self, run, grade):
        """Say it as soon as it is known."""
        if grade.medal:
            self.medals += 1
            self.post(f"{grade.medal} in {grade.competition} (score {grade.score:g})")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus):
        """Sum up; with xdist, workers have said their part."""
        self.post(f"{self.medals} medals, exit status {int(exitstatus)}")

    def post(self, text: str) -> None:
        """Send a message; a chat that is down must not fail a benchmark."""
        body = json.dumps({"text": text}).encode()
        headers = {"Content-Type": "application/json"}
        try:
            urllib.request.urlopen(urllib.request.Request(self.webhook, body, headers), timeout=10)
        except OSError as error:
            print(f"slack: {error}")


class Mlflow:
    """Log every grade as a run of MLflow (pip install mlflow, MLFLOW_TRACKING_URI)."""

    def pytest_mle_graded(self, run, grade):
        """Log conditions as parameters, results as metrics, the submission as an artefact."""
        import mlflow

        with mlflow.start_run(run_name=f"{grade.competition}-seed{run.record.seed}"):
            mlflow.log_params({"competition": grade.competition, "seed": run.record.seed})
            if grade.valid:
                mlflow.log_metric("score", grade.score)
            mlflow.log_metric("medal", int(grade.medal))
            if run.submission.is_file():
                mlflow.log_artifact(str(run.submission))


class WeightsAndBiases:
    """Log every grade to one run of Weights & Biases (pip install wandb, WANDB_PROJECT)."""

    def pytest_mle_graded(self, run, grade):
        """Log the grade under the name of its competition."""
        import wandb

        if wandb.run is None:
            wandb.init(project=os.environ["WANDB_PROJECT"], job_type="mle-bench")
        facts = {"medal": int(grade.medal), "seed": run.record.seed}
        facts |= {"score": grade.score} if grade.valid else {}
        wandb.log({f"{grade.competition}/{key}": value for key, value in facts.items()})


class Skip:
    """Skip competitions with a known leak. They stay expected: no bar forgets them."""

    def pytest_runtest_setup(self, item):
        """Skip before anything is prepared."""
        from pytest_mlebench import load_competition

        name = getattr(item, "callspec", None) and item.callspec.params.get("mle_competition")
        if name and load_competition(name).is_leaky:
            pytest.skip("has a known leak")


class Sample:
    """Run a part of the selection, the same part every time."""

    def __init__(self, percent: float) -> None:
        self.percent = percent

    def pytest_collection_modifyitems(self, config, items):
        """Keep a competition by a digest of its name."""
        chosen = [item for item in items if self.is_chosen(item)]
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen

    def is_chosen(self, item) -> bool:
        """Tell whether an item is part of the sample."""
        name = item.callspec.params["mle_competition"] if hasattr(item, "callspec") else item.name
        return hashlib.sha256(name.encode()).digest()[0] < 256 * self.percent / 100


def pytest_configure(config):
    """Register the recipes that are asked for."""
    recipes = {
        "SLACK_WEBHOOK": Slack,
        "MLFLOW_TRACKING_URI": lambda _: Mlflow(),
        "WANDB_PROJECT": lambda _: WeightsAndBiases(),
        "SKIP_LEAKS": lambda _: Skip(),
        "SAMPLE_PERCENT": lambda value: Sample(float(value)),
    }
    for variable, recipe in recipes.items():
        if value := os.environ.get(variable):
            config.pluginmanager.register(recipe(value), variable.lower())


def pytest_mle_report(config):
    """Add facts of your own to every report."""
    return {"team": os.environ.get("TEAM", "unknown")}
