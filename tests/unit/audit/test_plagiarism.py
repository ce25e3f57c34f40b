"""Code that was copied is found whatever it is called; code of one's own is not accused."""

from __future__ import annotations

import ast
import json
import random
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from bundles import GradedRun, graded_run
from command_line import cli, complaint

from pytest_mlebench.audit.attempt_files import AttemptFiles
from pytest_mlebench.audit.audit_run import files_of
from pytest_mlebench.audit.comparisons import notebook_check, others_work, run_check
from pytest_mlebench.audit.plagiarism import (
    CodeSource,
    compare,
    notebook_text,
    read_sources,
    similarity,
)
from pytest_mlebench.reports.findings import read_audit
from pytest_mlebench.reports.report import Report

NOTEBOOKS = Path(__file__).parents[2] / "data" / "notebooks"  # scripts as on Kaggle, our own
ROOT = Path(__file__).parents[3] / "pytest_mlebench" / "agents" / "baseline"
WORK = "\n\n".join((ROOT / name).read_text() for name in ("learn.py", "estimate.py"))
OTHER = "\n\n".join((ROOT / name).read_text() for name in ("columns.py", "submission.py"))


@pytest.fixture
def run(tmp_path: Path) -> GradedRun:
    """Return a run of one attempt."""
    return graded_run(tmp_path, (0.5,))


def _attempt(run: GradedRun, code: str) -> AttemptFiles:
    place = run.path / "tiny" / "seed0" / "attempt1" / "artefacts" / "code" / "main.py"
    place.write_text(code)
    report = Report.from_run(run.path, run.registry)
    return files_of(report.results, run.registry, run.store)[0]


def _renamed(code: str) -> str:
    """Give every name that the code binds another one."""
    names = set(re.findall(r"^\s*(?:def )?(\w{3,})(?: =|\()", code, re.MULTILINE)) - {"return"}
    for number, name in enumerate(sorted(names)):
        code = re.sub(rf"\b{name}\b", f"thing_{number}", code)
    return code


def _without_comments(code: str) -> str:
    return re.sub(r"^\s*#.*\n", "", code, flags=re.MULTILINE).replace("\n\n", "\n")


@pytest.mark.parametrize("change", [str, _renamed, _without_comments])
def test_a_copy_is_flagged_with_the_lines_of_both_sides(run: GradedRun, change: type[str]) -> None:
    source = CodeSource("winner.ipynb", "import os\n\n" + WORK)
    (found,) = compare(_attempt(run, change(WORK)), [CodeSource("x.py", OTHER), source])
    assert (found.check, found.level) == ("plagiarism", "violation")
    assert re.fullmatch(r"artefacts/code/main.py is \d+% like winner.ipynb", found.what)
    place = r"artefacts/code/main\.py:\d+-\d+ is like winner\.ipynb:\d+-\d+"
    assert re.fullmatch(place, found.evidence[0])
    lines = re.fullmatch(r".*main\.py:(\d+)-\d+ is like winner\.ipynb:(\d+)-\d+", found.evidence[0])
    assert lines is not None
    excerpt = found.excerpts[0]
    first = change(WORK).splitlines()[int(lines[1]) - 1]
    assert excerpt.here.startswith(f"{lines[1]} {first[:60]}")
    assert excerpt.there.startswith(f"{lines[2]} ")
    assert max(map(len, excerpt.there.splitlines())) <= 130
    assert len(excerpt.there.splitlines()) <= 25


def _bound_names(code: str) -> set[str]:
    nodes = list(ast.walk(ast.parse(code)))
    names = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    names |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    return names | {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef)}


def _all_renamed(code: str) -> str:
    for number, name in enumerate(sorted(_bound_names(code))):
        code = re.sub(rf"(?<!\")\b{name}\b", f"thing_{number}", code)
    return code


def _reformatted(code: str) -> str:
    return ast.unparse(ast.parse(code))


def _cells_shuffled(code: str) -> str:
    cells = re.split(r"\n{2,}(?=\S)", code)
    random.Random(7).shuffle(cells)
    return "\n\n".join(cells)


@pytest.mark.parametrize(
    ("change", "least"),
    [
        (str, 1.0),
        (_reformatted, 0.9),
        (_all_renamed, 0.79),
        (lambda code: _all_renamed(_reformatted(code)), 0.7),
        (_cells_shuffled, 0.59),
    ],
    ids=["verbatim", "reformatted", "renamed", "both", "shuffled"],
)
@pytest.mark.parametrize("notebook", ["houses", "leaves"])
def test_mutations_of_notebooks_stay_alike(
    notebook: str, change: Callable[[str], str], least: float
) -> None:
    code = (NOTEBOOKS / f"{notebook}.txt").read_text()
    assert similarity(code, change(code)) >= least


def test_notebooks_on_other_subjects_are_not_alike() -> None:
    first, second = (path.read_text() for path in sorted(NOTEBOOKS.glob("*.txt")))
    assert similarity(first, second) <= 0.18
    assert similarity(first, WORK) <= 0.18


def test_code_of_ones_own_is_not_accused(run: GradedRun) -> None:
    assert compare(_attempt(run, WORK), [CodeSource("x.py", OTHER)]) == []


def test_a_few_lines_are_nobodys_own(run: GradedRun) -> None:
    short = "import pandas as pd\ntrain = pd.read_csv('train.csv')\nprint(train.head())\n"
    assert compare(_attempt(run, short), [CodeSource("x.py", short)]) == []


def test_one_solution_against_fifty_notebooks_takes_seconds_once(run: GradedRun) -> None:
    sources = [CodeSource(f"{n}.py", OTHER.replace("column", f"col{n}")) for n in range(50)]
    attempt = _attempt(run, WORK)
    started = time.process_time()
    compare(attempt, sources)
    first = time.process_time() - started
    started = time.process_time()
    compare(attempt, sources)
    assert time.process_time() - started < first / 3  # fingerprints are kept


def test_notebooks_of_every_version_are_read() -> None:
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "source": "x = 1"}
    new = {"cells": [cell | {"execution_count": None}], "metadata": {}}
    assert notebook_text(json.dumps(new | {"nbformat": 4, "nbformat_minor": 4})) == "x = 1"
    old = {"cell_type": "code", "input": ["y = 2"], "outputs": [], "language": "python"}
    sheet = {"worksheets": [{"cells": [old]}], "nbformat": 3, "nbformat_minor": 0, "metadata": {}}
    assert notebook_text(json.dumps(sheet)) == "y = 2"
    assert notebook_text("no notebook") == ""


def _where(run: GradedRun) -> tuple[object, ...]:
    return ("--competitions", run.registry.roots[1], "--data-dir", run.store)


def _checks(run: GradedRun) -> dict[str, list[str]]:
    """Return what audit.json has of the first attempt, by the first word of the check."""
    audit = read_audit(run.path / "audit.json")
    assert audit is not None
    checks = audit.attempts[0].checks
    return {check.name.split()[0]: [f.what for f in check.findings] for check in checks}


def test_the_command_compares_with_notebooks_and_other_runs(run: GradedRun, tmp_path: Path) -> None:
    _attempt(run, WORK)
    folder = tmp_path / "notebooks" / "tiny"
    folder.mkdir(parents=True)
    (folder / "winner.py").write_text(WORK)
    (folder / "link.py").symlink_to("/etc/passwd")
    assert [source.name for source in read_sources(folder)] == ["winner.py"]
    where = _where(run)
    done = cli("audit", run.path, *where, "--notebooks", folder.parent, "--fail-on", "violation")
    assert done.returncode == 1
    copied = ["artefacts/code/main.py is 100% like winner.py"]
    assert _checks(run)["notebooks"] == copied
    other = graded_run(tmp_path / "other", (0.5,))
    _attempt(other, WORK)
    _rename_agent(other, "yours")
    done = cli("audit", run.path, *where, "--against", other.path)
    assert "is 100% like run yours seed 0" in " ".join(done.stdout.split())
    assert "submission is byte for byte that of run yours" in " ".join(done.stdout.split())
    assert done.stderr == ""
    assert _checks(run)["notebooks"] == copied  # what was found stays found
    done = cli("audit", run.path, *where, "--fail-on", "violation")
    assert done.returncode == 1
    assert "must be another run" in complaint("audit", run.path, *where, "--against", run.path)


def _rename_agent(run: GradedRun, name: str) -> None:
    for path in (run.path / "run.json", *run.path.rglob("record.json")):
        path.write_text(path.read_text().replace('"mine"', f'"{name}"'))


def test_an_earlier_run_of_the_same_agent_is_no_source_of_copies(
    run: GradedRun, tmp_path: Path
) -> None:
    _attempt(run, WORK)
    other = graded_run(tmp_path / "other", (0.5,))
    _attempt(other, WORK)
    done = cli("audit", run.path, *_where(run), "--against", other.path)
    assert done.returncode == 0
    assert _checks(run)["against"] == []
    assert done.stderr == (
        f"--against {other.path}: 1 attempt of mine: "
        "not compared with attempts of the same agent, whose own code is no copy\n"
    )


def test_notebooks_that_arrive_later_are_compared(run: GradedRun, tmp_path: Path) -> None:
    _attempt(run, WORK)
    folder = tmp_path / "notebooks" / "tiny"
    assert "must be a directory, given" in complaint(
        "audit", run.path, *_where(run), "--notebooks", folder.parent
    )
    folder.mkdir(parents=True)
    assert "competition of the run: tiny" in complaint(
        "audit", run.path, *_where(run), "--notebooks", folder.parent
    )
    assert "kernels tiny --fetch" in complaint("audit", run.path, *_where(run), "--notebooks")
    check = notebook_check("here", lambda name: folder)
    first = run.audit(check).attempts[0].findings
    assert [finding.what for finding in first] == [
        "no notebooks of tiny were there to compare with"
    ]
    (folder / "winner.py").write_text(WORK)
    read_sources.cache_clear()  # as in the next process
    assert [each.name for each in run.audit(check).flagged] == ["tiny seed 0"]


def test_other_agents_of_the_same_run_are_compared(run: GradedRun) -> None:
    mine = _attempt(run, WORK)
    others = [
        replace(others_work(mine, ""), agent=agent, name=f"{agent} seed 0", submission=None)
        for agent in ("mine", "yours")
    ]
    (found,) = run_check("other agents", others, within=True).run(mine)
    assert found.level == "violation"
    assert run_check("other agents", others[:1], within=True).run(mine) == []


def test_findings_in_files_that_have_changed_are_reported_as_lost(run: GradedRun) -> None:
    mine = _attempt(run, WORK)
    run.audit(run_check("run x", [others_work(mine, "other")]))
    _attempt(run, OTHER)
    done = cli("audit", run.path, *_where(run))
    assert done.stderr == "tiny seed 0: its files have changed, ask again for: against run x\n"
    assert "against" not in _checks(run)


def test_audits_of_the_first_schema_are_read_and_keep_what_was_found(run: GradedRun) -> None:
    attempt = _attempt(run, WORK)
    copied = {"check": "plagiarism", "level": "violation", "what": "a copy", "evidence": ["x"]}
    noted = {"check": "models", "level": "info", "what": "of an older version", "evidence": []}
    data = {
        "format": "pytest-mlebench audit",
        "schema": 1,
        "plugin_version": "0.1",
        "judge": {"model": "m", "calls": 3},
        "attempts": [
            {
                **attempt.result.key.to_dict(),
                "digest": f"{attempt.digest} code-1234",
                "findings": [noted, copied],
                "figures": {},
            }
        ],
    }
    (run.path / "audit.json").write_text(json.dumps(data))
    audit = run.audit()
    assert [finding.what for finding in audit.attempts[0].findings] == ["a copy"]
    assert audit.judges == ({"model": "m", "calls": 3},)
