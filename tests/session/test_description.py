"""A run with obfuscated descriptions tells the agent no name, wherever it looks."""

from __future__ import annotations

from plugin_session import Session

ONE = "--mle-competition=demo-digits"
LOOKS = """
    import json, os, shutil, subprocess, urllib.request
    data, out = os.environ["DATA_DIR"], os.environ["SUBMISSION_DIR"]
    home = os.path.dirname(out)
    with open(out + "/submission.csv", "w") as file:
        file.write("wrong")
    check = subprocess.run(["bash", home + "/validate_submission.sh", out + "/submission.csv"],
                           capture_output=True, text=True)
    seen = [*map("=".join, os.environ.items()), os.path.realpath(data), os.getcwd(),
            open(data + "/description.md").read(), open(home + "/instructions.txt").read(),
            check.stdout + check.stderr, open("/proc/self/mountinfo").read()]
    shutil.copy(data + "/sample_submission.csv", out + "/submission.csv")
    with open(os.environ["LOGS_DIR"] + "/seen.txt", "w") as file:
        file.write("\\n".join(seen))
"""


def test_no_name_is_anywhere_in_reach(session: Session) -> None:
    command = session.agent("looks", LOOKS)
    result = session.run(
        f"--mle-agent={command}", ONE, "--mle-run=r", "--mle-description=obfuscated"
    )
    result.assert_outcomes(passed=1)
    ((folder, record),) = session.records("r").items()
    code = record["conditions"]["code_name"]
    assert folder == f"{code}/seed0/attempt1"
    assert (record["competition"], code[:5]) == ("demo-digits", "task-")
    (seen,) = (session.path / "mle-runs" / "r" / folder).rglob("seen.txt")
    text = seen.read_text()
    assert f"COMPETITION_ID={code}" in text
    assert "column" in text  # what the format check says
    assert "demo-digits" not in text
    report = session.report("mle-runs/r/report.json")
    assert report["disclosure"]["description"] == "obfuscated"
    assert [result["competition"] for result in report["results"]] == ["demo-digits"]


def test_a_resumed_run_keeps_its_code_names(session: Session) -> None:
    asked = ("--mle-agent=dummy", ONE, "--mle-run=r")
    session.run(*asked, "--mle-description=obfuscated").assert_outcomes(passed=1)
    first = session.records("r")
    session.run(*asked).assert_outcomes(passed=1)
    assert list(session.records("r")) == list(first)


def test_a_competition_without_such_a_description_is_refused_beforehand(session: Session) -> None:
    folder = session.path / "mine" / "tiny"
    from reporting import write_competition

    write_competition(session.path / "mine")
    session.pytester.makeini("[pytest]\nmle_competitions = mine\n")
    result = session.run(
        "--mle-agent=dummy", "--mle-competition=tiny", "--mle-description=obfuscated"
    )
    result.stderr.fnmatch_lines(
        [f"ERROR: {folder}/description_obfuscated.md: no such file, use --mle-description=ours"]
    )
