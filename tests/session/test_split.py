"""`--mle-split`: which competitions a session is about."""

from __future__ import annotations

import pytest
from plugin_session import Session


def test_splits_come_by_name_by_list_and_by_file(session: Session) -> None:
    lite = session.collected("--mle-agent=dummy", "--mle-split=lite")
    assert len(lite) == 22
    assert lite == session.collected("--mle-agent=dummy", "--mle-split=low")
    assert len(session.collected("--mle-agent=dummy", "--mle-split=low,medium,high")) == 75
    (session.path / "mine.txt").write_text("# two\ndemo-digits\n\ndemo-wine-cultivars # last\n")
    assert session.collected("--mle-agent=dummy", "--mle-split=mine.txt") == [
        "mlebench::test_competition[demo-digits-seed0]",
        "mlebench::test_competition[demo-wine-cultivars-seed0]",
    ]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("demo-digit", "*mine.txt*demo-digit'*did you mean 'demo-digits'?"),
        ("# nothing", "*mine.txt*"),
    ],
    ids=["unknown", "empty"],
)
def test_a_list_that_makes_no_split_is_refused_by_its_name(
    session: Session, lines: str, message: str
) -> None:
    (session.path / "mine.txt").write_text(f"{lines}\n")
    result = session.run("--mle-agent=dummy", "--mle-split=mine.txt")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}"])
