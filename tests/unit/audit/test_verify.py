"""A bundle holds what it claims, or the verification says what does not."""

from __future__ import annotations

import json
import os
import shutil
import signal
import zipfile
from pathlib import Path
from typing import Any

import pytest
from bundles import Edit, GradedRun, edit_json, failed, graded_run, tampered
from command_line import cli, complaint

from pytest_mlebench.audit import verify
from pytest_mlebench.audit.attempt_files import AttemptFiles
from pytest_mlebench.audit.bundle import write_bundle
from pytest_mlebench.audit.claims import Claim, exit_status
from pytest_mlebench.competition import Competition
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.layout import AttemptFolder
from pytest_mlebench.reports.report import Report
from pytest_mlebench.sandbox.kept_files import sums_of

RECORD = "run/tiny/seed1/attempt1/record.json"
SNAPSHOTS = "tiny seed 1 snapshots"
SUBMISSIONS = [f"run/tiny/seed{seed}/attempt1/submission.csv" for seed in (0, 1)]


def _is_found_out(run: GradedRun, bundle: Path) -> bool:
    try:
        return exit_status(run.verify(bundle)) == 1
    except ConfigError as error:
        return bundle.name in str(error)


def test_an_honest_bundle_holds(run: GradedRun, bundle: Path) -> None:
    claims = run.verify(bundle)
    assert {claim.name: claim.verdict for claim in claims} == dict.fromkeys(
        (
            *("manifest", "files", "signature", "attempts", "kept files", "records"),
            *("report", "disclosure"),
            *("tiny seed 0", "tiny seed 0 snapshots", "tiny seed 1", "tiny seed 1 snapshots"),
            *("rates", "conditions", "audit"),
        ),
        "holds",
    )
    assert exit_status(claims) == 0
    assert {claim.name: claim.text for claim in claims}["tiny seed 0"] == "0.5, gold, as claimed"


def test_a_flipped_byte_in_any_file_is_found(run: GradedRun, bundle: Path, tmp_path: Path) -> None:
    content = bundle.read_bytes()
    with zipfile.ZipFile(bundle) as archive:
        infos = archive.infolist()
    broken = tmp_path / "broken.zip"
    for info in infos:
        start = info.header_offset + 30 + len(info.filename)
        for at in (start + 20, start + 20 + info.compress_size // 2):
            flipped = bytearray(content)
            flipped[at] ^= 1
            broken.write_bytes(flipped)
            assert _is_found_out(run, broken), info.filename


def test_files_that_are_unpacked_side_by_side_are_judged_as_others_are(
    run: GradedRun, bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "MIN_SHARED_BYTES", 1)
    assert exit_status(run.verify(bundle, jobs=2)) == 0
    changed = tampered(
        bundle, tmp_path / "t.zip", lambda files: files.update({SUBMISSIONS[1]: b"id,y\n1,2\n"})
    )
    assert {"kept files", "tiny seed 1"} <= failed(run.verify(changed, jobs=2)).keys()


def test_only_what_was_unpacked_is_removed(run: GradedRun, tmp_path: Path) -> None:
    (result, *_) = Report.from_run(run.path, run.registry).results
    inside, outside = tmp_path / "bundle" / "run" / "a", tmp_path / "a"
    for path in (inside, outside):
        path.mkdir(parents=True)
    for path in (inside, outside, inside.parent / ".." / ".." / "a"):
        verify.remove_unpacked(tmp_path / "bundle", AttemptFiles(result, AttemptFolder(path)))
    assert not inside.exists()
    assert outside.is_dir()


def test_a_changed_file_without_its_sum_is_named(
    run: GradedRun, bundle: Path, tmp_path: Path
) -> None:
    def edit(files: dict[str, bytes]) -> None:
        files["run/tiny/seed0/attempt1/run.log"] = b"seed 1\n"
        files["run/extra.txt"] = b"x"
        del files["run/tiny/seed0/attempt1/artefacts/code/main.py"]

    changed = tampered(bundle, tmp_path / "t.zip", edit, honest_sums=False)
    assert failed(run.verify(changed))["files"] == (
        "run/tiny/seed0/attempt1/artefacts/code/main.py is not in the bundle; "
        "run/extra.txt is not in the manifest; run/tiny/seed0/attempt1/run.log was changed"
    )


def _swap(files: dict[str, bytes]) -> None:
    first, second = SUBMISSIONS
    files[first], files[second] = files[second], files[first]


def _remove_attempt(files: dict[str, bytes]) -> None:
    for name in [name for name in files if name.startswith("run/tiny/seed1/")]:
        del files[name]


def _rename_attempt(files: dict[str, bytes]) -> None:
    for name in [name for name in files if name.startswith("run/tiny/seed1/")]:
        files[name.replace("attempt1", "attempt2")] = files.pop(name)


def _better(data: Any) -> None:
    data["grade"] |= {"score": 0.25, "medal": "gold", "percentile": 99.0}


def _better_in_both(files: dict[str, bytes]) -> None:
    edit_json(RECORD, _better)(files)

    def claims(data: Any) -> None:
        _better(data["results"][1])

    edit_json("report.json", claims)(files)


def _better_on_the_way(data: Any) -> None:
    data["snapshots"][0]["score"] = 0.25


def _kept_elsewhere(data: Any) -> None:
    data["snapshots"][0]["sha256"] = "../submission"


def _better_rates(data: Any) -> None:
    data["rates"][0]["any_medal"]["mean"] += 0.01


def _other_conditions(data: Any) -> None:
    data["comparability"]["reasons"] = []


def _other_page(files: dict[str, bytes]) -> None:
    files["disclosure.md"] = files["disclosure.md"].replace(b"bronze", b"silver", 1)


def _other_disclosure(data: Any) -> None:
    data["disclosure"] |= {"agent": "another", "llms": ["gpt-9"], "hardware": {"cpu": "big"}}


def _no_costs(data: Any) -> None:
    data |= {"costs": None, "curves": None}


def _clean_rate(data: Any) -> None:
    data["any_medal_without_flagged"] = {"custom": {"mean": 100.0}}


def _no_audit_at_all(files: dict[str, bytes]) -> None:
    del files["run/audit.json"]


def _other_text(name: str) -> Edit:
    return lambda files: files.__setitem__(f"run/tiny/seed0/attempt1/{name}", b"print('best')\n")


@pytest.mark.parametrize(
    ("edit", "claim", "words"),
    [
        (_swap, "tiny seed 0", "score 0.5 claimed, 2.5 found; medal gold claimed, bronze found"),
        (_remove_attempt, "records", "the records tell otherwise of tiny seed 1"),
        (_rename_attempt, "attempts", "not in the bundle: tiny/seed1/attempt1"),
        (_better_in_both, "tiny seed 1", "score 0.25 claimed, 2.5 found"),
        (edit_json(RECORD, _better), "records", "the records tell otherwise of tiny seed 1"),
        (edit_json(RECORD, _better_on_the_way), SNAPSHOTS, ": 0.25 claimed, 3.5 found"),
        (edit_json(RECORD, _kept_elsewhere), SNAPSHOTS, "../submi is not there"),
        (edit_json("report.json", _better_rates), "rates", "other rates for mine custom"),
        (edit_json("report.json", _other_conditions), "conditions", "the records say: not"),
        (_other_page, "disclosure", "the run gives another: its text"),
        (lambda files: files.pop("disclosure.md"), "disclosure", "the run gives another"),
        (
            edit_json("report.json", _other_disclosure),
            *("report", "disclosure.agent, disclosure.hardware, disclosure.llms"),
        ),
        (edit_json("report.json", _no_costs), "report", "the run gives another: costs, curves"),
        (edit_json("report.json", lambda data: data.update(x=1)), "report", "another: x"),
        (edit_json("report.json", lambda data: data.update(audit=None)), "report", "audit"),
        (edit_json("report.json", _clean_rate), "report", "any_medal_without_flagged.custom"),
        (edit_json("report.json", lambda data: data), "report", "another: its layout"),
        (_no_audit_at_all, "report", "the run gives another: audit"),
        (edit_json("run/audit.json", lambda data: data.clear()), "records", "cannot be read"),
        (edit_json("run/audit.json", lambda data: data.update(attempts=[])), "report", "audit"),
        (_other_text("artefacts/code/main.py"), "kept files", "code of tiny/seed0/attempt1"),
        (_other_text("run.log"), "kept files", "not what was collected: logs of tiny/seed0"),
        (_other_text("egress.jsonl"), "kept files", "not what was collected: logs of tiny/seed0"),
        (edit_json(RECORD, lambda data: data.clear()), "records", "cannot be read: run/tiny"),
        (edit_json(RECORD, lambda data: data.update(seed={})), "records", "cannot be read"),
    ],
)
def test_a_forger_who_puts_the_sums_right_is_found_out(
    run: GradedRun, bundle: Path, tmp_path: Path, edit: Edit, claim: str, words: str
) -> None:
    claims = run.verify(tampered(bundle, tmp_path / "t.zip", edit))
    assert words in failed(claims)[claim]
    assert exit_status(claims) == 1


def _innocent(files: dict[str, bytes]) -> None:
    """Take every finding out of the audit and of the texts that are made of it."""

    def empty(data: Any) -> None:
        for attempt in data["attempts"]:
            for check in attempt["checks"]:
                check["findings"] = []

    edit_json("run/audit.json", empty)(files)
    edit_json("report.json", lambda data: empty(data["audit"]))(files)


def _other_figure(files: dict[str, bytes]) -> None:
    edit_json("run/audit.json", lambda data: data["attempts"][0]["figures"].update(docstrings=1.0))(
        files
    )


@pytest.fixture(scope="module")
def suspicious(tmp_path_factory: pytest.TempPathFactory) -> tuple[GradedRun, Path]:
    """Return a run whose audit has findings, and its bundle."""
    run = graded_run(tmp_path_factory.mktemp("suspicious"))
    attempt = run.path / "tiny" / "seed0" / "attempt1"
    (attempt / "artefacts" / "code" / "main.py").write_text("import openai\n")
    _put_sums_right(attempt)
    run.audit()
    path = run.path.parent / "b.zip"
    write_bundle(run.path, path, run.registry)
    assert exit_status(run.verify(path)) == 0
    return run, path


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (_innocent, "tiny seed 0: not claimed: the solution's code calls a model's interface"),
        (_other_figure, "tiny seed 0: other figures: docstrings"),
        (
            edit_json("run/audit.json", lambda data: data["attempts"][1].update(digest="0")),
            "tiny seed 1: other files were audited",
        ),
        (
            edit_json("run/audit.json", lambda data: data["attempts"][1].update(seed=7)),
            "tiny seed 7: there is no such attempt",
        ),
    ],
)
def test_the_facts_of_an_audit_are_looked_for_anew(
    suspicious: tuple[GradedRun, Path], tmp_path: Path, edit: Edit, words: str
) -> None:
    run, bundle = suspicious
    claims = run.verify(tampered(bundle, tmp_path / "t.zip", edit))
    assert words in failed(claims)["audit"]


def _without_sums(files: dict[str, bytes]) -> None:
    edit_json(RECORD, lambda data: data.pop("sums"))(files)


def test_what_is_not_claimed_is_not_checked_and_never_taken_for_good(
    run: GradedRun, bundle: Path, tmp_path: Path
) -> None:
    def never_audited(files: dict[str, bytes]) -> None:
        del files["run/audit.json"]
        edit_json("report.json", lambda data: data.update(audit=None))(files)

    for edit, name, words in (
        (never_audited, "audit", "the run was not audited"),
        (_without_sums, "kept files", "no sums in the records of tiny/seed1/attempt1"),
    ):
        claims = run.verify(tampered(bundle, tmp_path / "t.zip", edit))
        assert {claim.name: claim.text for claim in claims if claim.verdict == "unchecked"} == {
            name: words
        }
        assert exit_status(claims) != 0


def _killed(competition: Competition, submission: Path, private: Path) -> float:
    """Grade as usual, but for one submission, whose process the kernel kills."""
    if "seed1" in submission.parts and submission.name == "submission.csv":
        os.kill(os.getpid(), signal.SIGKILL)
    return competition.score(submission, private)


def test_a_killed_process_leaves_only_its_own_submission_unchecked(
    run: GradedRun, bundle: Path
) -> None:
    claims = run.verify(bundle, jobs=2, score=_killed)
    problem = "the process that graded it was killed: try again, perhaps with fewer --jobs"
    assert [(claim.name, claim.text) for claim in claims if claim.verdict != "holds"] == [
        ("tiny seed 1", problem)
    ]


def test_submissions_are_graded_behind_walls(
    run: GradedRun, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Competition, "score", None)  # not in this process
    assert exit_status(run.verify(bundle)) == 0


def test_without_data_it_says_what_could_not_be_checked(
    run: GradedRun, tmp_path: Path, bundle: Path
) -> None:
    (tmp_path / "competitions").mkdir()
    folder = tmp_path / "competitions" / "tiny"
    shutil.copytree(run.registry.load("tiny").folder, folder)
    text = (folder / "competition.toml").read_text()
    (folder / "competition.toml").write_text(text.replace('source = "generated"\n', ""))
    other = type(run.registry)([tmp_path / "competitions"])
    claims = run.verify(bundle, registry=other, store=tmp_path / "empty")
    unchecked = [claim.text for claim in claims if claim.verdict == "unchecked"]
    lacking = [f"tiny is not prepared in {tmp_path / 'empty'}"] * 4
    assert unchecked == [*lacking, "tiny is not prepared here"]
    assert exit_status(claims) == 3


def test_what_was_interrupted_continues(run: GradedRun, bundle: Path) -> None:
    def stop(done: int, of: int) -> None:
        raise KeyboardInterrupt(f"{done} of {of}")

    with pytest.raises(KeyboardInterrupt, match="1 of 4"):
        run.verify(bundle, progress=stop)
    seen: list[tuple[int, int]] = []
    claims = run.verify(bundle, progress=lambda done, of: seen.append((done, of)))
    assert seen == [(2, 4), (3, 4), (4, 4)]
    assert exit_status(claims) == 0
    assert not list((run.store / ".verify").iterdir())


def test_an_audit_without_its_logs_is_not_checked(tmp_path: Path) -> None:
    run = graded_run(tmp_path, (0.5,))
    attempt = run.path / "tiny" / "seed0" / "attempt1"
    (attempt / "run.log").write_text("cat prepared/private/test.csv\n")
    _put_sums_right(attempt)
    run.audit()
    for logs, verdict in ((True, "holds"), (False, "unchecked")):
        write_bundle(run.path, tmp_path / "b.zip", run.registry, logs=logs)
        (claim,) = [each for each in run.verify(tmp_path / "b.zip") if each.verdict != "holds"] or [
            Claim("audit", "holds", "")
        ]
        assert (claim.name, claim.verdict) == ("audit", verdict)
    assert claim.text == "the logs are not in the bundle"


def _put_sums_right(attempt: Path) -> None:
    """Note in a record what its files are now, as collection does."""
    record = attempt / "record.json"
    data = json.loads(record.read_text())
    record.write_text(json.dumps(data | {"sums": sums_of(AttemptFolder(attempt))}))


def test_the_commands_bundle_and_verify(run: GradedRun, tmp_path: Path) -> None:
    out = tmp_path / "b.zip"
    mine = ("--competitions", run.registry.roots[1])
    done = cli("bundle", run.path, "-o", out, *mine)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"wrote {out}: 14 files, ")
    done = cli("verify", out, *mine, "--data-dir", run.store, "--jobs", "2")
    assert (done.returncode, done.stderr) == (0, "")
    assert "ok          tiny seed 1: 2.5, bronze, as claimed" in done.stdout
    assert done.stdout.splitlines()[-1] == "15 ok"
    forged = tampered(out, tmp_path / "f.zip", _swap)
    done = cli("verify", forged, *mine, "--data-dir", run.store, "--json")
    data = json.loads(done.stdout)
    assert (done.returncode, data["verified"]) == (1, False)
    assert "not the folder of a run" in complaint("bundle", tmp_path, "-o", tmp_path / "x.zip")
    assert "--jobs must be positive" in complaint("verify", out, "--jobs", "0")


def test_a_small_bundle_is_unpacked_in_memory_where_there_is_plenty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    assert verify.scratch_place(0, tmp_path) == tmp_path
    assert verify.scratch_place(verify.MAX_MEMORY_BYTES + 1, tmp_path) is None
    assert (
        verify.scratch_place(shutil.disk_usage(tmp_path).free // verify.MEMORY_PARTS + 1, tmp_path)
        is None
    )
    assert verify.scratch_place(0, tmp_path / "none") is None
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert verify.scratch_place(0, tmp_path) is None
