"""A value that came by ``${VAR}`` is in no file, report or line of a session."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from plugin_session import Session

from pytest_mlebench.attempts.grading_process import score_apart, start_early
from pytest_mlebench.audit.bundle import write_bundle
from pytest_mlebench.audit.verify import Request, verify
from pytest_mlebench.registry import Registry
from pytest_mlebench.store.location import default_store

ONE = "--mle-competition=demo-digits"
SECRET = "sk-very-secret-4711"

HOSTILE = """
    import json, os, sys, urllib.request
    key = os.environ["API_KEY"]
    print("my key is", key)
    for folder in ("LOGS_DIR", "CODE_DIR"):
        with open(os.path.join(os.environ[folder], key + ".txt"), "w") as file:
            file.write(key)
    os.mkdir(os.path.join(os.environ["LOGS_DIR"], "in-" + key))
    os.symlink("nowhere", os.path.join(os.environ["LOGS_DIR"], "link-" + key))
    with open(os.environ["SUBMISSION_DIR"] + "/submission.csv", "w") as file:
        file.write("id," + key + "\\n1,2\\n")
    request = urllib.request.Request(
        os.environ["MLE_VALIDATE_URL"], data=("id," + key + "\\n1,2\\n").encode()
    )
    print(urllib.request.urlopen(request).read().decode())
"""


def test_a_secret_is_masked_wherever_an_agent_writes_it(
    session: Session, workers: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOST_KEY", SECRET)
    session.agent("hostile", HOSTILE)
    (session.path / "agent.toml").write_text(
        'name = "hostile"\ncommand = "python hostile.py"\nenv = { API_KEY = "${HOST_KEY}" }\n'
    )
    result = session.run(
        "--mle-agent=agent.toml",
        "--mle-competition=demo-digits",
        *("--mle-report=r.json", "--mle-report=r.html", "--mle-report=r.md", "--mle-report=r.csv"),
        *("--junitxml=junit.xml", "--mle-audit=on"),
        "-rA",
        "-v",
        *workers,
    )
    result.assert_outcomes(failed=1)
    assert SECRET not in result.stdout.str() + result.stderr.str()
    (record,) = session.path.glob("mle-runs/*/*/*/*/record.json")
    assert "it has 'id', '***'" in record.read_text()
    assert "***" in (record.parent / "validations.jsonl").read_text()
    outside = [session.path / "mle-runs", *session.path.glob("r.*"), session.path / "junit.xml"]
    for top in outside:
        for path in (top, *top.rglob("*")):
            assert SECRET not in path.name
            if path.is_file() and path.name != "submission.csv":
                assert SECRET.encode() not in path.read_bytes(), path
    _bundle_is_true_and_has_no_secret(record.parents[3], session.path / "b.zip")


def _bundle_is_true_and_has_no_secret(run: Path, bundle: Path) -> None:
    """Pack what a real session has left, and verify it as a stranger would."""
    write_bundle(run, bundle, Registry())
    with zipfile.ZipFile(bundle) as archive:
        names = archive.namelist()
        for name in names:
            if not name.endswith("submission.csv"):  # as it was handed in: it is what was graded
                assert SECRET.encode() not in archive.read(name), name
    assert "***" in " ".join(names)
    claims = verify(Request(bundle, Registry(), default_store(), score_apart, start_early))
    assert {claim.name: claim.text for claim in claims if claim.verdict != "holds"} == {}


def test_secrets_stay_out_of_everything_that_is_written(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "s3cr3t-v4lu3")
    (session.path / "agent.toml").write_text(
        "name = 'talker'\n"
        """command = ["python", "-c", "import os; print('key', os.environ['KEY'])"]\n"""
        "[env]\nKEY = '${MY_KEY}'\n"
    )
    result = session.run("--mle-agent=agent.toml", ONE, "--mle-run=talk", "--mle-report=r.json")
    result.assert_outcomes(failed=1)
    written = [path for path in session.path.rglob("*") if path.is_file()]
    logs = [path for path in written if path.name == "run.log"]
    assert "key ***" in logs[0].read_text()
    assert not [path for path in written if b"s3cr3t-v4lu3" in path.read_bytes()]
    assert "s3cr3t-v4lu3" not in result.stdout.str()


def test_a_missing_secret_is_a_usage_error(session: Session) -> None:
    (session.path / "agent.toml").write_text(
        "name = 'talker'\ncommand = 'true'\n[env]\nKEY = '${NOT_SET_ANYWHERE}'\n"
    )
    result = session.run("--mle-agent=agent.toml", ONE)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*needs the environment variable NOT_SET_ANYWHERE*"])
