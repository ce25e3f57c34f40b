"""The folder of a run as results."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from attempt_folders import AGENT, IDENTITY, write_attempt, write_run
from reporting import failed, graded

from pytest_mlebench.attempts.identity import Identity
from pytest_mlebench.attempts.record import Conditions
from pytest_mlebench.attempts.run_results import settle
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.layout import RunFolder
from pytest_mlebench.limits import STANDARD
from pytest_mlebench.medals import Medal
from pytest_mlebench.reports.disclosure import Disclosure
from pytest_mlebench.reports.report import Report
from pytest_mlebench.reports.results import ItemKey, Result

LEAF = "leaf-classification"
EXPECTED = [(i, seed) for i in (LEAF, "AI4Code") for seed in (0, 1)]
OTHER = Identity({**IDENTITY.facts, "agent.files": "b" * 64})


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return write_run(tmp_path / "run", *EXPECTED)


def statuses(report: Report) -> list[tuple[str, int, str]]:
    return [(result.competition, result.seed, result.status) for result in report.results]


def test_every_status_is_reported(folder: RunFolder) -> None:
    write_attempt(folder, LEAF, 0, "graded", grade=graded(LEAF).grade)
    write_attempt(folder, LEAF, 1, "graded", grade=failed(LEAF).grade)
    write_attempt(folder, "AI4Code", 0, "error")
    write_attempt(folder, "AI4Code", 1, "running")
    report = Report.from_run(folder.path)
    assert statuses(report) == [
        (LEAF, 0, "graded"),
        (LEAF, 1, "failed"),
        ("AI4Code", 0, "error"),
        ("AI4Code", 1, "missing"),
    ]
    assert report.results[3].problem == "interrupted: the attempt was left 'running'"
    assert report.results[0].run == str(folder.path / LEAF / "seed0/attempt1")
    assert report.results[0].fingerprint == IDENTITY.fingerprint
    assert (report.format_checks, report.results[0].agent_seconds) == (12, 7.5)


def test_the_newest_graded_attempt_counts(folder: RunFolder) -> None:
    for number, medal in ((2, Medal.SILVER), (10, Medal.GOLD)):
        grade = graded(LEAF, medal=medal).grade
        write_attempt(folder, LEAF, 0, "graded", number, grade=grade)
    write_attempt(folder, LEAF, 0, "error", 11)
    assert Report.from_run(folder.path).results[0].medal is Medal.GOLD


def test_what_never_began_is_missing(folder: RunFolder) -> None:
    report = Report.load([folder.path])
    assert [result.status for result in report.results] == ["missing"] * 4
    assert report.rates[0].rates["any_medal"].mean == 0


def test_what_another_version_of_the_agent_did_does_not_count(folder: RunFolder) -> None:
    gold = graded(LEAF, medal=Medal.GOLD).grade
    write_attempt(folder, LEAF, 0, "graded", grade=gold, superseded=True)
    assert statuses(Report.from_run(folder.path))[0] == (LEAF, 0, "missing")
    silver = graded(LEAF, medal=Medal.SILVER).grade
    write_attempt(folder, LEAF, 0, "graded", 2, grade=silver, identity=OTHER)
    assert Report.from_run(folder.path).results[0].medal is Medal.SILVER


def test_an_attempt_under_other_conditions_is_a_result_of_its_own(folder: RunFolder) -> None:
    short = ItemKey(LEAF, 0, AGENT, "time 1s")
    write_attempt(folder, LEAF, 0, "graded", grade=graded(LEAF, medal=Medal.GOLD).grade)
    write_attempt(
        folder, LEAF, 0, "graded", 2, grade=failed(LEAF).grade, item=short, identity=OTHER
    )
    report = Report.from_run(folder.path)
    found = {(r.conditions, r.medal) for r in report.results if r.seed == 0 and r.grade}
    assert found == {("", Medal.GOLD), ("time 1s", Medal.NONE)}
    assert [len(block) for block in report.blocks] == [4, 1]


def test_the_disclosure_is_derived_from_the_attempts(folder: RunFolder) -> None:
    short = replace(STANDARD, time_seconds=3600)
    for seed, limits in ((0, STANDARD), (1, short)):
        conditions = Conditions(agent_version=f"1.{seed}", sandbox="docker", limits=limits)
        write_attempt(folder, LEAF, seed, "graded", grade=failed(LEAF).grade, conditions=conditions)
    disclosure = Report.from_run(folder.path).disclosure
    assert (disclosure.agent, disclosure.agent_version) == (AGENT, "1.0, 1.1")
    assert (disclosure.image, disclosure.sandbox) == ("sha256:1", "docker")
    assert disclosure.fingerprint == IDENTITY.agent_fingerprint
    assert disclosure.limits["time"] == "24h, 1h"
    assert disclosure.deviations == {"time": ("1h", "24h")}


def test_the_version_of_the_benchmark_is_known_of_verified_data_only(tmp_path: Path) -> None:
    for number, (data, version) in enumerate((("checksums", "v1"), ("off", None))):
        folder = write_run(
            tmp_path / str(number), ("a", 0), disclosure=Disclosure(benchmark="v1", splits=())
        )
        write_attempt(
            folder, "a", 0, "graded", grade=graded("a").grade, conditions=Conditions(data=data)
        )
        assert Report.from_run(folder.path).disclosure.benchmark == version


def result(key: ItemKey, status: str, agent: str, fingerprint: str | None = None) -> Result:
    found = graded(key.competition, key.seed) if status == "graded" else None
    grade = None if found is None else found.grade
    return Result(
        key.competition,
        key.seed,
        status,  # type: ignore[arg-type]  # a test's own word
        grade,
        agent=agent,
        fingerprint=fingerprint,
    )


def test_an_agent_of_a_fixture_is_reported_by_its_own_name() -> None:
    first, second = (ItemKey("a", seed, "mle_agent of tests") for seed in (0, 1))
    settled = settle([first, second], [(first, result(first, "graded", "mine", "f1"))])
    assert [(r.agent, r.status) for r in settled] == [("mine", "graded"), ("mine", "missing")]


def test_two_agents_of_one_name_are_not_added_up() -> None:
    ours, theirs = ItemKey("a", 0, "mine"), ItemKey("a", 0, "mle_agent of tests")
    settled = settle(
        [ours, theirs],
        [
            (ours, result(ours, "graded", "mine", "f1")),
            (theirs, result(theirs, "graded", "mine", "f2")),
        ],
    )
    assert [r.agent for r in settled] == ["mine", "mine [mle_agent of tests]"]


def test_conditions_that_collection_cannot_know_make_results_of_their_own() -> None:
    key = ItemKey("a", 0, "mine")
    found = [(key, result(key, "graded", "mine", name)) for name in ("f1", "f2")]
    assert [r.conditions for r in settle([key], found)] == ["", "#f2"]


def test_a_lost_worker_is_an_error_whatever_its_attempt_had_recorded() -> None:
    key = ItemKey("a", 0, "mine")
    found = [(key, result(key, "missing", "mine", "f1")), (key, result(key, "error", "mine"))]
    assert [r.status for r in settle([key], found)] == ["error"]


def test_a_damaged_record_is_named_and_left_alone(folder: RunFolder) -> None:
    run = write_attempt(folder, "AI4Code", 0, "graded", grade=graded("AI4Code").grade)
    record = run.folder / "record.json"
    for damage in (record.read_text()[:-40], record.read_text().replace('"medal"', '"metal"')):
        record.write_text(damage)
        with pytest.raises(ConfigError, match=r"AI4Code/seed0/attempt1/record.json: cannot be rea"):
            Report.from_run(folder.path)
        assert record.read_text() == damage


def test_a_record_of_a_later_version_names_both_versions(folder: RunFolder) -> None:
    run = write_attempt(folder, "AI4Code", 0, "graded", grade=graded("AI4Code").grade)
    record = run.folder / "record.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | {"schema": 7}))
    with pytest.raises(ConfigError, match="has schema 7, this version reads 1 and 2"):
        Report.from_run(folder.path)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ("{}", r"run\.json: has schema None, this version reads 1 and 2"),
        ('{"schema": 1}', r"run\.json: disclosure: must be an object"),
        ('{"schema": 1, "disclosure": {}}', r"run\.json: expected must be a list, given: NoneType"),
        (
            '{"schema": 1, "disclosure": {}, "expected": [["a"]]}',
            r"run\.json: expected\[0\]: must be an object, given: list",
        ),
        ('{"schema": 2, "disclosure": {}, "expected": []}', r"run\.json: agent is missing"),
        ("[", r"run\.json: not valid JSON"),
    ],
)
def test_a_damaged_plan_is_refused(tmp_path: Path, plan: str, message: str) -> None:
    (tmp_path / "run.json").write_text(plan)
    with pytest.raises(ConfigError, match=message):
        Report.from_run(tmp_path)


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"not the folder of a run \(it has no run\.json\)"):
        Report.from_run(tmp_path)
