"""What all workers of a run may spend together holds across processes, kills and sessions."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from pytest_mlebench.errors import InfrastructureError
from pytest_mlebench.gateway.refusal import CallRefusal
from pytest_mlebench.gateway.run_account import FILE, STALE_SECONDS, RunAccount

WORKER = """
import asyncio, sys
from decimal import Decimal
from pathlib import Path
from pytest_mlebench.gateway.refusal import CallRefusal
from pytest_mlebench.gateway.run_account import RunAccount
account = RunAccount(Path(sys.argv[1]), 5.0, sys.argv[2])
async def work():
    calls = 0
    while True:
        try:
            while not await account.try_to_hold(Decimal("0.30")):
                await asyncio.sleep(0.01)
        except CallRefusal:
            print(calls)
            return
        await account.settle(Decimal("0.30"), Decimal("0.30"))
        calls += 1
asyncio.run(work())
"""

HOLDER = """
import asyncio, sys, time
from decimal import Decimal
from pathlib import Path
from pytest_mlebench.gateway.run_account import RunAccount
account = RunAccount(Path(sys.argv[1]), 5.0, "holder")
assert asyncio.run(account.try_to_hold(Decimal(5)))
print("held", flush=True)
time.sleep(600)
"""


def hold(account: RunAccount, usd: str) -> bool:
    return asyncio.run(account.try_to_hold(Decimal(usd)))


def settle(account: RunAccount, held: str, usd: str) -> None:
    asyncio.run(account.settle(Decimal(held), Decimal(usd)))


def test_four_workers_spend_no_more_than_one_call_beyond(tmp_path: Path) -> None:
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, tmp_path, str(number)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    calls = [int(worker.communicate(timeout=300)[0]) for worker in workers]
    assert sum(calls) == 17  # sixteen are 4.80; one more is 5.10, and the last
    assert json.loads((tmp_path / FILE).read_text()) == {
        "schema": 1,
        "spent_usd": "5.10",
        "held": {},
        "booked": {},
    }


def test_a_killed_worker_lets_go_of_what_it_held(tmp_path: Path) -> None:
    worker = subprocess.Popen(
        [sys.executable, "-c", HOLDER, tmp_path], stdout=subprocess.PIPE, text=True
    )
    assert worker.stdout is not None
    assert worker.stdout.readline() == "held\n"
    account = RunAccount(tmp_path, 5.0, "other")
    assert not hold(account, "0.1")
    os.kill(worker.pid, signal.SIGKILL)
    worker.communicate()
    assert hold(account, "0.1")


def test_a_later_session_goes_on_with_what_is_left(tmp_path: Path) -> None:
    first = RunAccount(tmp_path, 5.0, "first")
    assert hold(first, "4")
    settle(first, "4", "4.5")
    second = RunAccount(tmp_path, 5.0, "second")
    assert second.spent() == 4.5
    assert hold(second, "1")
    settle(second, "1", "1")
    with pytest.raises(CallRefusal) as refusal:
        hold(second, "1")
    assert str(refusal.value) == (
        "the budget of the whole run is exhausted: its 5.0 dollars are used up; "
        "no further call will be answered, go on with what you have"
    )


def test_what_is_held_and_not_spent_is_free_again(tmp_path: Path) -> None:
    account = RunAccount(tmp_path, 5.0, "a")
    assert hold(account, "3")
    assert hold(account, "3")
    assert not hold(account, "1")
    settle(account, "3", "0")
    assert hold(account, "1")


def test_an_attempt_that_has_ended_holds_nothing(tmp_path: Path) -> None:
    account, other = RunAccount(tmp_path, 5.0, "a"), RunAccount(tmp_path, 5.0, "b")
    assert hold(account, "6")
    assert not hold(other, "1")
    asyncio.run(account.close())
    assert hold(other, "1")


def test_what_a_living_process_of_this_host_holds_does_not_grow_old(tmp_path: Path) -> None:
    account, other = RunAccount(tmp_path, 5.0, "a"), RunAccount(tmp_path, 5.0, "b")
    assert hold(account, "6")
    file = tmp_path / FILE
    content = json.loads(file.read_text())
    content["held"]["a"]["time"] -= 2 * STALE_SECONDS
    file.write_text(json.dumps(content))
    assert not hold(other, "1")
    content["held"]["a"]["owner"]["host"] = "elsewhere/1"
    file.write_text(json.dumps(content))
    assert hold(other, "1")


def test_a_damaged_file_is_no_empty_one(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"schema": 1, "spent_usd": "much", "held": {}}')
    with pytest.raises(InfrastructureError) as error:
        hold(RunAccount(tmp_path, 5.0, "a"), "1")
    assert "spending.json is damaged, so that the run's budget cannot be held" in str(error.value)
