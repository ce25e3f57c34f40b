"""`--mle-fail-under`: the bar of a session."""

from __future__ import annotations

from plugin_session import Session


def test_a_gate_that_is_missed_fails_the_session(
    session: Session, workers: tuple[str, ...]
) -> None:
    (session.path / "mine.txt").write_text("demo-digits\n")
    result = session.run(
        "--mle-agent=dummy", "--mle-split=mine.txt", "--mle-fail-under=60", *workers
    )
    assert result.ret == 1
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["missed: any-medal rate of * is 0.00 %, below the bar of 60 % (--mle-fail-under=60)"]
    )
