"""What the tests share beyond the root: how Hypothesis behaves, and which tests are slow."""

from __future__ import annotations

from pathlib import Path

import pytest

_TESTS = Path(__file__).parent
_SLOW = (
    *("browser", "docker", "golden", "machines", "neighbours", "session", "store"),
    *("unit/agents/baseline", "unit/sandbox/process", "unit/sandbox/rootless", "unit/reports/page"),
    *("unit/attempts/test_grading_process", "unit/audit/test_familiarity", "unit/audit/test_judge"),
    *("unit/audit/test_plagiarism", "unit/audit/test_verify", "unit/gateway/test_budgets"),
    *("unit/gateway/test_faults", "unit/gateway/test_process_sandbox", "unit/machines/test_keeper"),
    *("unit/grading/metrics/test_boxes", "unit/host/test_leases", "unit/viewer/test_server"),
    *("unit/machines/test_allocation_holder", "unit/sandbox/test_disk", "unit/sandbox/test_egress"),
    *("unit/preparing/test_csv", "unit/preparing/test_json", "unit/sandbox/test_snapshots"),
    *("docs/test_agents", "laws/test_round_trips", "unit/test_cli", "unit/test_public_names"),
)
_QUICK = ("session/test_collection.py",)  # of the above


def pytest_configure() -> None:
    """Let Hypothesis try the same examples in every run, on a busy machine as on a quiet one."""
    try:  # late on purpose: the demonstration runs from here, too, without what tests need
        from hypothesis import HealthCheck, settings
    except ImportError:
        return
    settings.register_profile(
        "any-machine",
        deadline=None,
        derandomize=True,
        max_examples=60,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("any-machine")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs an engine and what is not for the inner loop, by where it is."""
    for item in items:
        if _TESTS not in item.path.parents:
            continue
        place = item.path.relative_to(_TESTS).as_posix()
        if place.startswith("docker/"):
            item.add_marker("docker")
        if place.startswith(_SLOW) and place not in _QUICK:
            item.add_marker("slow")
