"""The models that compete, each with the view it wants and the size it can bear."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from task import MAX_CLASSES
from views import View, Views

FEW = 10_000  # rows; from here on scikit-learn's boosting stops by itself when it is good enough

Maker = Callable[[int], Any]  # seed -> an estimator of scikit-learn


@dataclass(frozen=True)
class Candidate:
    """A model by name."""

    name: str
    view: View
    make: Maker


@dataclass(frozen=True)
class _Offer:
    name: str
    view: str  # a field of Views
    make: Maker
    most_rows: int = 10**9
    most_columns: int = 10**9
    most_classes: int = 200
    more_rows_than: int = 0
    columns_per_row: float = 10**9  # more are slow, and help nothing


def classifiers(views: Views, classes: int) -> list[Candidate]:
    """Return the classifiers that fit some views, the quickest first."""
    return _choose(
        views,
        classes,
        _Offer("naive Bayes on words", "words", _naive_bayes),
        _Offer("linear SVM on words", "words", _linear_svm, 100_000),
        _Offer("logistic regression on words", "words", _logistic(10.0), 100_000),
        _Offer(
            "linear discriminants",
            "scaled",
            _linear_discriminants,
            50_000,
            most_classes=MAX_CLASSES,
        ),
        _Offer(
            "quadratic discriminants",
            "scaled",
            _quadratic_discriminants,
            50_000,
            500,
            columns_per_row=0.5,
        ),
        _Offer("logistic regression", "scaled", _logistic(1.0), 200_000),
        _Offer("logistic regression, strict", "scaled", _logistic(0.05), 200_000),
        _Offer("neighbours", "scaled", _neighbours, 20_000, most_classes=MAX_CLASSES),
        _Offer("support vectors", "scaled", _support_vectors(1.0), 4_000),
        _Offer("support vectors, loose", "scaled", _support_vectors(10.0), 4_000),
        _Offer("extra trees", "plain", _extra_trees, 100_000),
        _Offer("boosted trees", "plain", _boosted_trees(80), FEW, 2_000, 8, columns_per_row=1),
        _Offer("more boosted trees", "plain", _boosted_trees(500), 10**9, 2_000, 8, FEW),
    )


def regressors(views: Views) -> list[Candidate]:
    """Return the regressors that fit some views, the quickest first."""
    return _choose(
        views,
        1,
        _Offer("ridge on words", "words", _ridge, 100_000),
        _Offer("linear regression", "scaled", _bayesian_ridge, 200_000),
        _Offer("quadratic regression", "scaled", _quadratic_ridge, 20_000, 40),
        _Offer("splines", "scaled", _splines, 50_000, 100),
        _Offer("support vectors", "scaled", _support_vector_regression(1.0, "scale"), 4_000),
        _Offer("support vectors, loose", "scaled", _support_vector_regression(10.0, 0.03), 4_000),
        _Offer("extra trees", "plain", _extra_trees_regression, 100_000),
        _Offer("boosted trees", "plain", _boosted_regression(120), FEW, 2_000, columns_per_row=1),
        _Offer("more boosted trees", "plain", _boosted_regression(500), 10**9, 2_000, 1, FEW),
    )


def joint_regressors(views: Views, targets: int) -> list[Candidate]:
    """Return the regressors that learn several targets at once, the quickest first."""
    return _choose(
        views,
        targets,
        _Offer("ridge on words", "words", _ridge, 100_000, most_classes=MAX_CLASSES),
        _Offer("linear regression", "scaled", _ridge_of_any_strength, 200_000, 2_000, MAX_CLASSES),
        _Offer("neighbours", "scaled", _near_values, 20_000, most_classes=MAX_CLASSES),
        _Offer("kernel ridge", "scaled", _kernel_ridge, 4_000, most_classes=MAX_CLASSES),
        _Offer("extra trees", "plain", _extra_trees_regression, 100_000),
    )


def _choose(views: Views, classes: int, *offers: _Offer) -> list[Candidate]:
    def fits(offer: _Offer, view: View | None) -> bool:
        return (
            view is not None
            and offer.more_rows_than < view.train.shape[0] <= offer.most_rows
            and view.train.shape[1] <= offer.most_columns
            and view.train.shape[1] <= offer.columns_per_row * view.train.shape[0]
            and classes <= offer.most_classes
        )

    pairs = ((offer, getattr(views, offer.view)) for offer in offers)
    return [Candidate(o.name, view, o.make) for o, view in pairs if fits(o, view)]


# The estimators are imported one by one, by need: scikit-learn as a whole takes seconds.


def _naive_bayes(seed: int) -> Any:
    from sklearn.naive_bayes import ComplementNB

    return ComplementNB(alpha=0.3)


def _linear_svm(seed: int) -> Any:
    from sklearn.svm import LinearSVC

    return _calibrated(LinearSVC(C=0.5, random_state=seed))


def _support_vectors(cost: float) -> Maker:
    def make(seed: int) -> Any:
        from sklearn.svm import SVC

        return _calibrated(SVC(C=cost))

    return make


def _calibrated(machine: Any) -> Any:
    from sklearn.calibration import CalibratedClassifierCV

    return CalibratedClassifierCV(machine, ensemble=False, cv=3)


def _logistic(cost: float) -> Maker:
    def make(seed: int) -> Any:
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(C=cost, max_iter=300)

    return make


def _linear_discriminants(seed: int) -> Any:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")


def _quadratic_discriminants(seed: int) -> Any:
    from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

    return QuadraticDiscriminantAnalysis(reg_param=0.1)


def _neighbours(seed: int) -> Any:
    from sklearn.neighbors import KNeighborsClassifier

    return KNeighborsClassifier(7, weights="distance")


def _extra_trees(seed: int) -> Any:
    from sklearn.ensemble import ExtraTreesClassifier

    return _filled(
        ExtraTreesClassifier(64, min_samples_leaf=2, n_jobs=_threads(), random_state=seed)
    )


def _boosted_trees(most: int) -> Maker:
    def make(seed: int) -> Any:
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(max_iter=most, max_leaf_nodes=15, random_state=seed)

    return make


def _ridge(seed: int) -> Any:
    from sklearn.linear_model import Ridge

    return Ridge(alpha=1.0, solver="sparse_cg", random_state=seed)


def _bayesian_ridge(seed: int) -> Any:
    from sklearn.linear_model import BayesianRidge

    return BayesianRidge()


def _quadratic_ridge(seed: int) -> Any:
    from sklearn.preprocessing import PolynomialFeatures

    return _then_ridge(PolynomialFeatures(2, include_bias=False))


def _splines(seed: int) -> Any:
    from sklearn.preprocessing import SplineTransformer

    return _then_ridge(SplineTransformer(6, extrapolation="linear"))


def _then_ridge(step: Any) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(step, StandardScaler(), _ridge_of_any_strength(0))


def _ridge_of_any_strength(seed: int) -> Any:
    from sklearn.linear_model import RidgeCV

    return RidgeCV([10.0**power for power in range(-2, 5)])


def _kernel_ridge(seed: int) -> Any:
    from sklearn.kernel_ridge import KernelRidge

    return KernelRidge(alpha=1.0, kernel="rbf")


def _near_values(seed: int) -> Any:
    from sklearn.neighbors import KNeighborsRegressor

    return KNeighborsRegressor(15, weights="distance")


def _support_vector_regression(cost: float, gamma: float | str) -> Maker:
    def make(seed: int) -> Any:
        from sklearn.compose import TransformedTargetRegressor
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import SVR

        machine = SVR(C=cost, gamma=gamma)
        return TransformedTargetRegressor(machine, transformer=StandardScaler())

    return make


def _extra_trees_regression(seed: int) -> Any:
    from sklearn.ensemble import ExtraTreesRegressor

    return _filled(
        ExtraTreesRegressor(64, min_samples_leaf=2, n_jobs=_threads(), random_state=seed)
    )


def _boosted_regression(most: int) -> Maker:
    def make(seed: int) -> Any:
        from sklearn.ensemble import HistGradientBoostingRegressor

        return HistGradientBoostingRegressor(max_iter=most, max_leaf_nodes=15, random_state=seed)

    return make


def _threads() -> int:
    """Return how many threads to use: those that __main__ allows OpenMP, else all there are."""
    return int(os.environ.get("OMP_NUM_THREADS", "-1"))


def _filled(trees: Any) -> Any:
    """Put a value for what is missing before trees that cannot do without."""
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline

    return make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), trees)
