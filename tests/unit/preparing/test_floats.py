"""The older float parser: against itself where pandas still has it, and digit by digit."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing.floats import read_csv_inexact

HAS_OLDER_PARSER = tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1)


def digit_by_digit(text: str) -> float:
    """Parse a decimal number the slow way: one character at a time, doubles throughout."""
    mantissa, _, power = text.lower().partition("e")
    whole, _, fraction = mantissa.lstrip("+-").partition(".")
    number, digits, exponent = 0.0, 0, int(power or 0)
    for place, digit in enumerate(whole + fraction):
        if digits < 17:
            number = number * 10.0 + int(digit)
            digits += 1
            exponent -= place >= len(whole)
        else:
            exponent += place < len(whole)
    number = -number if text.startswith("-") else number
    if exponent > 0:
        return number * float(f"1e{exponent}")
    if exponent < -308:
        return number / float(f"1e{-308 - exponent}") / 1e308
    return number / float(f"1e{-exponent}")


def decimals(seed: int, count: int) -> list[str]:
    """Return numbers of up to 40 digits, many with leading zeros, some with exponents."""
    draw = random.Random(seed)

    def some(most: int) -> str:
        return "".join(draw.choices("0123456789", k=draw.randint(0, most)))

    def decimal() -> str:
        text = draw.choice(["", "-", "+"]) + (some(20) or "0")
        text += "." + "0" * draw.randint(0, 12) * draw.randint(0, 1) + some(20)
        if draw.random() < 0.2:
            text += f"{draw.choice('eE')}{draw.randint(-330, 270)}"
        return draw.choice([text, text, repr(draw.gauss(0, 1))])

    return [decimal() for _ in range(count)]


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Return a csv file of many decimals, and their texts."""
    texts = [text for seed in range(5) for text in decimals(seed, 4000)]
    path = tmp_path_factory.mktemp("floats") / "many.csv"
    path.write_text("n,x\n" + "".join(f"{n},{text}\n" for n, text in enumerate(texts)))
    return path, texts


def test_every_digit_counts_as_in_the_older_parser(many: tuple[Path, list[str]]) -> None:
    path, texts = many
    table = read_csv_inexact(path, needs=["n", "x"])
    expected = np.array([digit_by_digit(text) for text in texts])
    assert np.array_equal(table["x"], expected)
    assert (expected != np.array([float(text) for text in texts])).mean() > 0.1
    assert table["n"].dtype == np.int64


@pytest.mark.skipif(not HAS_OLDER_PARSER, reason="this pandas parses floats exactly")
def test_the_older_parser_itself_agrees(many: tuple[Path, list[str]]) -> None:
    path, _ = many
    assert np.array_equal(read_csv_inexact(path)["x"], pd.read_csv(path)["x"])


def test_what_is_short_or_no_number_stays(tmp_path: Path) -> None:
    path = tmp_path / "few.csv"
    path.write_text("x,name\n0.1,a\n,b\nNaN,c\ninf,d\n-12345.678901234,e\n0.30000000000000004,f\n")
    table = read_csv_inexact(path)
    assert table["name"].tolist() == list("abcdef")
    # the zero before the point is the first of 17 digits, the final 4 the eighteenth
    expected = [0.1, np.nan, np.nan, np.inf, -12345.678901234, 0.3]
    assert np.array_equal(table["x"], expected, equal_nan=True)


def test_a_missing_file_or_column_is_named(tmp_path: Path) -> None:
    with pytest.raises(PreparationError, match=r"none\.csv: no such file in the raw data$"):
        read_csv_inexact(tmp_path / "none.csv")
    (tmp_path / "some.csv").write_text("a\n1.5\n")
    with pytest.raises(PreparationError, match=r"some\.csv has no column 'x'$"):
        read_csv_inexact(tmp_path / "some.csv", needs=["x"])
