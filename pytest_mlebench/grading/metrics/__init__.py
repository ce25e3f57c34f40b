"""The table of metrics: name, home, direction, parameters. Importing it imports no metric.

A metric is ``metric(truth, prediction, **parameters) -> float`` over aligned arrays: one
dimension for a single target column, two for several, in the order of the competition's targets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class MetricEntry:
    """Where a metric is, which scores are better, which parameters it needs and knows."""

    home: str
    lower_is_better: bool
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


METRICS = {
    "accuracy": MetricEntry("classification", False),
    "angular_error": MetricEntry("regression", True),
    "binary_log_loss": MetricEntry("classification", True, optional=("epsilon",)),
    "error_rate": MetricEntry("classification", True),
    "exact_match": MetricEntry("text", False),
    "f1": MetricEntry("classification", False, optional=("average",)),
    "label_ranking_precision": MetricEntry("ranking", False),
    "levenshtein": MetricEntry("text", True),
    "log_loss": MetricEntry("classification", True, optional=("epsilon",)),
    "mae": MetricEntry("regression", True, optional=("digits",)),
    "map_at_k": MetricEntry("ranking", False, required=("k",)),
    "matthews": MetricEntry("classification", False),
    "multilabel_f1": MetricEntry("classification", False),
    "pearson": MetricEntry("regression", False),
    "quadratic_kappa": MetricEntry("classification", False),
    "rmse": MetricEntry("regression", True),
    "rmsle": MetricEntry("regression", True),
    "roc_auc": MetricEntry("classification", False),
    "spearman": MetricEntry("regression", False),
    "weighted_roc_auc": MetricEntry("classification", False, required=("bounds", "weights")),
    "word_jaccard": MetricEntry("text", False, optional=("both_empty",)),
}


def load_metric(name: str) -> Callable[..., float]:
    """Import the function of a metric."""
    from importlib import import_module

    module = import_module(f"{__name__}.{METRICS[name].home}")
    function: Callable[..., float] = getattr(module, name)
    return function
