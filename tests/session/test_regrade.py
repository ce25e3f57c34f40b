"""Grading again without running again."""

from __future__ import annotations

import json
import subprocess
import sys

from plugin_session import Session

ONE = "--mle-competition=demo-digits"


def test_a_run_is_graded_again_without_an_agent(session: Session) -> None:
    session.run("--mle-agent=dummy", ONE, "--mle-run=mine").assert_outcomes(passed=1)
    record = session.path / "mle-runs/mine/demo-digits/seed0/attempt1/record.json"
    data = json.loads(record.read_text())
    true_score = data["grade"]["score"]
    data["grade"]["score"] = 0.5
    record.write_text(json.dumps(data))
    done = subprocess.run(
        [sys.executable, "-m", "pytest_mlebench", "regrade", "mle-runs/mine"],
        cwd=session.path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"demo-digits seed0: 0.5 -> {true_score}, none" in done.stdout
    assert json.loads(record.read_text())["grade"]["score"] == true_score
    report = json.loads((session.path / "mle-runs/mine/report.json").read_text())
    assert report["results"][0]["grade"]["score"] == true_score


KEEPER = """
import os, shutil
shutil.copy(os.environ["DATA_DIR"] + "/description.md", os.environ["LOGS_DIR"])
"""


def test_a_description_that_lies_in_the_store_gives_way_to_ours(session: Session) -> None:
    store = session.path / "store"
    agent = f"--mle-agent={session.agent('keeper', KEEPER)}"
    session.run("--mle-agent=dummy", ONE, "--mle-data-dir=store").assert_outcomes(passed=1)
    description = store / "demo-digits/prepared/public/description.md"
    marker = store / "demo-digits/prepared/.mlebench.json"
    assert marker.is_file()
    ours = description.read_text()
    description.unlink()
    description.write_text("# The original, as another tool has prepared it\n")
    facts = json.loads(marker.read_text())
    facts["files"].pop("public/description.md")
    marker.write_text(json.dumps(facts))
    session.run(agent, ONE, "--mle-data-dir=store", "--mle-run=seen")
    (seen,) = (session.path / "mle-runs/seen").rglob("description.md")
    assert seen.read_text() == ours
