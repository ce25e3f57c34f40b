"""JSON is read and written as the standard library does it, whichever library does it."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_mlebench.preparing import json_text

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.floats(-1000, 1000).map(lambda value: round(value, 4)),
    st.builds(lambda digits, power: digits * 10.0**power, st.floats(1, 10), st.integers(-9, 24)),
    st.text(),
    st.text('a,:"\\ \x7f\n[]{}é', max_size=5),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(max_size=3), inner)),
    max_leaves=12,
)


@pytest.fixture(params=["orjson", "json"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library that does the work."""
    monkeypatch.setattr(json_text, "BATCH_RECORDS", 3)
    if request.param == "json":
        monkeypatch.setattr(json_text, "orjson", None)


def same(one: Any, other: Any) -> bool:
    return repr(one) == repr(other)  # types, and NaN, and the sign of zero


@pytest.mark.usefixtures("library")
def test_any_value_is_written_and_read_as_by_the_standard_library() -> None:
    @settings(max_examples=300, deadline=None)
    @given(VALUES)
    def check(value: Any) -> None:
        text = json.dumps(value).encode()
        assert json_text.dumps(value) == text
        assert b"".join(json_text.dump(value)) == text
        assert same(json_text.loads(text), json.loads(text))
        plain = json.dumps(value, ensure_ascii=False, indent=1)
        try:
            raw = plain.encode()
        except UnicodeEncodeError:
            return
        assert same(json_text.loads(raw), json.loads(plain))

    check()


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    "text",
    ["1" * 20, "-9223372036854775809", "1e400", "-0", "NaN", "[1, NaN]", '"\\ud800"', "2e-324"],
)
def test_what_one_library_does_not_know_is_read_by_the_other(text: str) -> None:
    assert same(json_text.loads(text.encode()), json.loads(text))


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    "value",
    [math.nan, [math.inf], 1e-5, 1e-7, 1e16, 1e22, {"a": 10**30}, {1: 2}, "ü", "\x7f", {"a": None}],
)
def test_what_one_library_writes_otherwise_is_written_by_the_other(value: Any) -> None:
    assert json_text.dumps(value) == json.dumps(value).encode()


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("text", [b"", b"[1,]", b'{"a"}', b"\xff", b"\xef\xbb\xbf1"])
def test_what_is_no_json_is_an_error(text: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        json_text.loads(text)
