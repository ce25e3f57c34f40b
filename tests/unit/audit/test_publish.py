"""What is published is complete, and the reference's own arithmetic gives the same figures."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import cli
from reporting import REAL_REPORTS, errored
from scipy import stats

from pytest_mlebench.audit.publish import (
    EXPERIMENTS,
    ROW,
    publication,
    refusal,
    write_publication,
)
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.disclosure import Disclosure
from pytest_mlebench.reports.findings import AttemptFindings, Audit, CheckFindings, Finding
from pytest_mlebench.reports.report import Report

SAID = Disclosure(
    agent="mine",
    llms=("gpt-5", "o3"),
    url="https://example.org/mine",
    statement="no test labels",
    limits={"time": "24h"},
)


def _whole(**changes: Any) -> Report:
    report = Report.from_reference(REAL_REPORTS)
    return _audited(replace(report, disclosure=replace(SAID, **changes)))


def _audited(report: Report, *flagged: AttemptFindings) -> Report:
    """Return a report in which everything but what is flagged was found innocent."""
    known = {each.key for each in flagged}
    innocent = [AttemptFindings(r.key, "") for r in report.results if r.key not in known]
    return replace(report, audit=Audit((*flagged, *innocent), "1"))


def _aggregated(folder: Path, split: tuple[str, ...]) -> str:
    """Aggregate as the reference does: seeds in order, mean, sample deviation over root n."""
    with (folder / EXPERIMENTS).open() as file:
        groups = sorted(row["run_group"] for row in csv.DictReader(file))
    medals: dict[str, list[bool]] = defaultdict(list)
    for group in groups:
        (path,) = (folder / "runs" / group).glob("*grading_report*.json")
        for entry in json.loads(path.read_text())["competition_reports"]:
            won = entry["gold_medal"] or entry["silver_medal"] or entry["bronze_medal"]
            medals[entry["competition_id"]].append(won)
    rates = [100 * np.mean([medals[name][n] for name in split]) for n in range(len(groups))]
    return f"{np.mean(rates):.2f} ± {stats.sem(rates, ddof=1):.2f}"


def test_the_references_arithmetic_gives_the_figures_of_the_row(tmp_path: Path) -> None:
    found = publication(_whole(), "mine")
    assert found.missing == ()
    write_publication(found, tmp_path / "out")
    registry = Registry()
    row = [cell.strip() for cell in found.files[ROW].splitlines()[2].strip("|").split("|")]
    splits = [registry.split(name) for name in ("low", "medium", "high", "all")]
    assert row[2:6] == [_aggregated(tmp_path / "out", split) for split in splits]
    assert row[2:6] == ["62.12 ± 1.52", "36.84 ± 1.52", "33.33 ± 0.00", "43.56 ± 0.89"]
    assert row[:2] == ["[mine](https://example.org/mine)", "gpt-5, o3"]
    assert row[6] == "24"
    text = (tmp_path / "out" / EXPERIMENTS).read_text()
    assert text == "experiment_id,run_group\nmine,mine_1\nmine,mine_2\nmine,mine_3\n"
    back = Report.load([*sorted((tmp_path / "out" / "runs").glob("*/*.json"))])
    assert back.rates == _whole().rates


def test_everything_that_is_missing_is_listed() -> None:
    report = _whole(llms=(), statement=None)
    results = [r for r in report.results if r.seed < 2 and r.competition != "AI4Code"]
    lost = replace(errored(results[0].competition, 1), agent=results[0].agent)
    results = [r for r in results if r.key != lost.key]
    report = Report.of([*results, lost], registry=Registry(), disclosure=report.disclosure)
    violation = CheckFindings("facts", "", (Finding("labels", "violation", "by hand"),))
    flagged = AttemptFindings(results[0].key, "", (violation,))
    report = _audited(report, flagged)
    assert report.audit is not None
    kept = [each for each in report.audit.attempts if each.key != results[1].key]
    found = publication(replace(report, audit=Audit(tuple(kept), "1")), "mine")
    assert found.missing == (
        "2 seeds, at least 3 are needed",
        "medium: 1 of 38 competitions are missing",
        f"{lost.competition} seed 1: error",
        f"{flagged.name}: flagged by the audit",
        f"{results[1].competition} seed {results[1].seed}: not audited",
        "no llms in agent.toml",
        "no statement in agent.toml",
    )
    text = refusal(found)
    assert text.splitlines()[1] == "  - 2 seeds, at least 3 are needed"
    assert "- 2 seeds, at least 3 are needed" in found.files["disclosure.md"]


def test_splits_that_were_not_run_are_not_available() -> None:
    registry = Registry()
    report = _audited(_whole().only(registry.split("low"), registry))
    found = publication(report, "mine")
    assert found.missing == ()
    assert "| 62.12 ± 1.52 | N/A | N/A | N/A |" in found.files[ROW]


@pytest.mark.parametrize("name", ["", "../x", "a b", "-a", "a,b"])
def test_a_group_has_a_plain_name(name: str) -> None:
    with pytest.raises(ConfigError, match="--group must be letters"):
        publication(_whole(), name)


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(ConfigError, match="--output must be a folder that is new or empty"):
        write_publication(publication(_whole(), "mine"), tmp_path)


def test_addresses_cannot_leave_their_brackets() -> None:
    row = publication(_whole(url="https://x.org/) | <b>", agent="a|b"), "mine").files[ROW]
    assert row.splitlines()[2].startswith("| [a\\|b](https://x.org/b) |")


def test_the_command_refuses_and_writes_what_is_incomplete(tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ("publish", REAL_REPORTS[0].parent, "--group", "famou", "-o", out)
    done = cli(*arguments)
    assert done.returncode == 4
    assert "no llms in agent.toml" in done.stderr
    assert "Traceback" not in done.stderr
    assert not out.exists()
    done = cli(*arguments, "--incomplete")
    assert done.returncode == 0
    assert "missing: no llms in agent.toml" in done.stdout
    assert "missing: no audit, which pytest-mlebench audit RUN makes" in done.stdout
    assert "no audit, which" in (out / "disclosure.md").read_text()
    assert (out / "runs" / "famou_3" / "famou_3_grading_report.json").is_file()
