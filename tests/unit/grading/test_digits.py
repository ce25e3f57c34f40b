"""Numbers read from their digits all at once are those that ``int`` reads."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_mlebench.grading.digits import plain_numbers

PAD = bytes(8)
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
