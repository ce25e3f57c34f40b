"""`--mle-report`: what is written where."""

from __future__ import annotations

import json

from plugin_session import Session

ONE = "--mle-competition=demo-digits"


def test_reports_are_written_by_suffix(session: Session, workers: tuple[str, ...]) -> None:
    reports = [f"--mle-report=out/r{suffix}" for suffix in (".json", ".csv", ".md")]
    result = session.run("--mle-agent=dummy", ONE, *reports, *workers)
    assert result.ret == 0
    data = json.loads((session.path / "out/r.json").read_text())
    assert data["disclosure"]["agent"] == "dummy"
    assert data["disclosure"]["sandbox"] == "process"
    assert data["disclosure"]["data"] == {"demo-digits": "none"}
    assert "demo-digits" in (session.path / "out/r.csv").read_text()
    assert "demo-digits" in (session.path / "out/r.md").read_text()
