"""The rows of the live area: laid out at every width, with everything that there is room for."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.text import Text

from pytest_mlebench.attempts.run_progress import AttemptProgress, ProgressLook
from pytest_mlebench.host.usage import LatestUsage
from pytest_mlebench.medals import Medal
from pytest_mlebench.plugin.live_rows import area_lines

LONG = "h-and-m-personalized-fashion-recommendations"
ATTEMPT = AttemptProgress(
    competition=LONG,
    seed=2,
    folder=Path("attempt1"),
    place="node-7, NVIDIA A10",
    elapsed=4321.0,
    limit=86_400.0,
    usage=LatestUsage(memory=31.2e9, cpus=7.5, gpu=93.0),
    valid=True,
    handed_in=True,
    spent="$12.34",
    last_line="epoch 17 of 40: validation loss 0.4183, the best so far",
)
SHORT = replace(ATTEMPT, competition="spooky", seed=0, spent="", valid=None)


def drawn(*running: AttemptProgress, columns: int, height: int = 20) -> list[str]:
    look = ProgressLook(
        running=running,
        queued=3,
        over=7,
        total=22,
        medals=Counter({Medal.GOLD: 2}),
        spent="$40.00",
        seconds_left=7200.0,
    )
    return [Text.from_ansi(line).plain for line in area_lines(look, columns, height)]


@pytest.mark.parametrize("columns", [30, 40, 79, 80, 120, 200, 250])
def test_no_line_is_wider_and_every_row_has_name_seed_and_time(columns: int) -> None:
    lines = drawn(ATTEMPT, SHORT, columns=columns)
    assert max(map(cell_len, lines)) <= columns
    for line, seed in zip(lines, ("seed2", "seed0"), strict=False):
        assert seed in line
        if columns >= 40:
            assert "1h12m" in line
    assert lines[0].startswith(LONG[:10])


def test_40_columns_have_a_bar_beside_the_name_and_the_whole_status() -> None:
    row, *status = drawn(ATTEMPT, columns=40)
    assert row == "h-and-m-personaliz… seed2 1h12m ░░░░ 24h"
    assert status == [
        "1 running, 3 waiting for CPUs, memory or",
        "GPUs, 7 of 22 over, 2 gold, $40.00, …",
    ]


def test_80_columns_have_memory_validity_spending_and_host() -> None:
    row = drawn(ATTEMPT, columns=80)[0]
    assert row.startswith("h-and-m-person")
    for text in ("seed2", "1h12m ░░░░ 24h", "31.2GB", "valid", "$12.34", "node-7, NVI"):
        assert text in row


def test_what_nobody_has_leaves_its_room_to_the_log() -> None:
    row = drawn(replace(SHORT, place=""), columns=80)[0]
    assert "$" not in row
    assert row.startswith("spooky seed0 1h12m ░░░░░░░░░░ 24h 31.2GB unchecked")
    assert "epoch 17" in row


@pytest.mark.parametrize("columns", [200, 250])
def test_a_wide_terminal_has_everything(columns: int) -> None:
    row = drawn(ATTEMPT, columns=columns)[0]
    bar = "1h12m ░░░░░░░░░░ 24h"
    facts = (LONG, "seed2", bar, "31.2GB", "valid", "$12.34", "7.5 CPUs", "GPU 93 %")
    place = "node-7, NVIDIA A10"
    assert row == " ".join((*facts, place, ATTEMPT.last_line))


def test_cells_of_several_attempts_are_below_one_another() -> None:
    first, second = drawn(ATTEMPT, SHORT, columns=200)[:2]
    assert first.index("seed2") == second.index("seed0") == len(LONG) + 1
    assert first.index("node-7") == second.index("node-7")


@pytest.mark.parametrize("height", [3, 4, 6, 10])
@pytest.mark.parametrize("columns", [40, 200])
def test_there_are_no_more_lines_than_room(columns: int, height: int) -> None:
    lines = drawn(*[ATTEMPT] * 30, columns=columns, height=height)
    assert len(lines) <= height
    rows = sum(line.startswith("h-and-m") for line in lines)
    if height > 3:
        assert f"… and {30 - rows} more" in lines
    assert any(line.startswith("30 running") for line in lines)


@pytest.mark.parametrize(
    ("valid", "handed_in", "text"),
    [
        (True, True, "valid"),
        (False, True, "not valid"),
        (None, True, "unchecked"),
        (None, False, "no file"),
        (None, None, ""),
    ],
)
def test_a_row_shows_whether_there_is_a_valid_submission(
    valid: bool | None, handed_in: bool | None, text: str
) -> None:
    assert replace(ATTEMPT, valid=valid, handed_in=handed_in).submission_text == text
