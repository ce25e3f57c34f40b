"""`--mle-verify`: whether datasets are compared with their checksums."""

from __future__ import annotations

from plugin_session import Session

ONE = ("--mle-agent=dummy", "--mle-competition=demo-digits", "--mle-data-dir=own")


def test_data_that_nobody_compared_are_disclosed(
    session: Session, workers: tuple[str, ...]
) -> None:
    result = session.run(
        *(*ONE, "--mle-verify=off", "--mle-report=r.json", *workers),
    )
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*data not verified by checksums in 1 of 1*"])
    disclosure = session.report("r.json")["disclosure"]
    assert disclosure["data"] == {"demo-digits": "off"}
    assert "datasets were not verified" in disclosure["notes"]


def test_an_attempt_on_data_that_nobody_compared_is_another_attempt(session: Session) -> None:
    session.run(*ONE, "--mle-run=mine", "--mle-verify=off").assert_outcomes(passed=1)
    again = ("--mle-verify=on", "--mle-rerun=changed")
    session.run(*ONE, "--mle-run=mine", *again).assert_outcomes(passed=1)
    verified = [record["identity"]["data"] for record in session.records("mine").values()]
    assert len(verified) == 2
    assert verified[0] == "off" != verified[1]
