"""`--mle-runs-dir`: where runs are kept."""

from __future__ import annotations

from plugin_session import Session

ONE = ("--mle-agent=dummy", "--mle-competition=demo-digits", "--mle-run=mine")


def test_a_run_is_kept_and_resumed_there(session: Session, workers: tuple[str, ...]) -> None:
    session.run(*ONE, "--mle-runs-dir=results/here", *workers).assert_outcomes(passed=1)
    assert (session.path / "results/here/mine/report.json").is_file()
    assert not (session.path / "mle-runs").exists()
    session.pytester.makeini("[pytest]\nmle_runs_dir = results/here\n")
    result = session.run(*ONE, *workers)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["resumes: 1 of 1 done already"])
    assert len(list((session.path / "results").rglob("record.json"))) == 1
