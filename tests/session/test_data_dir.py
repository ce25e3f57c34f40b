"""`--mle-data-dir`: the store of datasets."""

from __future__ import annotations

from plugin_session import Session

ONE = ("--mle-agent=dummy", "--mle-competition=demo-digits", "--mle-data-dir=mine")


def test_a_dataset_is_prepared_there_once(session: Session, workers: tuple[str, ...]) -> None:
    answers = session.path / "mine" / "demo-digits" / "prepared" / "private"
    session.run(*ONE, *workers).assert_outcomes(passed=1)
    assert answers.is_dir()
    before = answers.stat()
    result = session.run(*ONE, *workers)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["data: *mine"])
    assert answers.stat().st_ino == before.st_ino
    assert answers.parents[1].stat().st_mode & 0o777 in (0o700, 0o755)
    assert answers.stat().st_mode & 0o777 == 0o700
