"""Machine-learning competitions as pytest test cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_mlebench.agent import Agent, AgentContext
    from pytest_mlebench.attempts.record import Run
    from pytest_mlebench.budget import Budget
    from pytest_mlebench.competition import (
        Checksums,
        Competition,
        KnownIssue,
        MetricFacts,
        Validation,
    )
    from pytest_mlebench.dataset import Dataset
    from pytest_mlebench.errors import (
        ConfigError,
        InfrastructureError,
        InvalidSubmission,
        MlebenchError,
    )
    from pytest_mlebench.grade import Grade
    from pytest_mlebench.grading.rules import Rules
    from pytest_mlebench.limits import Limits
    from pytest_mlebench.medals import Leaderboard, Medal
    from pytest_mlebench.registry import list_competitions, load_competition
    from pytest_mlebench.reports.report import Report
    from pytest_mlebench.sandbox import Ending, Job, Sandbox, Service
    from pytest_mlebench.submissions import grade_submission
    from pytest_mlebench.upstream import Upstream

__version__ = "0.1.0"

_HOMES = {
    "Agent": "agent",
    "AgentContext": "agent",
    "Budget": "budget",
    "Checksums": "competition",
    "Competition": "competition",
    "ConfigError": "errors",
    "Dataset": "dataset",
    "Ending": "sandbox",
    "Grade": "grade",
    "InfrastructureError": "errors",
    "InvalidSubmission": "errors",
    "Job": "sandbox",
    "KnownIssue": "competition",
    "Leaderboard": "medals",
    "Limits": "limits",
    "Medal": "medals",
    "MetricFacts": "competition",
    "MlebenchError": "errors",
    "Report": "reports.report",
    "Rules": "grading.rules",
    "Run": "attempts.record",
    "Sandbox": "sandbox",
    "Service": "sandbox",
    "Upstream": "upstream",
    "Validation": "competition",
    "grade_submission": "submissions",
    "list_competitions": "registry",
    "load_competition": "registry",
}

__all__ = [
    "Agent",
    "AgentContext",
    "Budget",
    "Checksums",
    "Competition",
    "ConfigError",
    "Dataset",
    "Ending",
    "Grade",
    "InfrastructureError",
    "InvalidSubmission",
    "Job",
    "KnownIssue",
    "Leaderboard",
    "Limits",
    "Medal",
    "MetricFacts",
    "MlebenchError",
    "Report",
    "Rules",
    "Run",
    "Sandbox",
    "Service",
    "Upstream",
    "Validation",
    "grade_submission",
    "list_competitions",
    "load_competition",
]

if not TYPE_CHECKING:  # a type checker knows the names above, and that there are no others

    def __getattr__(name: str) -> object:
        """Import a public name when it is first asked for: the plugin itself stays light."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)

    def __dir__() -> list[str]:
        """Return the public names, imported or not."""
        return [*__all__, "__version__"]
