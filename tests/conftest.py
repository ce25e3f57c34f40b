"""How Hypothesis behaves here: on a busy machine as on a quiet one, and the same in every run."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "any-machine",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("any-machine")
