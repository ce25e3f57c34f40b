"""`--mle-competition`: single competitions, alone or beside those of a split."""

from __future__ import annotations

from plugin_session import Session

TWO = ("--mle-competition=demo-digits", "--mle-competition=spooky-author-identification")


def test_single_competitions_stand_alone_or_beside_a_split(session: Session) -> None:
    assert session.collected("--mle-agent=dummy", *TWO) == [
        "mlebench::test_competition[demo-digits-seed0]",
        "mlebench::test_competition[spooky-author-identification-seed0]",
    ]
    lite = session.collected("--mle-agent=dummy", "--mle-split=lite")
    both = session.collected("--mle-agent=dummy", "--mle-split=lite", *TWO)
    assert set(both) == {*lite, "mlebench::test_competition[demo-digits-seed0]"}
    assert len(both) == len(lite) + 1  # one of the two is in the split already


def test_only_they_are_run_and_reported(session: Session, workers: tuple[str, ...]) -> None:
    result = session.run("--mle-agent=dummy", TWO[0], "--mle-report=r.json", *workers)
    result.assert_outcomes(passed=1)
    report = session.report("r.json")
    assert [each["competition"] for each in report["results"]] == ["demo-digits"]
    assert report["disclosure"]["competitions"] == ["demo-digits"]
