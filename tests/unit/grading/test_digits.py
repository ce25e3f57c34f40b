"""Numbers read from their digits all at once are those that ``int`` and ``float`` read."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_mlebench.grading.digits import EXACT_DIGITS, plain_decimals, plain_numbers

PAD = bytes(8)
DECIMALS = (
    st.floats(-1e12, 1e12).map(repr)
    | st.decimals(-(10**9), 10**9, places=4).map(str)
    | st.text("0123456789.-", max_size=17)
    | st.sampled_from(["1.", ".5", ".", "1..2", "-", "-0", "--1", "+1", "1e3", "nan", "0.1/"])
)
TOKENS = st.text("0123456789/:ax", max_size=17) | st.integers(0, 10**16 - 1).map(str)


@given(st.lists(TOKENS, min_size=1, max_size=5))
@example(["9999"])
@example(["9999", "10000"])
@example(["12345678", "123456789"])
@example(["9" * 16])
@example(["9" * 17])
@example([""])
def test_tokens_are_numbers_or_none_is(tokens: list[str]) -> None:
    lengths = np.array([len(token) for token in tokens])
    ends = np.cumsum(lengths + 1) - 1 + len(PAD)
    data = np.frombuffer(PAD + " ".join(tokens).encode() + PAD, np.uint8)
    found = plain_numbers(data, ends, lengths, known=False)
    if all(token.isdigit() and len(token) <= 16 for token in tokens):
        assert found is not None
        assert found.tolist() == [int(token) for token in tokens]
        known = plain_numbers(data, ends, lengths, known=True)
        assert known is not None
        assert known.tolist() == found.tolist()
    else:
        assert found is None


@given(st.lists(DECIMALS, min_size=1, max_size=5), st.data())
@example(["0.1", "12345678.1234567"], None)
@example(["999999999999999", "0.30000000000000004"], None)
def test_decimals_are_those_that_float_reads(tokens: list[str], data: st.DataObject | None) -> None:
    lengths = np.array([len(token) for token in tokens])
    ends = np.cumsum(lengths + 1) - 1 + len(PAD)
    text = np.frombuffer(PAD + " ".join(tokens).encode() + PAD, np.uint8)
    chosen = [data is None or data.draw(st.booleans()) for _ in tokens]
    found = plain_decimals(text, (ends - lengths)[chosen], ends[chosen])
    asked = [token for token, is_asked in zip(tokens, chosen, strict=True) if is_asked]
    if all(map(_is_plain, asked)):
        assert found is not None
        assert list(map(repr, found.tolist())) == [repr(float(token)) for token in asked]
    else:
        assert found is None


def _is_plain(token: str) -> bool:
    whole, point, places = token.removeprefix("-").partition(".")
    if not point:
        return whole.isdigit() and len(whole) <= 16
    return whole.isdigit() and places.isdigit() and len(whole + places) <= EXACT_DIGITS
