"""`--mle-cpus`: how many processors an attempt has."""

from __future__ import annotations

from plugin_session import Session

COUNTING = """
import os
print("processors:", len(os.sched_getaffinity(0)))
"""


def test_an_agent_has_as_many_processors_as_it_may(session: Session) -> None:
    agent = f"--mle-agent={session.agent('counting', COUNTING)}"
    result = session.run(agent, "--mle-competition=demo-digits", "--mle-cpus=1", "--mle-run=mine")
    result.assert_outcomes(failed=1)  # it hands nothing in
    result.stdout.fnmatch_lines(["*processors: 1"])
    (record,) = session.records("mine").values()
    assert record["conditions"]["limits"]["cpus"] == 1
