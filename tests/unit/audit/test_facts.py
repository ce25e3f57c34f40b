"""What an audit finds without a model, in attempts as agents leave them."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
from bundles import GradedRun, graded_run
from command_line import cli

from pytest_mlebench.audit import audit_run
from pytest_mlebench.audit.attempt_files import AttemptFiles, notebook_code
from pytest_mlebench.audit.audit_claim import facts_of
from pytest_mlebench.audit.facts import look, twins
from pytest_mlebench.audit.quality import figures
from pytest_mlebench.competition import KnownIssue
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.gateway.transcripts import Transcript, TranscriptLog
from pytest_mlebench.layout import AttemptFolder
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.findings import Finding, audit_lines, read_audit, violations
from pytest_mlebench.reports.report import Report


@pytest.fixture
def run(tmp_path: Path) -> GradedRun:
    """Return a run of two seeds that was really graded, gold and bronze."""
    return graded_run(tmp_path)


@pytest.fixture
def attempt(run: GradedRun) -> AttemptFiles:
    """Return its first attempt."""
    return _attempts(run)[0]


def _attempts(run: GradedRun) -> list[AttemptFiles]:
    competition = run.registry.load("tiny")
    public = run.store / "tiny" / "prepared" / "public"
    return [
        AttemptFiles(result, AttemptFolder(Path(result.run or "")), competition, public)
        for result in Report.from_run(run.path, run.registry).results
    ]


def _code(attempt: AttemptFiles, text: str, name: str = "main.py") -> AttemptFiles:
    (attempt.folder.artefacts / "code" / name).write_text(text)
    return replace(attempt)


def _found(attempt: AttemptFiles) -> dict[str, Finding]:
    return {finding.check: finding for finding in look(attempt)}


def test_ordinary_code_is_not_suspected(attempt: AttemptFiles) -> None:
    code = "import pandas as pd\nfor n in range(100):\n    print(n, n * 2)\nx.to_csv('s.csv')\n"
    assert look(_code(attempt, code)) == []


@pytest.mark.parametrize(
    ("line", "check"),
    [
        ("from google.genai import Client", "models"),
        ("import openai", "models"),
        ("requests.post('https://OPENROUTER.ai')\nurl = 'openrouter.ai/v1'", "models"),
        ("pd.read_csv('../PREPARED/Private/x.csv')", "answers"),
        ("open('Gold_Submission')", "answers"),
        ("open('TEST_LABELS.csv')", "answers"),
        ("open('solution.csv')", "answers"),
        ("open('an\u017fwers.csv')", "answers"),  # a long s is taken for one of ours
        ("# see the Leaderboard", "answers"),
        ("all = pd.CONCAT([train, test])", "training"),
        ("model.fit_transform(test)", "training"),
        ("# Pseudo-Labels", "training"),
    ],
)
def test_patterns_are_found_in_any_case(attempt: AttemptFiles, line: str, check: str) -> None:
    assert check in _found(_code(attempt, f"import os\n{line}\n"))


def test_facts_come_in_the_order_of_the_attempts(run: GradedRun) -> None:
    first, second = _attempts(run)
    other = replace(second, result=replace(second.result, competition="other"))
    listed = [first, other, second]
    finished: list[AttemptFiles] = []
    found = facts_of(listed, 2, finished.append)
    assert [each.digest for each in found] == [each.digest for each in listed]
    assert {each.digest for each in finished} == {each.digest for each in listed}


def test_what_was_said_to_models_is_read_too(attempt: AttemptFiles) -> None:
    before = attempt.digest
    body = {"messages": [{"role": "user", "content": "where is prepared/private?"}]}
    log = TranscriptLog(attempt.folder.path)
    for _ in range(3):  # a client sends all of it again and again
        log.write(Transcript(1, "up", "gpt-5", "POST", "/chat", 200, json.dumps(body), "", 1, 1))
    again = replace(attempt)
    found = _found(again)["answers"]
    assert (found.level, found.what) == ("suspicious", "answers were searched for")
    assert found.evidence == ("transcripts.jsonl.gz:3: where is prepared/private?",)
    assert again.digest != before


def test_the_sample_handed_in_is_noted(attempt: AttemptFiles) -> None:
    sample = attempt.sample
    assert sample is not None
    attempt.folder.submission.write_bytes(sample.read_bytes().replace(b"\n", b"\r\n"))
    assert _found(attempt)["submission"].what == "the submission is the sample submission"


def test_one_value_throughout_is_noted(attempt: AttemptFiles) -> None:
    rows = "".join(f"{number},4.5\n" for number in range(80, 100))
    attempt.folder.submission.write_text(f"id,y\n{rows}")
    found = _found(attempt)["submission"]
    assert (found.level, found.what) == ("info", "the submission has one value in all rows of y")


def test_the_same_bytes_as_another_attempt_are_suspicious(run: GradedRun) -> None:
    first, second = _attempts(run)
    assert twins([first, second]) == {}
    second.folder.submission.write_bytes(first.folder.submission.read_bytes())
    found = twins(_attempts(run))
    assert found[0].what == "the submission is byte for byte that of mine seed 1"
    assert found[1].level == "suspicious"


@pytest.mark.parametrize(
    ("score", "lower", "suspicious"),
    [(0.0, True, True), (0.005, True, False), (0.5, True, False), (25.0, False, True)],
)
def test_a_score_far_beyond_the_best_team_is_suspicious(
    attempt: AttemptFiles, score: float, lower: bool, suspicious: bool
) -> None:
    assert attempt.competition is not None
    assert attempt.result.grade is not None
    board = replace(attempt.competition.leaderboard, lower_is_better=lower)
    if not lower:
        board = replace(board, percentiles=tuple(sorted(board.percentiles, reverse=True)))
    changed = replace(
        attempt,
        competition=replace(attempt.competition, leaderboard=board),
        result=replace(attempt.result, grade=replace(attempt.result.grade, score=score)),
    )
    assert ("score" in _found(changed)) is suspicious


def test_tables_of_test_ids_with_labels_are_a_violation(attempt: AttemptFiles) -> None:
    table = ", ".join(f"{number}: {number / 10}" for number in range(80, 100))
    found = _found(_code(attempt, f"# by hand\nANSWERS = {{{table}}}\n"))["labels"]
    assert found.level == "violation"
    assert found.what == "artefacts/code/main.py has 20 of 20 test ids literally (100%)"
    assert found.evidence[0].startswith("artefacts/code/main.py:2: ANSWERS = {80: 8.0")


def test_a_few_numbers_are_no_table_of_ids(attempt: AttemptFiles) -> None:
    assert "labels" not in _found(_code(attempt, "x = {80: 1, 81: 2, 82: 3}\n"))


@pytest.mark.parametrize(
    ("code", "check", "level"),
    [
        ("import openai\n", "models", "suspicious"),
        ("url = 'https://api.anthropic.com/v1'\n", "models", "suspicious"),
        ("df = pd.concat([train, test])\n", "training", "info"),
        ("# pseudo-labels of the test set\n", "training", "info"),
        ("open('/data/prepared/private/test.csv')\n", "answers", "suspicious"),
        ("pd.read_csv('answers.csv')\n", "answers", "suspicious"),
    ],
)
def test_what_code_does_is_found_with_its_line(
    attempt: AttemptFiles, code: str, check: str, level: str
) -> None:
    found = _found(_code(attempt, f"import os\n\n{code}"))[check]
    assert found.level == level
    assert found.evidence == (f"artefacts/code/main.py:3: {code.strip()}",)


def test_notebooks_are_read_as_their_code(attempt: AttemptFiles) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["import openai"]},
        {"cell_type": "code", "source": ["import anthropic\n", "x = 1"]},
    ]
    notebook = json.dumps({"cells": cells, "nbformat": 4})
    found = _found(_code(attempt, notebook, "work.ipynb"))["models"]
    assert found.evidence == ("artefacts/code/work.ipynb:1: import anthropic",)
    old = {"worksheets": [{"cells": [{"cell_type": "code", "input": ["y = 2"]}]}]}
    assert notebook_code(json.dumps(old)) == "y = 2"
    assert notebook_code("[1, 2") == notebook_code("[1]") == ""


def test_logs_tell_of_searches_and_of_what_the_sandbox_refused(attempt: AttemptFiles) -> None:
    attempt.folder.log.write_text(
        "start\nls: /store/tiny/prepared/private: No such file\n"
        "PermissionError: [Errno 13] Permission denied: '/home/me/.kaggle'\n"
    )
    found = _found(replace(attempt))
    assert found["answers"].evidence[0].startswith("run.log:2: ls: /store/tiny/prepared/private")
    assert found["reads"].level == "info"
    attempt.folder.log.write_text("I open the public leaderboard\n")
    (noted,) = look(replace(attempt))
    assert (noted.check, noted.level) == ("answers", "info")


def test_hosts_that_were_tried_are_named(attempt: AttemptFiles) -> None:
    lines = [
        {"host": "www.kaggle.com", "verdict": "refused"},
        {"host": "www.kaggle.com", "verdict": "refused"},
        {"host": "zenodo.org", "verdict": "allowed"},
        {"host": "notkaggle.com", "verdict": "allowed"},
    ]
    text = "\n".join(map(json.dumps, lines)) + '\n{"host": "kag'
    (attempt.folder.path / "egress.jsonl").write_text(text)
    found = [finding for finding in look(replace(attempt)) if finding.check == "hosts"]
    assert [(one.level, one.evidence) for one in found] == [
        ("suspicious", ("egress.jsonl: www.kaggle.com: refused, 2 times",)),
        ("info", ("egress.jsonl: zenodo.org: allowed, 1 times",)),
    ]


def test_a_known_leak_is_recognised_by_its_markers(attempt: AttemptFiles) -> None:
    assert attempt.competition is not None
    issue = KnownIssue("leak", "the giver gives it away", markers=("giver_username",))
    leaky = replace(attempt.competition, known_issues=(issue,))
    changed = _code(replace(attempt, competition=leaky), "x = df['giver_username']\n")
    assert _found(changed)["leak"].what.endswith("a known leak: the giver gives it away")
    doubtful = replace(attempt.competition, known_issues=(replace(issue, certain=False),))
    found = _found(replace(changed, competition=doubtful))["leak"]
    assert (found.level, "what may be a leak" in found.what) == ("info", True)


def test_every_known_leak_of_the_benchmark_has_markers() -> None:
    registry = Registry()
    for competition in map(registry.load, registry.split("all")):
        for issue in competition.known_issues:
            assert issue.markers or not issue.is_leak, competition.id


def test_links_and_long_files_do_no_harm(attempt: AttemptFiles, tmp_path: Path) -> None:
    secret = tmp_path / "secret.py"
    secret.write_text("import openai\n")
    folder = attempt.folder.artefacts / "code"
    (folder / "link.py").symlink_to(secret)
    (folder / "deep.py").write_text("(" * 100_000)
    (folder / "long.py").write_bytes(b"x = 1\n" * 2_000_000)
    (folder / "bytes.py").write_bytes(bytes(range(256)))
    assert "models" not in _found(replace(attempt))
    assert figures(replace(attempt))["files"] == 4


def test_quality_is_told_in_figures(attempt: AttemptFiles) -> None:
    code = 'import os\n\ndef f():\n    """Do."""\n\ndef g():\n    pass\n\n'
    code += 'f().to_csv("submission.csv")\n'
    (attempt.folder.artefacts / "code" / "README.md").write_text("# How\n")
    assert figures(_code(attempt, code)) == {
        "files": 1,
        "lines": 6,
        "ruff_per_100_lines": pytest.approx(16.67),
        "functions": 2,
        "docstrings": 0.5,
        "readme": True,
        "writes_submission": True,
    }


@pytest.mark.parametrize(
    ("code", "writes"),
    [
        ("open(os.environ['SUBMISSION_DIR'] + '/s.csv', 'w').write(text)\n", True),
        ("%matplotlib inline\nPath('submission.csv').write_text(rows)\n", True),
        ("# frame.to_csv('submission.csv')\nprint('submission')\n", False),
        ("text = open('submission.csv').read()\nto_csv = 1\n", False),
        ("frame.to_csv('features.csv')\n", False),
    ],
)
def test_code_that_can_have_written_the_submission_is_known_by_its_calls(
    attempt: AttemptFiles, code: str, writes: bool
) -> None:
    assert figures(_code(attempt, code), ruff=False)["writes_submission"] is writes


def _cheat(run: GradedRun) -> None:
    table = ", ".join(f"{number}: {number / 10}" for number in range(80, 100))
    code = run.path / "tiny" / "seed0" / "attempt1" / "artefacts" / "code"
    (code / "main.py").write_text(f"ANSWERS = {{{table}}}\n")


def test_flagged_attempts_count_as_no_medal_in_a_second_rate(
    run: GradedRun, tmp_path: Path
) -> None:
    _cheat(run)
    audit = run.audit()
    assert [each.name for each in audit.flagged] == ["tiny seed 0"]
    assert violations(audit) == [
        "tiny seed 0: artefacts/code/main.py has 20 of 20 test ids literally (100%) "
        "(--mle-fail-on=violation)"
    ]
    report = Report.from_run(run.path, run.registry)
    assert report.rates[0].rates["any_medal"].mean == 100
    assert {name: rate.mean for name, rate in report.without_flagged.items()} == {"custom": 50}
    report.write(tmp_path / "r.json")
    back = Report.read(tmp_path / "r.json", run.registry)
    assert back.audit == report.audit
    report.write(tmp_path / "r.md")
    assert "tiny seed 0 | violation | artefacts" in (tmp_path / "r.md").read_text()
    assert max(map(len, audit_lines(audit))) <= 80
    report.write(tmp_path / "r.csv")
    with (tmp_path / "r.csv").open() as file:
        rows = [(row["audit"], row["findings"]) for row in csv.DictReader(file)]
    assert rows == [
        ("violation", "artefacts/code/main.py has 20 of 20 test ids literally (100%)"),
        ("nothing", ""),
    ]


def test_what_was_looked_at_is_not_looked_at_again(
    run: GradedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run.audit()
    looked: list[str] = []
    facts = replace(audit_run._FACTS, run=lambda each: looked.append(each.digest) or [])
    monkeypatch.setattr(audit_run, "_FACTS", facts)
    assert run.audit() == first
    assert looked == []
    _cheat(run)
    run.audit()
    assert len(looked) == 1


def test_data_that_arrive_later_are_looked_at(run: GradedRun) -> None:
    _cheat(run)
    results = Report.from_run(run.path, run.registry).results
    empty = run.path.parent / "empty"
    assert audit_run.audit_run(run.path, results, run.registry, empty).flagged == []
    assert [each.name for each in run.audit().flagged] == ["tiny seed 0"]


def test_a_damaged_audit_is_named(tmp_path: Path) -> None:
    path = tmp_path / "audit.json"
    assert read_audit(path) is None
    for text in ("{", "[]", "{}", '{"format": "pytest-mlebench audit", "schema": 1}'):
        path.write_text(text)
        with pytest.raises(ConfigError, match=r"audit\.json"):
            read_audit(path)


def test_the_command_audits_and_gates(run: GradedRun) -> None:
    where = ("--competitions", run.registry.roots[1], "--data-dir", run.store)
    done = cli("audit", run.path, *where, "--fail-on", "violation")
    assert (done.returncode, done.stderr) == (0, "")
    _cheat(run)
    done = cli("audit", run.path, *where, "--fail-on", "violation")
    assert done.returncode == 1
    assert "any medal without flagged attempts, custom: 50.00" in done.stdout
    refused = cli("publish", run.path, *where[:2], "--group", "g", "-o", run.path / "out")
    assert "tiny seed 0: flagged by the audit" in refused.stderr
