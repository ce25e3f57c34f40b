"""What an agent says of its own spending is read as the hostile data it may be."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pytest_mlebench.gateway.own_usage import (
    BadUsage,
    OwnFigures,
    OwnUsage,
    difference,
    parse_own_usage,
    read_own_usage,
)
from pytest_mlebench.gateway.spending import ModelSpending, Spending, Usage

GOOD = {
    "input_tokens": 120,
    "output_tokens": 8,
    "usd": 1.25,
    "steps": 40,
    "models": {"gpt-5": {"input_tokens": 120, "usd": 1}},
    "a key of its own": [1, 2],
}


def write(folder: Path, content: str) -> None:
    (folder / "usage.json").write_text(content)


def problem(content: bytes) -> str:
    with pytest.raises(BadUsage) as error:
        parse_own_usage(content)
    return str(error.value)


def test_figures_are_read_and_unknown_keys_ignored(tmp_path: Path) -> None:
    write(tmp_path, json.dumps(GOOD))
    usage = read_own_usage(tmp_path)
    assert usage == OwnUsage(120, 8, 1.25, 40, {"gpt-5": OwnFigures(120, None, 1.0)})
    assert usage.tokens == 128
    assert OwnUsage.from_dict(json.loads(json.dumps(usage.to_dict()))) == usage


def test_no_file_is_no_figures(tmp_path: Path) -> None:
    assert read_own_usage(tmp_path) is None


def test_an_empty_object_says_nothing() -> None:
    assert parse_own_usage(b"{}") == OwnUsage()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(json.dumps(GOOD))
    (tmp_path / "usage.json").symlink_to(tmp_path / "secret")
    with pytest.raises(BadUsage, match=r"usage\.json cannot be opened"):
        read_own_usage(tmp_path)


def test_a_pipe_does_not_hold_anybody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "usage.json")
    with pytest.raises(BadUsage, match=r"usage\.json is not a regular file"):
        read_own_usage(tmp_path)


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "usage.json").open("wb") as file:
        file.truncate(10**12)
    with pytest.raises(BadUsage, match=r"usage\.json has more than 1048576 bytes"):
        read_own_usage(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "usage.json is not valid JSON"),
        (b"\xff\xfe{", "usage.json is not valid JSON"),
        (b"[" * 100_000, "usage.json is not valid JSON"),
        (b'{"usd": ' + b"9" * 5000 + b"}", "usage.json is not valid JSON"),
        (b"[1]", "usage.json must be an object"),
        (b'{"models": [1]}', "usage.json: models must be an object"),
        (b'{"models": {"a": 3}}', "usage.json: the figures of a model must be an object"),
        (
            b'{"models": {"\\u001b[2J": {}}}',
            "usage.json: the name of a model is empty, too long or not printable",
        ),
        (
            b'{"models": {"": {}}}',
            "usage.json: the name of a model is empty, too long or not printable",
        ),
        (
            json.dumps({"models": {str(n): {} for n in range(101)}}).encode(),
            "usage.json: models has more than 100 names",
        ),
        (b'{"usd": NaN}', "usage.json: usd must be a number of dollars from 0 to 1000000000"),
        (b'{"usd": Infinity}', "usage.json: usd must be a number of dollars from 0 to 1000000000"),
        (b'{"usd": -1}', "usage.json: usd must be a number of dollars from 0 to 1000000000"),
        (b'{"usd": "1"}', "usage.json: usd must be a number of dollars from 0 to 1000000000"),
        (b'{"usd": true}', "usage.json: usd must be a number of dollars from 0 to 1000000000"),
        (
            b'{"input_tokens": 1.5}',
            "usage.json: input_tokens must be a whole number from 0 to 1000000000000000",
        ),
        (
            b'{"models": {"a": {"output_tokens": -1}}}',
            "usage.json: models: a: output_tokens must be a whole number "
            "from 0 to 1000000000000000",
        ),
    ],
)
def test_nonsense_is_said_in_one_sentence(content: bytes, message: str) -> None:
    assert problem(content) == message


def spent(usd: float | None) -> Spending:
    usage = Usage(input_tokens=1000, output_tokens=100)
    return Spending(models=(ModelSpending("openai", "gpt-5", calls=1, usage=usage, usd=usd),))


def test_figures_that_agree_are_not_worth_a_word() -> None:
    assert difference(spent(1.0), OwnUsage(1005, 100, 1.001)) is None
    assert difference(spent(None), OwnUsage(1000, None, 7.0)) is None


def test_figures_that_differ_are_named() -> None:
    assert difference(spent(2.5), OwnUsage(10, 100, 0.5)) == (
        "the agent reports 10 input tokens where the gateway counted 1000, "
        "0.5 dollars where the gateway counted 2.5"
    )
