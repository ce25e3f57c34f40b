"""`--mle-prepare`: when datasets are prepared."""

from __future__ import annotations

import pytest
from plugin_session import Session

ONE = ("--mle-agent=dummy", "--mle-competition=demo-digits")


def test_preparing_alone_is_no_failure(session: Session, workers: tuple[str, ...]) -> None:
    arguments = ("--mle-agent=dummy", "--mle-competition=demo-digits", "--mle-prepare=only")
    assert session.run(*arguments, *workers).ret == pytest.ExitCode.OK
    result = session.run(*arguments, "--mle-fail-under=1")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: --mle-fail-under=1 has nothing to judge with --mle-prepare=only, *"]
    )


def test_what_is_not_prepared_is_refused_where_it_never_is(session: Session) -> None:
    result = session.run(*ONE, "--mle-prepare=never", "--mle-data-dir=empty")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*demo-digits; prepare them with --mle-prepare=auto*"])
    session.run(*ONE, "--mle-prepare=only", "--mle-data-dir=empty")
    session.run(*ONE, "--mle-prepare=never", "--mle-data-dir=empty").assert_outcomes(passed=1)
