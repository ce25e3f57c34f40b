"""What is shown of spending while attempts run, and found of attempts that were cut off."""

from __future__ import annotations

from pathlib import Path

from attempt_folders import write_attempt, write_run
from reporting import graded, spent

from pytest_mlebench.attempts.live_spending import LiveSpending
from pytest_mlebench.attempts.record import Conditions, Run
from pytest_mlebench.attempts.run_results import read_run_folder
from pytest_mlebench.gateway.calls import Call, CallLog
from pytest_mlebench.gateway.spending import Usage
from pytest_mlebench.layout import RunFolder
from pytest_mlebench.medals import Medal
from pytest_mlebench.reports.costs import costs_of

GOLD = graded("a", medal=Medal.GOLD).grade
METERED = Conditions(models="openai at api.openai.com")


def call(usd: float | None = 0.5, tokens: int = 1000) -> Call:
    return Call(1, "openai", "POST", "/x", 200, model="m", usage=Usage(tokens), usd=usd)


def make_calls(run: Run, *calls: Call) -> None:
    log = CallLog(run.folder)
    for each in calls:
        log.write(each)
    log.close()


def two_attempts(path: Path) -> tuple[RunFolder, Run, Run]:
    folder = write_run(path, ("a", 0), ("b", 0))
    done = write_attempt(folder, "a", 0, "collected", conditions=METERED, model_use=spent(2.0))
    running = write_attempt(folder, "b", 0, "running", conditions=METERED)
    return folder, done, running


def test_calls_of_attempts_that_run_are_added_as_they_come(tmp_path: Path) -> None:
    _, done, running = two_attempts(tmp_path)
    live = LiveSpending()
    assert live.text([done, running]) == "$2.00 on models (1 k tokens)"
    make_calls(running, call())
    assert live.text([done, running]) == "$2.50 on models (2 k tokens)"
    make_calls(running, call(), call())
    with (running.folder / "calls.jsonl").open("a") as file:
        file.write('{"time": 3, "upstr')  # is being written
    assert live.text([done, running]) == "$3.50 on models (4 k tokens)"


def test_what_nobody_knows_is_not_shown_as_zero(tmp_path: Path) -> None:
    _, done, running = two_attempts(tmp_path)
    make_calls(running, call(usd=None))
    assert LiveSpending().text([running]) == "1 k tokens of models"
    assert LiveSpending().text([done, running]) == "at least $2.00 on models (2 k tokens)"


def test_agents_without_models_show_nothing(tmp_path: Path) -> None:
    folder = write_run(tmp_path, ("a", 0))
    assert LiveSpending().text([write_attempt(folder, "a", 0, "running")]) is None


def test_an_attempt_that_was_cut_off_has_spent_at_least_what_its_calls_say(tmp_path: Path) -> None:
    folder, _, running = two_attempts(tmp_path)
    make_calls(running, call(), call())
    done, cut_off = read_run_folder(folder.path).results
    assert done.model_use is not None
    assert done.model_use.usd == 2.0
    assert (cut_off.status, cut_off.model_use is not None) == ("missing", True)
    assert cut_off.model_use is not None
    assert (cut_off.model_use.usd, cut_off.model_use.known_usd) == (None, 1.0)
    assert "the attempt was cut off" in cut_off.model_use.notes[0]


def test_an_attempt_that_only_waited_has_spent_nothing(tmp_path: Path) -> None:
    folder = write_run(tmp_path, ("a", 0))
    write_attempt(folder, "a", 0, "waiting", conditions=METERED)
    (waiting,) = read_run_folder(folder.path).results
    assert waiting.model_use is not None
    assert waiting.model_use.usd == 0


def test_tries_that_do_not_count_are_lost_and_not_the_agents_cost(tmp_path: Path) -> None:
    folder = write_run(tmp_path, ("a", 0), ("b", 0))
    write_attempt(folder, "a", 0, "error", 1, conditions=METERED, model_use=spent(1.0))
    write_attempt(folder, "a", 0, "graded", 2, superseded=True, model_use=spent(0.25))
    write_attempt(folder, "a", 0, "graded", 3, model_use=spent(2.0), grade=GOLD)
    write_attempt(folder, "b", 0, "running", 1, conditions=METERED)
    write_attempt(folder, "b", 0, "graded", 2, model_use=spent(2.0), grade=GOLD)
    results = read_run_folder(folder.path).results
    assert [result.lost_usd for result in results] == [1.25, None]
    costs = costs_of(results)
    assert (costs.usd, costs.usd_per_medal, costs.lost_usd) == (4.0, 2.0, None)
