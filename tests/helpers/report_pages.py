"""Reports to look at: the whole benchmark on disk, and one whose agent is hostile."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from reporting import spent

from pytest_mlebench.grade import Grade, Snapshot
from pytest_mlebench.medals import Medal
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.attempt_facts import AttemptFacts
from pytest_mlebench.reports.disclosure import Disclosure
from pytest_mlebench.reports.findings import (
    AttemptFindings,
    Audit,
    CheckFindings,
    Excerpt,
    Finding,
)
from pytest_mlebench.reports.report import Report
from pytest_mlebench.reports.results import Result

HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    "</pre></details></script>{{ 7 * 7 }} javascript:alert(1) \x1b[31mred\x1b[0m \u202eevil\u2066"
)
LINE = 'epoch 3/10 loss 0.4182 "val" <0.43> & so on'


def whole_benchmark(folder: Path, seeds: int = 3, split: str = "all") -> Report:
    """Return a report of all 75 competitions whose attempts have left everything they can leave."""
    registry, chance = Registry(), random.Random(1)
    results = []
    for name in registry.split(split):
        board = registry.load(name).leaderboard
        for seed in range(seeds):
            score = board.percentiles[min(100, int(chance.expovariate(0.04)))]
            grade = Grade.of(name, board, score)
            run = folder / name / f"seed{seed}" / "attempt1"
            _leave_traces(run)
            kept = tuple(
                Snapshot(3600.0 * k, "a", 9, score, grade.medal, True, float(2 * k))
                for k in range(1, 24)
            )
            results.append(
                Result(
                    name,
                    seed,
                    "graded",
                    grade,
                    agent="mine",
                    agent_seconds=chance.uniform(600, 86_400),
                    run=str(run),
                    format_checks=3,
                    snapshots=kept,
                    attempt=_facts(),
                    model_use=spent(chance.uniform(1, 40), 900_000),
                )
            )
    results[0] = _failed(results[0])
    disclosure = Disclosure(
        agent="mine",
        splits=(split,),
        limits={"time": "24h"},
        started="2026-11-02T08:00:00+00:00",
        finished="2026-11-09T17:30:00+00:00",
    )
    report = Report.of(results, registry=registry, disclosure=disclosure)
    return replace(report, audit=_audit(results))


def hostile_report(folder: Path) -> Report:
    """Return a report in which everything that an agent has a hand in is an attack."""
    grade = Grade(HOSTILE, 0.9, Medal.GOLD, True, 99.0, True, None, 0.9, 0.8, 0.7, 0.5, False, 240)
    run = folder / "c" / "seed0" / "attempt1"
    _leave_traces(run)
    (run / "run.log").write_text(f"{HOSTILE}\n" + "x" * 2**20 + f"\n{HOSTILE}\n")
    facts = replace(_facts(), submission_head=(HOSTILE,), host=HOSTILE, gpus=(HOSTILE,))
    kept = (Snapshot(2, "a", 9, problem=HOSTILE), Snapshot(3, "b", 9, 0.6, Medal.NONE, True, 55.0))
    results = [
        Result(
            HOSTILE, 0, "graded", grade, agent=HOSTILE, run=str(run), snapshots=kept, attempt=facts
        ),
        Result("javascript:alert(1)", 0, "error", error=HOSTILE, agent=HOSTILE),
    ]
    disclosure = Disclosure(agent=HOSTILE, agent_version=HOSTILE, notes=(HOSTILE,))
    report = Report.of(results, registry=Registry(), disclosure=disclosure)
    sides = (Excerpt(f"1 {HOSTILE}\n2 here", f"7 {HOSTILE}\n8 there"),)
    finding = Finding("plagiarism", "violation", HOSTILE, (HOSTILE, HOSTILE), sides)
    check = CheckFindings("notebooks", "", (finding,))
    return replace(report, audit=Audit((AttemptFindings(results[0].key, "", (check,)),), "1"))


def _audit(results: Sequence[Result]) -> Audit:
    """Return an audit that has found something at every seventh attempt."""
    evidence = ("artefacts/code/train.py:31: answers = pd.read_csv(LEAKED)",)
    levels = {0: "violation", 1: "suspicious", 2: "info"}
    attempts = []
    for number, result in enumerate(results):
        level = levels.get(number % 7)
        found = level and Finding("leak", level, "the code names a known leak", evidence)  # type: ignore[arg-type]  # one of three
        checks = (CheckFindings("facts", "a", (found,)),) if found else ()
        attempts.append(AttemptFindings(result.key, "a", checks))
    return Audit(tuple(attempts), "0.1.0")


def _failed(result: Result) -> Result:
    problem = "no column 'y'; it has 'id', 'x'"
    grade = result.grade and replace(result.grade, score=None, medal=Medal.NONE, problem=problem)
    return replace(result, status="failed", grade=grade)


def _facts() -> AttemptFacts:
    return AttemptFacts(
        ending="exited",
        exit_code=0,
        host="node-7",
        gpus=("NVIDIA A10",),
        time_limit=86_400,
        memory_limit=440 * 10**9,
        peak_memory=31 * 10**9,
        cpu_seconds=71_000,
        egress={"allowed": 12, "refused": 3, "failed": 0},
        refused_hosts={"leaks.example": 2, "kaggle.example": 1},
        submission_head=("id,y", *(f"{number},0.{number}" for number in range(100, 105))),
    )


def _leave_traces(run: Path) -> None:
    run.mkdir(parents=True)
    samples = (
        {"t": t, "memory": 10**6 * t, "cpu": 3.0 * t, "pids": 3, "disk": t} for t in range(1, 200)
    )
    (run / "stats.jsonl").write_text("".join(json.dumps(one) + "\n" for one in samples))
    (run / "run.log").write_text("".join(f"{number} {LINE}\n" for number in range(500)))
    gpus = ({"t": t, "gpu": t % 100, "gpu_memory": 10**8 * t} for t in range(1, 200))
    with (run / "stats.jsonl").open("a") as file:
        file.writelines(json.dumps(one) + "\n" for one in gpus)
    (run / "submission.csv").write_text("id,y\n1,2\n")
    for name in ("record.json", "validations.jsonl", "egress.jsonl", "calls.jsonl"):
        (run / name).write_text("{}\n")
    (run / "transcripts.jsonl.gz").touch()
    for name in ("artefacts", "snapshots"):
        (run / name).mkdir()
