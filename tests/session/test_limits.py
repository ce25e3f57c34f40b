"""`--mle-limits`: the standard ones, or as much of them as this host has."""

from __future__ import annotations

import pytest
from plugin_session import Session

from pytest_mlebench.host.hardware import host_cpus

GREEDY = """
command = ["sh", "-c", "cp $DATA_DIR/sample_submission.csv $SUBMISSION_DIR/submission.csv"]

[limits]
cpus = 10000
"""


@pytest.fixture
def agent(session: Session) -> str:
    (session.path / "greedy.toml").write_text(GREEDY)
    return "--mle-agent=greedy.toml"


def test_more_than_the_host_has_is_refused_with_the_way_out(session: Session, agent: str) -> None:
    result = session.run(agent, "--mle-competition=demo-digits")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*the limit of 10000 CPUs is more than the *--mle-cpus=*"])


def test_what_the_host_has_instead_is_disclosed(
    session: Session, agent: str, workers: tuple[str, ...]
) -> None:
    result = session.run(
        *(agent, "--mle-competition=demo-digits", "--mle-limits=host"),
        *("--mle-report=r.json", "--mle-run=mine", *workers),
    )
    result.assert_outcomes(passed=1)
    cpus = str(host_cpus())
    disclosure = session.report("r.json")["disclosure"]
    assert disclosure["limits"]["cpus"] == cpus
    assert disclosure["deviations"]["cpus"] == [cpus, "36"]
    (record,) = session.records("mine").values()
    assert record["identity"]["limits.cpus"] == cpus
