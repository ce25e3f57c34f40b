"""Which machine has an item: nobody else gets it before that machine has certainly lost it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from attempt_folders import write_attempt, write_run

from pytest_mlebench.attempts.record import Conditions, read_attempt
from pytest_mlebench.layout import RunFolder
from pytest_mlebench.plugin import custody as custody_module
from pytest_mlebench.plugin.custody import Custody
from pytest_mlebench.reports.results import ItemKey

KEY = ItemKey("demo-digits", 0, "mine")
NAME = "demo-digits/seed0/attempt1"


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    folder = write_run(tmp_path / "run", ("demo-digits", 0))
    write_attempt(
        folder, "demo-digits", 0, "running", conditions=Conditions(machine="gpu1"), ending=None
    )
    return folder


@pytest.fixture
def custody(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> Custody:
    monkeypatch.setattr(custody_module, "MARGIN_SECONDS", 0.0)
    monkeypatch.setattr(custody_module, "HEAD_START_SECONDS", 0.0)
    return Custody(run, 600.0)


def phase(run: RunFolder) -> str:
    attempt = read_attempt(run.path / NAME)
    assert attempt is not None
    return attempt.phase


def test_only_the_machine_that_has_an_attempt_may_write_it(custody: Custody) -> None:
    custody.take(KEY, "gpu1", NAME, "token")
    assert custody.allows("gpu1", NAME, "token")
    assert not custody.allows("gpu2", NAME, "token")
    custody.release(KEY)
    assert not custody.allows("gpu1", NAME, "token")


def test_a_stale_token_opens_nothing(custody: Custody) -> None:
    custody.take(KEY, "gpu1", NAME, "old")
    custody.take(KEY, "gpu1", NAME, "new")
    assert not custody.allows("gpu1", NAME, "old")
    assert not custody.allows("gpu1", NAME, None)


def test_the_grace_begins_with_the_machines_last_question(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr(custody_module.time, "monotonic", lambda: clock[0])
    custody = Custody(run, 60.0)
    custody.take(KEY, "gpu1", NAME)
    custody.renew("gpu1")
    clock[0] += 40  # the loss is noticed late
    custody.lose("gpu1")
    clock[0] += 20 + custody_module.MARGIN_SECONDS
    assert custody.expire() == []
    clock[0] += 0.1
    assert custody.expire() == [KEY]


def test_what_an_allocation_had_is_anybodys_when_slurm_says_that_it_has_ended(
    custody: Custody, run: RunFolder
) -> None:
    custody.take(KEY, "a100#7", NAME)
    custody.lose("a100#7")
    assert not custody.may_have(KEY, "a100#8")  # another allocation of the same pool
    assert custody.gone("a100#8") == []
    assert custody.gone("a100#7") == [KEY]
    assert custody.may_have(KEY, "a100#8")
    attempt = read_attempt(run.path / NAME)
    assert attempt is not None
    assert attempt.record.error == "the allocation of a100#7 has ended, and the attempt with it"


def test_a_resumed_run_leaves_an_attempt_with_its_allocation(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "slurm", ("demo-digits", 0))
    where = Conditions(machine="a100", job="7")
    write_attempt(folder, "demo-digits", 0, "running", conditions=where, ending=None)
    custody = Custody(folder, 600.0)
    custody.beat(0.0)
    custody.resume()
    assert custody.machine_of(KEY) == "a100#7"


def test_an_item_stays_with_a_lost_machine_for_the_grace(custody: Custody, run: RunFolder) -> None:
    custody.take(KEY, "gpu1", NAME)
    custody.lose("gpu1")
    assert custody.expire() == []
    assert custody.machine_of(KEY) == "gpu1"
    assert custody.absent_machines() == {"gpu1"}
    assert phase(run) == "running"


def test_after_the_grace_the_item_is_anybodys_and_the_attempt_an_error(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(custody_module, "MARGIN_SECONDS", 0.0)
    custody = Custody(run, 0.0)
    custody.take(KEY, "gpu1", NAME)
    custody.lose("gpu1")
    time.sleep(0.01)
    assert custody.expire() == [KEY]
    assert custody.machine_of(KEY) is None
    assert phase(run) == "error"


def test_a_machine_that_is_back_keeps_what_it_still_has(custody: Custody) -> None:
    custody.take(KEY, "gpu1", NAME)
    custody.lose("gpu1")
    assert custody.found("gpu1", {NAME}) == []
    assert custody.machine_of(KEY) == "gpu1"
    assert custody.absent_machines() == set()


def test_a_machine_that_is_back_without_the_attempt_has_lost_the_item(
    custody: Custody, run: RunFolder
) -> None:
    custody.take(KEY, "gpu1", NAME)
    custody.lose("gpu1")
    assert custody.found("gpu1", set()) == [KEY]
    assert custody.machine_of(KEY) is None
    assert phase(run) == "error"


def test_what_another_machine_says_changes_nothing(custody: Custody) -> None:
    custody.take(KEY, "gpu1", NAME)
    custody.lose("gpu1")
    assert custody.found("gpu2", set()) == []
    assert custody.machine_of(KEY) == "gpu1"


def test_a_resumed_run_leaves_its_attempts_with_their_machines(
    custody: Custody, run: RunFolder
) -> None:
    custody.beat(0.0)
    resumed = Custody(run, 5.0)
    resumed.resume()
    assert resumed.machine_of(KEY) == "gpu1"
    assert resumed.expire() == []


def test_a_run_resumed_after_the_grace_is_free(custody: Custody, run: RunFolder) -> None:
    custody.beat(0.0)
    long_ago = time.time() - 601
    os.utime(run.path / ".beat", (long_ago, long_ago))
    resumed = Custody(run, 5.0)
    resumed.resume()
    time.sleep(0.01)
    assert resumed.expire() == [KEY]
