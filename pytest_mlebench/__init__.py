"""Machine-learning competitions as pytest test cases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_mlebench.agent import Agent
    from pytest_mlebench.attempts.record import Run
    from pytest_mlebench.competition import Competition
    from pytest_mlebench.dataset import Dataset
    from pytest_mlebench.errors import InvalidSubmission
    from pytest_mlebench.grade import Grade
    from pytest_mlebench.limits import Limits
    from pytest_mlebench.medals import Medal
    from pytest_mlebench.registry import list_competitions, load_competition
    from pytest_mlebench.reports.report import Report

__version__ = "0.1.0"

_HOMES = {
    "Agent": "agent",
    "Competition": "competition",
    "Dataset": "dataset",
    "Grade": "grade",
    "InvalidSubmission": "errors",
    "Limits": "limits",
    "Medal": "medals",
    "Report": "reports.report",
    "Run": "attempts.record",
    "list_competitions": "registry",
    "load_competition": "registry",
}

__all__ = [
    "Agent",
    "Competition",
    "Dataset",
    "Grade",
    "InvalidSubmission",
    "Limits",
    "Medal",
    "Report",
    "Run",
    "list_competitions",
    "load_competition",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for, so that the plugin itself stays light."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
