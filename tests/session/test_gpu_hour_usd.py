"""`--mle-gpu-hour-usd`: what the hours of GPUs cost."""

from __future__ import annotations

import pytest
from plugin_session import Session

ONE = ("--mle-agent=dummy", "--mle-competition=demo-digits")


def test_the_price_is_disclosed(session: Session, workers: tuple[str, ...]) -> None:
    result = session.run(*ONE, "--mle-gpu-hour-usd=1.5", "--mle-report=r.json", *workers)
    result.assert_outcomes(passed=1)
    assert session.report("r.json")["disclosure"]["gpu_hour_usd"] == 1.5


@pytest.mark.parametrize("given", ["x", "-1", "nan"])
def test_what_is_no_price_is_refused(session: Session, given: str) -> None:
    result = session.run(*ONE, f"--mle-gpu-hour-usd={given}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--mle-gpu-hour-usd must be a price*given: {given}*"])
