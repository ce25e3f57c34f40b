"""The table of metrics: name, home and direction. Importing it imports no metric.

A metric is ``metric(truth, prediction, **parameters) -> float`` over aligned arrays: one
dimension for a single target column, two for several, in the order of the competition's targets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pytest_mlebench.errors import CompetitionFileError, did_you_mean


@dataclass(frozen=True)
class MetricEntry:
    """Where a metric is and which scores are better."""

    home: str
    lower_is_better: bool


METRICS = {
    name: MetricEntry(home, direction == "lower")
    for home, direction, names in (
        ("classification", "higher", "accuracy f1 matthews multilabel_f1 quadratic_kappa roc_auc"),
        ("classification", "higher", "weighted_roc_auc"),
        ("classification", "lower", "error_rate log_loss binary_log_loss"),
        ("regression", "lower", "angular_error mae rmse rmsle"),
        ("regression", "higher", "pearson spearman"),
        ("ranking", "higher", "label_ranking_precision map_at_k"),
        ("text", "higher", "exact_match word_jaccard"),
        ("text", "lower", "levenshtein"),
    )
    for name in names.split()
}


def metric_facts(name: str, *, where: str) -> MetricEntry:
    """Return the entry of a metric, or tell where an unknown one is named."""
    if name not in METRICS:
        raise CompetitionFileError(
            f"{where}: name {name!r} is not a known metric{did_you_mean(name, METRICS)}; "
            f"a competition of its own kind needs a grade.py"
        )
    return METRICS[name]


def load_metric(name: str) -> Callable[..., float]:
    """Import the function of a metric."""
    from importlib import import_module

    module = import_module(f"{__name__}.{METRICS[name].home}")
    function: Callable[..., float] = getattr(module, name)
    return function
