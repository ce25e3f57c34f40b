"""Submissions as people and hostile programs really write them: an honest file, spoilt a little."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Callable

Rows = list[list[str]]
Change = Callable[[Rows, random.Random], Rows]

CELLS = (
    *(
        "",
        " ",
        "nan",
        "NaN",
        "NULL",
        "None",
        "inf",
        "-inf",
        "Infinity",
        "1e309",
        "-1e309",
        "1e-400",
    ),
    *("0", "-0", "1", "-1", "0.5", "1.0", "2.5", "007", "+1", "1_000", "0x10", "1e3", "1,5", "50%"),
    *(
        "True",
        "false",
        "TRUE",
        "yes",
        "x",
        "a b",
        'say "hi"',
        "two\nlines",
        "\t",
        "\u0663",
        "é",
        "\ufeff",
    ),
    *(str(2**63 - 1), str(2**63), str(2**64), "-" + "9" * 19, "9" * 40, "9" * 309, "9" * 4300),
    *("9" * 5000, "1." + "3" * 400, "x" * 3000, "1 " * 2000, "2020-01-01", "[1, 2]", "-"),
    *("1 1", "1 2 3", "5 1 5 1", "0 1", "-1 1", "1 0", "1 -1", f"1 {10**30}", "nan nan", "1.5 2"),
)
BYTES = (b"\x00", b"\xff", b"\xc3", b'"', b",", b"\n", b"\r", b" ", b"\xef\xbb\xbf", b"\x1f\x8b")
COLUMN_NAMES = ("", "id", "Id", "ID", "prediction", "x", "Unnamed: 0", "a b")


def mutated(text: str, seed: object) -> bytes:
    """Return a file that is the honest *text* after one to three changes, the same for a seed."""
    source = random.Random(str(seed))
    rows = [row for row in csv.reader(io.StringIO(text)) if row]
    for _ in range(source.choice((1, 1, 1, 1, 2, 3))):
        if len(rows) > 1 and rows[0]:
            rows = source.choice(CHANGES)(rows, source)
    data = _written(rows, source)
    return _spoilt(data, source) if source.random() < 0.1 else data


def _written(rows: Rows, source: random.Random) -> bytes:
    """Return the file in one of the ways in which people write csv."""
    file = io.StringIO()
    end = source.choice(("\n", "\n", "\n", "\r\n"))
    quoting = source.choice((csv.QUOTE_MINIMAL, csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
    csv.writer(file, lineterminator=end, quoting=quoting).writerows(rows)
    text = file.getvalue()
    text = text.removesuffix(end) if source.random() < 0.1 else text
    before = source.choice(("\ufeff", "\n", " \n", ",\n")) if source.random() < 0.1 else ""
    return (before + text + source.choice(("", "", "", end, f"{end}{end}"))).encode()


def _spoilt(data: bytes, source: random.Random) -> bytes:
    place = source.randrange(len(data) + 1)
    if source.random() < 0.3:
        return data[:place]  # cut off
    return data[:place] + source.choice(BYTES) + data[place + source.choice((0, 1)) :]


def _cell(rows: Rows, source: random.Random) -> Rows:
    row = source.choice(rows[1:])
    place = source.randrange(len(rows[0]))
    row[place : place + 1] = [source.choice(CELLS)]
    return rows


def _column(rows: Rows, source: random.Random) -> Rows:
    place, cell = source.randrange(len(rows[0])), source.choice(CELLS)
    for row in rows[1:]:
        row[place : place + 1] = [cell]
    return rows


def _token(rows: Rows, source: random.Random) -> Rows:
    """Change one of several words of a cell."""
    lists = [(row, k) for row in rows[1:] for k, cell in enumerate(row) if " " in cell]
    if not lists:
        return _cell(rows, source)
    row, place = source.choice(lists)
    words = row[place].split(" ")
    at = source.randrange(len(words))
    words[at : at + 1] = source.choice(
        ([], [words[at]] * 2, [source.choice(CELLS)], ["", words[at]])
    )
    row[place] = " ".join(words)
    return rows


def _number(rows: Rows, source: random.Random) -> Rows:
    """Write the numbers of a column in another way: fewer digits, as floats, as whole numbers."""
    place = source.randrange(len(rows[0]))
    show = source.choice(("{:.4f}", "{:.2f}", "{:.1f}", "{:.0f}", "{:e}", "{:g}", " {:f} "))
    for row in rows[1:]:
        try:
            row[place] = show.format(float(row[place]))
        except (ValueError, IndexError):
            continue
    return rows


def _rows(rows: Rows, source: random.Random) -> Rows:
    header, *body = rows
    at = source.randrange(len(body))
    body[at : at + 1] = source.choice(
        ([], [body[at]] * 2, [[]], [body[at][:-1]], [[*body[at], ""]], [["x"] * len(body[at])])
    )
    return [header, *body]


def _cut(rows: Rows, source: random.Random) -> Rows:
    return rows[: 1 + source.choice((0, 1, len(rows) // 2))]


def _shuffled(rows: Rows, source: random.Random) -> Rows:
    body = rows[1:]
    source.shuffle(body)
    return [rows[0], *body]


def _columns(rows: Rows, source: random.Random) -> Rows:
    width = len(rows[0])
    order = list(range(width))
    match source.randrange(4):
        case 0:
            source.shuffle(order)
        case 1:
            del order[source.randrange(width)]
        case 2:
            order.append(source.randrange(width))
        case _:
            return [[*row, source.choice(("", "0", "x"))] for row in rows]
    return [[row[k] for k in order if k < len(row)] for row in rows]


def _named(rows: Rows, source: random.Random) -> Rows:
    rows[0][source.randrange(len(rows[0]))] = source.choice(COLUMN_NAMES)
    return rows


def _indexed(rows: Rows, _source: random.Random) -> Rows:
    """Write row numbers before the rest, as pandas does unless it is asked not to."""
    return [[str(number - 1) if number else "", *row] for number, row in enumerate(rows)]


def _trailing(rows: Rows, _source: random.Random) -> Rows:
    return [[*row, ""] for row in rows]


CHANGES: tuple[Change, ...] = (
    *(_cell, _cell, _cell, _token, _token, _token, _number, _number, _shuffled, _shuffled),
    *(_column, _columns, _rows, _cut, _named, _indexed, _trailing),
)
