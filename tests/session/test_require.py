"""`--mle-require`: what an item must reach."""

from __future__ import annotations

from plugin_session import Session

ONE = "--mle-competition=demo-digits"

COPY = """
import os, shutil
shutil.copy(os.environ["DATA_DIR"] + "/sample_submission.csv",
            os.environ["SUBMISSION_DIR"] + "/submission.csv")
"""


def test_an_item_under_the_bar_fails_with_a_few_lines(
    session: Session, workers: tuple[str, ...]
) -> None:
    command = session.agent("copier", COPY)
    result = session.run(f"--mle-agent={command}", ONE, "--mle-require=bronze", *workers)
    assert result.ret == 1
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "demo-digits: score * (higher is better), no medal",
            "thresholds: gold *, silver *, bronze *, median *",
            "better than * % of 240 teams, * short of bronze",
            "run: *",
            "required: bronze",
        ]
    )
    assert "Traceback" not in result.stdout.str()
    assert "def test_competition" not in result.stdout.str()
