"""The same mistake has the same exit status everywhere, in the words that were typed."""

from __future__ import annotations

from pathlib import Path

import pytest
from plugin_session import Session

from pytest_mlebench.cli import USAGE_ERROR, main

NEVER_HERE = "spooky-author-identification"

# mistake: for each command what is typed, FILE being a file where a folder should be
MISTAKES = {
    "the data folder is a file": {
        "pytest": ("--mle-agent=dummy", "--mle-data-dir=FILE"),
        "prepare": ("prepare", "demo-digits", "--data-dir=FILE"),
        "list": ("list", "--data-dir=FILE"),
        "validate": ("validate", "FILE", "demo-digits", "--data-dir=FILE"),
        "grade-sample": ("grade-sample", "FILE", "demo-digits", "--data-dir=FILE"),
        "self-check": ("self-check", "--data-dir=FILE"),
        "checksums": ("checksums", "demo-digits", "--data-dir=FILE"),
        "doctor": ("doctor", "--data-dir=FILE"),
    },
    "the folder of runs is a file": {
        "pytest": ("--mle-agent=dummy", "--mle-runs-dir=FILE"),
        "clean": ("clean", "--runs-dir=FILE"),
        "doctor": ("doctor", "--runs-dir=FILE"),
        "view": ("view", "FILE"),
    },
    "the dataset is not prepared": {
        "pytest": (
            *("--mle-agent=dummy", f"--mle-competition={NEVER_HERE}"),
            *("--mle-prepare=never", "--mle-limits=host", "--mle-data-dir=empty"),
        ),
        "validate": ("validate", "FILE", NEVER_HERE, "--data-dir=empty"),
        "grade-sample": ("grade-sample", "FILE", NEVER_HERE, "--data-dir=empty"),
        "self-check": ("self-check", "--data-dir=empty"),
    },
    "the split is empty": {
        "pytest": ("--mle-agent=dummy", "--mle-split="),
        "list": ("list", "--split="),
        "prepare": ("prepare", "--split", ""),
        "self-check": ("self-check", "--split=,"),
    },
    "the data folder is empty": {
        "pytest": ("--mle-agent=dummy", "--mle-data-dir="),
        "list": ("list", "--data-dir="),
        "prepare": ("prepare", "demo-digits", "--data-dir="),
    },
    "the competition is unknown": {
        "pytest": ("--mle-agent=dummy", "--mle-competition=demo-digit"),
        "list": ("list", "demo-digit"),
        "prepare": ("prepare", "demo-digit"),
        "validate": ("validate", "FILE", "demo-digit"),
        "grade-sample": ("grade-sample", "FILE", "demo-digit"),
        "export": ("export", "demo-digit"),
    },
    "the split is unknown": {
        "pytest": ("--mle-agent=dummy", "--mle-split=lwo"),
        "list": ("list", "--split=lwo"),
        "prepare": ("prepare", "--split=lwo"),
        "self-check": ("self-check", "--split=lwo"),
    },
}
CASES = [(mistake, command) for mistake, commands in MISTAKES.items() for command in commands]


@pytest.mark.parametrize(("mistake", "command"), CASES)
def test_a_mistake_has_one_exit_status(
    session: Session,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    mistake: str,
    command: str,
) -> None:
    monkeypatch.chdir(session.path)
    (session.path / "file").write_text("id\n")
    words = [word.replace("FILE", "file") for word in MISTAKES[mistake][command]]
    status = session.run(*words).ret if command == "pytest" else main(words)
    assert status == USAGE_ERROR
    text = capsys.readouterr().err
    assert "Traceback" not in text
    if command != "pytest":
        assert "--mle-" not in text
    assert sorted(path.name for path in session.path.iterdir()) == ["file"], "nothing was made"


def test_commands_take_the_folders_of_pytests_settings(
    session: Session, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(session.path)
    session.pytester.makeini("[pytest]\nmle_data_dir = mine\nmle_runs_dir = runs\n")
    assert main(["prepare", "demo-digits"]) == 0
    assert (session.path / "mine" / "demo-digits" / "prepared" / "public").is_dir()
    result = session.run("--mle-agent=dummy", "--mle-prepare=never", "-k", "digits")
    assert result.ret == pytest.ExitCode.USAGE_ERROR, "the rest of the split is not prepared there"
    result.stderr.fnmatch_lines(["*5 of 6 competitions are not prepared in *mine: *"])
    (session.path / "runs").write_text("")
    assert main(["clean", "--dry-run"]) == USAGE_ERROR
    assert "mle_runs_dir in tox.ini must be a folder, given: runs" in capsys.readouterr().err


def test_an_option_wins_over_the_settings_and_those_over_the_environment(
    session: Session,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(session.path)
    (session.path / "file").write_text("")
    monkeypatch.setenv("MLEBENCH_DATA_DIR", "file")
    assert main(["list"]) == USAGE_ERROR
    assert "MLEBENCH_DATA_DIR must be a folder, given: file" in capsys.readouterr().err
    session.pytester.makeini("[pytest]\nmle_data_dir = file\n")
    assert main(["list"]) == USAGE_ERROR
    assert "mle_data_dir in tox.ini must be a folder, given: file" in capsys.readouterr().err
    assert main(["list", f"--data-dir={tmp_path}"]) == 0
