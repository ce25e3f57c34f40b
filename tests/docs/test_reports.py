"""What docs/reports.md shows and names is so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reporting import REAL_REPORTS

from pytest_mlebench.reports.report import WRITERS, Report
from pytest_mlebench.reports.summary import summary_lines

TEXT = (Path(__file__).parents[2] / "docs" / "reports.md").read_text(encoding="utf-8")


def test_the_summary_shown_is_the_real_one() -> None:
    report = Report.from_reference(REAL_REPORTS)
    shown = TEXT.split("```\n")[1].splitlines()
    lines = [line.text for line in summary_lines(report.results, report.membership)]
    assert [line for line in shown if line not in lines] == []
    assert len(shown) == 10


def test_every_key_of_the_schema_is_described(tmp_path: Path) -> None:
    Report.from_reference(REAL_REPORTS).write(tmp_path / "r.json")
    data: dict[str, Any] = json.loads((tmp_path / "r.json").read_text())
    keys = {
        *data,
        *data["disclosure"],
        *data["membership"],
        *data["rates"][0],
        *data["rates"][0]["any_medal"],
        *data["costs"]["total"],
        *data["results"][0],
        *data["results"][0]["grade"],
    }
    assert [key for key in sorted(keys) if f"`{key}`" not in TEXT and f'"{key}"' not in TEXT] == []
    assert all(f"`{suffix}`" in TEXT for suffix in WRITERS)
