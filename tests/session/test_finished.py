"""What an earlier session has finished is passed over without pytest's setting up each fixture."""

from __future__ import annotations

import json

from plugin_session import Session

RESUMED = ("--mle-agent=dummy", "--mle-run=mine", "--mle-competition=demo-wine-cultivars")

OBSERVING = """
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef):
    print("set up:", fixturedef.argname)
    return (yield)
"""


def test_a_finished_item_needs_no_fixture(session: Session) -> None:
    session.pytester.makepyfile(observing=OBSERVING)
    session.pytester.syspathinsert()
    first = session.run(*RESUMED, "-s", "-p", "observing")
    first.stdout.fnmatch_lines(["*set up: mle_grade*"])
    again = session.run(*RESUMED, "-s", "-p", "observing")
    again.assert_outcomes(passed=1)
    again.stdout.no_fnmatch_line("*set up: mle_*")
    report = json.loads((session.path / "mle-runs/mine/report.json").read_text())
    assert [result["outcome"] for result in report["results"]] == ["graded"]


def test_a_finished_item_that_is_below_the_bar_fails_again(session: Session) -> None:
    for _ in range(2):
        result = session.run(*RESUMED, "--mle-require=gold")
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(["*no medal*", "*required: gold*"])


def test_fixtures_that_a_conftest_brings_are_set_up_for_finished_items_too(
    session: Session,
) -> None:
    session.run(*RESUMED).assert_outcomes(passed=1)
    session.pytester.makeconftest(
        """
        import pytest

        @pytest.fixture(autouse=True)
        def first(mle_run):
            print("looked at", mle_run.competition)

        @pytest.fixture(name="mle_limits")
        def other(mle_limits):
            print("overridden")
            return mle_limits
        """
    )
    result = session.run(*RESUMED, "-s")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*overridden*", "*looked at demo-wine-cultivars*"])


SKIPPING = """
import pytest

def pytest_runtest_setup(item):
    pytest.skip("not today")
"""


def test_a_finished_item_that_a_plugin_skips_is_skipped(session: Session) -> None:
    session.run(*RESUMED).assert_outcomes(passed=1)
    session.pytester.makepyfile(resting=SKIPPING)
    session.pytester.syspathinsert()
    result = session.run(*RESUMED, "-p", "resting")
    result.assert_outcomes(skipped=1)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["missed: nothing ran: 1 of 1 items were skipped"])


def test_the_fixtures_of_a_finished_item_are_shown_to_whoever_asks(session: Session) -> None:
    session.run(*RESUMED).assert_outcomes(passed=1)
    result = session.run(*RESUMED, "--setup-show")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*SETUP*F mle_grade*"])
