"""`--mle-seeds`: how often each competition is tried."""

from __future__ import annotations

import pytest
from plugin_session import Session

ONE = "--mle-competition=demo-digits"


def test_every_attempt_knows_its_seed(session: Session) -> None:
    agent = session.agent("telling", 'import os; print("seed", os.environ["MLE_SEED"])')
    result = session.run(f"--mle-agent={agent}", ONE, "--mle-seeds=3", "--mle-run=mine")
    result.assert_outcomes(failed=3)  # it hands nothing in
    logs = sorted((session.path / "mle-runs/mine").rglob("run.log"))
    assert [log.read_text().strip() for log in logs] == ["seed 0", "seed 1", "seed 2"]


@pytest.mark.parametrize("given", ["0", "-1", "two", "1.5"])
def test_a_number_of_seeds_that_makes_no_sense_is_refused(session: Session, given: str) -> None:
    result = session.run("--mle-agent=dummy", ONE, f"--mle-seeds={given}")
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"*--mle-seeds*{given}*"])
