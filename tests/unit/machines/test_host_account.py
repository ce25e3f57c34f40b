"""The run's dollars, asked for through a socket: nothing without an answer, and each call once."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from pathlib import Path

import pytest

from pytest_mlebench.errors import InfrastructureError
from pytest_mlebench.gateway.refusal import CallRefusal
from pytest_mlebench.gateway.run_account import RunAccount
from pytest_mlebench.machines.host_account import (
    EXHAUSTED,
    FULL,
    HELD,
    SETTLED,
    Exchange,
    HostAccount,
    answering,
    settle_rest,
)


class Bank:
    """A controller in this process, whose connection may be lost."""

    def __init__(self, folder: Path, limit: float = 5.0) -> None:
        self.folder = folder
        self.limit = limit
        self.is_away = False
        self.living = {"a", "b"}

    def exchange(self, name: str) -> Exchange:
        def ask(
            first: int, settled: list[str], holding: str, wanted: str | None
        ) -> tuple[str, str]:
            if self.is_away:
                raise InfrastructureError("the connection to the controller is lost")
            account = RunAccount(self.folder, self.limit, name)
            try:
                held = account.exchange(first, settled, holding, wanted, self.living)
            except CallRefusal as refusal:
                return EXHAUSTED, str(refusal)
            return (HELD if held else FULL), ""

        return ask

    @property
    def spent(self) -> float:
        return RunAccount(self.folder, self.limit, "x").spent()


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    (tmp_path / "run").mkdir()
    return Bank(tmp_path / "run")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / ("long" * 30) / "attempt1"  # longer than a socket's path may be
    folder.mkdir(parents=True)
    return folder


def hold(account: HostAccount, usd: str) -> bool:
    return asyncio.run(account.try_to_hold(Decimal(usd)))


def settle(account: HostAccount, held: str, usd: str) -> None:
    asyncio.run(account.settle(Decimal(held), Decimal(usd)))


def test_attempts_on_two_hosts_share_what_there_is(
    bank: Bank, folder: Path, tmp_path: Path
) -> None:
    other = tmp_path / "attempt2"
    other.mkdir()
    with answering(folder, bank.exchange("a")), answering(other, bank.exchange("b")):
        first, second = HostAccount(folder), HostAccount(other)
        assert hold(first, "3")
        assert hold(second, "3")
        assert not hold(first, "1"), "all is held"
        settle(first, "3", "2.5")
        assert not hold(first, "1"), "2.5 is spent, and 3 held by the other"
        settle(second, "3", "2.6")
        with pytest.raises(CallRefusal) as refusal:
            hold(first, "0.1")
    assert refusal.value.kind == "budget"
    assert "the budget of the whole run is exhausted: its 5.0 dollars" in str(refusal.value)
    assert bank.spent == 5.1


def test_calls_are_refused_while_nobody_answers(bank: Bank, folder: Path) -> None:
    account = HostAccount(folder)
    with pytest.raises(CallRefusal) as refusal:
        hold(account, "1")
    assert refusal.value.kind == "busy"
    assert "the budget of the whole run is kept on another host, which does not answer now (" in (
        str(refusal.value)
    )
    with answering(folder, bank.exchange("a")):
        bank.is_away = True
        with pytest.raises(CallRefusal, match=r"\(the connection to the controller is lost\)"):
            hold(account, "1")
        bank.is_away = False
        assert hold(account, "1")


def test_what_was_spent_meanwhile_is_booked_when_somebody_answers_again(
    bank: Bank, folder: Path
) -> None:
    account = HostAccount(folder)
    with answering(folder, bank.exchange("a")):
        assert hold(account, "2")
        assert hold(account, "4")
    settle(account, "2", "1.5")
    assert bank.spent == 0
    with answering(folder, bank.exchange("a")):  # another worker
        assert not hold(account, "2"), "1.5 is spent, and 4 held"
        assert bank.spent == 1.5
        settle(account, "4", "0.25")
        assert bank.spent == 1.75
    settle_rest(folder, bank.exchange("a"))
    assert bank.spent == 1.75, "each call once"
    assert not (folder / SETTLED).exists()


def test_what_a_killed_attempt_had_spent_is_booked_and_its_hold_is_free(
    bank: Bank, folder: Path
) -> None:
    account = HostAccount(folder)
    with answering(folder, bank.exchange("a")):
        assert hold(account, "4.5")
        assert hold(account, "0.4")
    settle(account, "0.4", "0.3")
    with (folder / SETTLED).open("a") as file:
        file.write("0.")  # it was killed while it wrote this
    bank.living = {"b"}
    settle_rest(folder, bank.exchange("a"))
    assert bank.spent == 0.3
    with answering(folder, bank.exchange("b")):
        assert hold(HostAccount(folder), "4")


def test_what_an_attempt_held_that_was_given_up_is_free(
    bank: Bank, folder: Path, tmp_path: Path
) -> None:
    other = tmp_path / "attempt2"
    other.mkdir()
    with answering(folder, bank.exchange("a")), answering(other, bank.exchange("b")):
        assert hold(HostAccount(folder), "6")
        assert not hold(HostAccount(other), "1")
        bank.living = {"b"}
        assert hold(HostAccount(other), "1")
