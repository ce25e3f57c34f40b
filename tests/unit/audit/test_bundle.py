"""What goes into a bundle, and what stays out."""

from __future__ import annotations

import os
from pathlib import Path

from bundles import graded_run

from pytest_mlebench.audit.bundle import write_bundle


def test_links_and_logs_stay_out_of_a_bundle(tmp_path: Path) -> None:
    run = graded_run(tmp_path, (0.5,))
    attempt = run.path / "tiny" / "seed0" / "attempt1"
    (attempt / "artefacts" / "code" / "passwd").symlink_to("/etc/passwd")
    (attempt / "home").mkdir()
    (attempt / "home" / "scratch.txt").write_text("x")
    manifest = write_bundle(run.path, tmp_path / "b.zip", run.registry, logs=False)
    kept = next((attempt / "snapshots").iterdir()).name
    assert set(manifest.files) == {
        "report.json",
        "disclosure.md",
        "run/run.json",
        "run/tiny/seed0/attempt1/record.json",
        "run/tiny/seed0/attempt1/submission.csv",
        "run/tiny/seed0/attempt1/artefacts/code/main.py",
        f"run/tiny/seed0/attempt1/snapshots/{kept}",
    }
    assert manifest.left_out == (
        "tiny/seed0/attempt1/run.log",
        "tiny/seed0/attempt1/home/scratch.txt",
    )
    claims = run.verify(tmp_path / "b.zip")
    assert [claim.text for claim in claims if claim.verdict != "holds"] == [
        "the run was not audited"
    ]
    texts = {claim.name: claim.text for claim in claims}
    assert texts["kept files"].startswith("submission and code, without logs, of 1 attempts")


def test_names_that_no_archive_can_have_are_left_out(tmp_path: Path) -> None:
    run = graded_run(tmp_path, (0.5,))
    logs = run.path / "tiny" / "seed0" / "attempt1" / "artefacts" / "logs"
    logs.mkdir()
    for name in (b"\xff.txt", b"..\\up.txt", b"a\nb.txt"):
        Path(os.fsdecode(os.fsencode(logs) + b"/" + name)).write_text("x")
    manifest = write_bundle(run.path, tmp_path / "b.zip", run.registry)
    assert [Path(name).name for name in manifest.left_out] == [".._up.txt", "a_b.txt", "_.txt"]
    assert all(claim.verdict != "fails" for claim in run.verify(tmp_path / "b.zip"))
