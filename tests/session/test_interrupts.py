"""Whatever tells a session to end, all that it started ends, and nothing known is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest
from plugin_session import Session
from sandbox_job import wait_until

# finishes one competition at once and never the other
HALF = """
    import os, shutil, time
    if os.environ["COMPETITION_ID"] != "demo-digits":
        time.sleep(600)
    shutil.copy(os.environ["DATA_DIR"] + "/sample_submission.csv",
                os.environ["SUBMISSION_DIR"] + "/submission.csv")
"""
TWO = ("--mle-competition=demo-digits", "--mle-competition=demo-wine-cultivars")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_session_that_is_told_to_end_ends_everything_and_reports(
    session: Session,
    workers: tuple[str, ...],
    processes: Callable[[str], list[int]],
    number: signal.Signals,
) -> None:
    word = f"endless-{number}-{os.getpid()}-{len(workers)}"
    session.agent("half", HALF)
    command = [sys.executable, "-m", "pytest", f"--mle-agent=python half.py {word}", *TWO]
    command += ["--mle-run=r", "--mle-report=r.json", *workers]
    with (session.path / "output").open("w") as output:
        process = subprocess.Popen(
            command,
            cwd=session.path,
            stdout=output,
            stderr=output,
            # it may be ignored here, as by nohup(1), and then also there
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # noqa: PLW1509  # no threads
        )
    root = session.path / "mle-runs/r"

    def phase(competition: str) -> str | None:
        record = root / competition / "seed0/attempt1/record.json"
        return json.loads(record.read_text())["phase"] if record.exists() else None

    assert wait_until(
        lambda: phase("demo-digits") == "graded" and phase("demo-wine-cultivars") == "running", 120
    )
    process.send_signal(number)  # to the session alone: it has to tell its workers
    assert process.wait(120) == pytest.ExitCode.INTERRUPTED
    assert wait_until(lambda: not processes(word), 60)
    text = (session.path / "output").read_text()
    assert "= MLE-bench =" in text
    assert "next: pytest " in text
    found = {r["competition"]: r["outcome"] for r in session.report("r.json")["results"]}
    assert found == {"demo-digits": "graded", "demo-wine-cultivars": "missing"}
