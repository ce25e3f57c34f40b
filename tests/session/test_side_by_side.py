"""Attempts side by side: as many as the host holds, and no more."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from plugin_session import Session

from pytest_mlebench.host.hardware import host_cpus, host_memory

TWO = ("--mle-competition=demo-digits", "--mle-competition=demo-wine-cultivars")
MOST = f"--mle-memory={host_memory() // 3 * 2}B"
HALF = f"--mle-cpus={host_cpus() / 2}"

SLEEPING = """
import os, shutil, time
time.sleep({pause})
shutil.copy(os.environ["DATA_DIR"] + "/sample_submission.csv",
            os.environ["SUBMISSION_DIR"] + "/submission.csv")
"""


def spans(records: dict[str, dict[str, Any]]) -> list[tuple[float, float]]:
    """Return when each attempt ran."""
    timings = [record["timings"] for record in records.values()]
    return sorted((moments["running"], moments["collected"]) for moments in timings)


@pytest.fixture
def prepared(session: Session) -> None:
    """Datasets that are there, so that two attempts begin at about the same time."""
    session.run("--mle-agent=dummy", "--mle-prepare=only", *TWO)


@pytest.mark.usefixtures("prepared")
def test_attempts_of_two_workers_that_do_not_fit_together_run_one_after_the_other(
    session: Session,
) -> None:
    agent = f"--mle-agent={session.agent('sleeping', SLEEPING.format(pause=1))}"
    result = session.run(agent, "--mle-run=mine", "-n2", MOST, HALF, *TWO)
    result.assert_outcomes(passed=2)
    records = session.records("mine")
    first, second = spans(records)
    assert first[1] <= second[0]
    assert [("waiting" in record["timings"]) for record in records.values()].count(True) == 1


@pytest.mark.usefixtures("prepared")
def test_attempts_that_share_the_host_run_side_by_side(session: Session) -> None:
    agent = f"--mle-agent={session.agent('sleeping', SLEEPING.format(pause=5))}"
    session.run(agent, "--mle-run=mine", "-n2", *TWO).assert_outcomes(passed=2)
    first, second = spans(session.records("mine"))
    assert second[0] < first[1]


@pytest.mark.usefixtures("prepared")
def test_attempts_of_two_sessions_do_not_add_up_to_more_than_the_host_has(
    session: Session,
) -> None:
    agent = f"--mle-agent={session.agent('sleeping', SLEEPING.format(pause=1))}"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", agent, MOST, HALF]
    sessions = [
        subprocess.Popen(
            [*command, f"--mle-run=run{number}", one], cwd=session.path, env=dict(os.environ)
        )
        for number, one in enumerate(TWO)
    ]
    assert [process.wait(timeout=120) for process in sessions] == [0, 0]
    first, second = spans(session.records("run0") | session.records("run1"))
    assert first[1] <= second[0]


def test_limits_beyond_the_host_are_refused_before_anything_runs(session: Session) -> None:
    result = session.run("--mle-agent=dummy", TWO[0], f"--mle-cpus={host_cpus() + 1}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        f"*the limit of {host_cpus() + 1} CPUs is more than the {host_cpus()} that this host has: "
        f"use --mle-cpus={host_cpus()} or fewer"
    )
