"""What is on a test report is read from it once."""

from __future__ import annotations

import pytest

from pytest_mlebench.plugin import verdicts
from pytest_mlebench.reports.results import ItemKey, Result


def test_a_report_that_is_asked_again_is_not_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    key, result = ItemKey("a", 0), Result("a", 0, "error", error="lost")
    report = pytest.TestReport("n", ("f", 1, "n"), {}, "failed", None, "call")
    setattr(report, verdicts.ATTRIBUTE, {"item": key.to_dict(), "result": result.to_dict()})
    read: list[object] = []

    def from_dict(data: object) -> Result:
        read.append(data)
        return result

    monkeypatch.setattr(verdicts.Result, "from_dict", from_dict)
    assert [verdicts.found_in(report) for _ in range(3)] == [(key, result)] * 3
    assert len(read) == 1
