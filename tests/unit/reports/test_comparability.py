"""What a report is comparable with is computed from what is known, and from nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from attempt_folders import write_attempt, write_run
from reporting import REAL_REPORTS, graded

from pytest_mlebench.attempts.record import Conditions
from pytest_mlebench.limits import STANDARD
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.comparability import VERSION, gpus_text, planned_sentence
from pytest_mlebench.reports.compare import compare, comparison_lines
from pytest_mlebench.reports.disclosure import Disclosure
from pytest_mlebench.reports.report import Report
from pytest_mlebench.reports.results import Result
from pytest_mlebench.sandbox import Ending

REGISTRY = Registry()
A10 = {"id": "1", "name": "NVIDIA A10", "memory_bytes": 23_696 * 2**20}
H100 = {"id": "2", "name": "NVIDIA H100 80GB HBM3", "memory_bytes": 81_559 * 2**20}
LOW = REGISTRY.split("low")
BEST = Disclosure(
    sandbox="docker",
    network="allow:pypi.org",
    description="kaggle",
    limits=STANDARD.describe(),
    gpus=("1 x NVIDIA A10 (25GB)",),
    attempts={"made": 66, "sessions": 1},
    benchmark=VERSION,
    fingerprint="abc",
    data=dict.fromkeys(LOW, "checksums"),
)


def _report(seeds: int = 3, names: tuple[str, ...] = LOW, **changes: Any) -> Report:
    results = [graded(name, seed) for name in names for seed in range(seeds)]
    return Report.of(results, registry=REGISTRY, disclosure=replace(BEST, **changes))


def _limits(**changes: Any) -> dict[str, str]:
    return replace(STANDARD, **changes).describe()


def test_the_conditions_of_the_benchmark_are_standard() -> None:
    found = _report().comparability
    assert found.reasons == ()
    assert found.sentence == "standard MLE-bench conditions"
    assert found.guarantees == ("answers were never in reach: docker, allow:pypi.org",)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"limits": _limits(time_seconds=43_200)}, "time 12h instead of 24h"),
        ({"limits": _limits(cpus=64)}, "cpus 64 instead of 36"),
        ({"limits": _limits(memory_bytes=500 * 10**9)}, "memory 500GB instead of 440GB"),
        (
            {"gpus": ("2 x NVIDIA H100 80GB HBM3 (86GB)",)},
            "GPU 2 x NVIDIA H100 80GB HBM3 (86GB) instead of 1 x NVIDIA A10 (24GB)",
        ),
        (
            {"gpus": ("1 x NVIDIA A10 (25GB)", "1 x NVIDIA L4 (24GB)")},
            "GPU 1 x NVIDIA A10 (25GB), 1 x NVIDIA L4 (24GB) instead of 1 x NVIDIA A10 (24GB)",
        ),
        ({"gpus": (), "limits": _limits(gpus=0)}, "GPU none instead of 1 x NVIDIA A10 (24GB)"),
        ({"gpus": ()}, "not known: GPU"),
        ({"description": "ours"}, "description ours instead of kaggle"),
        ({"description": "obfuscated"}, "description obfuscated instead of kaggle"),
        ({"benchmark": "v2"}, "benchmark version v2 instead of v1"),
        ({"benchmark": None, "network": None}, "not known: network, benchmark version"),
        ({"seeds": 2}, "seeds 2 instead of 3 or more"),
        ({"names": LOW[1:]}, "competitions 21 of 22 of low"),
        (
            {"data": {**BEST.data, LOW[0]: "off"}},
            "data not verified by checksums in 1 of 22 competitions",
        ),
        ({"data": {}}, "not known: data"),
        ({"attempts": {}}, "not known: attempts"),
        (
            {"attempts": {"made": 70, "superseded": 4}},
            "agent 4 attempts were replaced after the agent or conditions had changed",
        ),
        ({"fingerprint": "abc, def"}, "agent several versions or agents took part"),
    ],
)
def test_every_deviation_is_a_reason(changes: dict[str, Any], reason: str) -> None:
    seeds, names = changes.pop("seeds", 3), changes.pop("names", LOW)
    found = _report(seeds, names, **changes).comparability
    assert found.reasons == (reason,)
    assert found.sentence == f"not standard: {reason}"


def test_competitions_outside_the_benchmark_and_missing_runs_are_reasons() -> None:
    report = _report(names=(*LOW, "demo-digits"))
    report = replace(report, results=(*report.results[:-1], Result("demo-digits", 2, "error")))
    assert report.comparability.reasons[:2] == (
        "missing runs 1 of 69",
        "competitions low, 1 outside the benchmark",
    )


def test_of_files_that_others_graded_nearly_nothing_is_known() -> None:
    found = Report.from_reference(REAL_REPORTS).comparability
    assert found.reasons == (
        "not known: time, cpus, memory, GPU, network, description, benchmark version, data, "
        "attempts",
    )
    assert found.guarantees == ("nothing is known about what the agent could read",)


def test_what_the_author_says_is_marked_as_that() -> None:
    found = _report(llms=("gpt-5", "o3"), statement="no test labels").comparability
    assert found.statements == (("llms", "gpt-5, o3"), ("statement", "no test labels"))
    assert found.missing_statements == ("url", "paper")
    assert "llms, by the author's own word: gpt-5, o3" in found.lines()


def test_lines_fit_a_terminal() -> None:
    report = _report(1, LOW[:2], limits=_limits(cpus=2, gpus=0), statement="word " * 60)
    assert max(map(len, report.comparability.lines())) <= 80


@pytest.mark.parametrize(
    ("sandbox", "network", "unconfined", "words"),
    [
        ("docker", "none", 0, "never in reach: docker, no network"),
        ("docker", "open", 0, "docker, open network (what the agent fetched is not known)"),
        ("process", "open", 0, "never in reach: processes behind walls, network open"),
        (
            "process",
            "open",
            2,
            "no guarantee about the answers: processes without walls around files",
        ),
    ],
)
def test_guarantees_are_those_of_the_sandbox(
    sandbox: str, network: str, unconfined: int, words: str
) -> None:
    attempts = {"made": 66, "unconfined": unconfined}
    found = _report(sandbox=sandbox, network=network, attempts=attempts).comparability
    assert words in found.guarantees[0]


def test_two_runs_of_one_class_are_compared_without_a_warning() -> None:
    assert compare(_report(), _report(agent="other", seeds=3)).warning is None


def test_runs_that_are_not_of_one_class_get_a_warning() -> None:
    comparison = compare(_report(), _report(limits=_limits(time_seconds=43_200), gpus=()))
    assert comparison.warning == (
        "A and B are not known to be of one class: time 24h against 12h; "
        "GPU 1 x NVIDIA A10 (25GB) against not known"
    )
    texts = [line.text for line in comparison_lines(comparison)]
    assert any(text.startswith("warning: A and B are not") for text in texts)
    assert max(map(len, texts)) <= 80


def test_conditions_come_from_the_records_of_attempts(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", ("a", 0), ("b", 0))
    conditions = Conditions(sandbox="process", network="open", limits=STANDARD, gpus=(A10, A10))
    confined = Ending("exited", 0, 7.5, walls=("mounts", "pids"))
    write_attempt(folder, "a", 0, "error", conditions=conditions, ending=None)
    write_attempt(folder, "a", 0, "graded", 2, conditions=conditions, ending=confined)
    other = replace(conditions, gpus=(A10, H100))
    write_attempt(folder, "b", 0, "graded", conditions=other, ending=confined, session="second")
    found = Report.from_run(folder.path).disclosure
    assert found.gpus == (
        "2 x NVIDIA A10 (25GB)",
        "1 x NVIDIA A10 (25GB) + 1 x NVIDIA H100 80GB HBM3 (86GB)",
    )
    assert found.attempts == {
        "made": 3,
        "repeated": 1,
        "superseded": 0,
        "sessions": 2,
        "unconfined": 0,
    }


def test_no_gpus_have_no_name() -> None:
    assert gpus_text(()) is None


def test_the_statement_survives_the_way_to_a_file_and_back(tmp_path: Path) -> None:
    report = _report(llms=("gpt-5",), url="https://x.org", attempts={"made": 66, "sessions": 2})
    report.write(tmp_path / "r.json")
    assert Report.read(tmp_path / "r.json").comparability == report.comparability


@pytest.mark.parametrize("suffix", [".md", ".html"])
def test_pages_state_the_conditions(tmp_path: Path, suffix: str) -> None:
    report = _report(limits=_limits(cpus=2), statement="<b>trust me</b>")
    report.write(tmp_path / f"r{suffix}")
    text = (tmp_path / f"r{suffix}").read_text()
    assert "cpus 2 instead of 36" in text
    assert "<b>trust me</b>" not in text


def test_a_header_says_what_is_known_before_anything_has_run() -> None:
    plan = replace(BEST, gpus=(), data={}, attempts={})
    assert planned_sentence(plan) == "standard MLE-bench conditions"
    plan = replace(plan, description="ours", limits=_limits(time_seconds=3600))
    assert planned_sentence(plan) == (
        "not standard: time 1h instead of 24h; description ours instead of kaggle"
    )
