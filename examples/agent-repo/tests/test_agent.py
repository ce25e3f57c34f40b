"""The tests of an agent: on a competition of ours, and on one that comes with the plugin."""

import pytest

from pytest_mlebench import Medal


@pytest.mark.mle(split="ours")
def test_agent_earns_a_medal_on_our_own_data(mle_grade):
    assert mle_grade.medal >= Medal.BRONZE


@pytest.mark.mle(competition="demo-digits", limits={"time": "2m"})
def test_agent_reads_digits_in_time(mle_grade, mle_run):
    assert mle_grade.above_median
    assert mle_run.outcome["reason"] == "exited"
    assert "predicted" in mle_run.log.read_text()
