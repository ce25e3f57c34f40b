"""Whatever the file, a verdict is a score or one sentence, and check and score agree."""

from __future__ import annotations

from pathlib import Path

import pytest
from golden_pack import IDS
from hypothesis import given, settings
from hypothesis import strategies as st
from submission_laws import Bench

EXAMPLES = 12


@pytest.mark.parametrize("competition_id", IDS)
def test_spoilt_submissions_break_no_law(competition_id: str, tmp_path: Path) -> None:
    bench = Bench.of(competition_id, tmp_path)

    @settings(max_examples=EXAMPLES)
    @given(st.integers(0, 2**32))
    def law(seed: int) -> None:
        bench.write(seed)
        assert bench.problem() is None

    law()
