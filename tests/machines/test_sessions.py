"""A session on several hosts, on a sunny day."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from host_machines import TWO, HostMachines, RunningSession
from sandbox_job import wait_until

Start = Callable[..., RunningSession]

EXAMPLE = Path(__file__).parents[2] / "examples/own-competitions/competitions"
SECRETIVE = """
import os, shutil
print("key of", len(os.environ["KEY"]), "letters", flush=True)
shutil.copy(os.environ["DATA_DIR"] + "/sample_submission.csv",
            os.environ["SUBMISSION_DIR"] + "/submission.csv")
"""


TALKATIVE = """
import os, shutil
with open(os.environ["LOGS_DIR"] + "/noise.bin", "wb") as file:
    file.write(os.urandom(1 << 21))
shutil.copy(os.environ["DATA_DIR"] + "/sample_submission.csv",
            os.environ["SUBMISSION_DIR"] + "/submission.csv")
"""


def test_the_agent_travels_and_the_results_come_back(
    hosts: HostMachines, agent: str, start: Start, tmp_path: Path
) -> None:
    session = start(agent, hosts.write_toml(tmp_path / "hosts.toml"), *TWO)
    running = session.wait_for_running(2)
    assert len(set(running.values())) == 2  # each on a host of its own
    log = session.run / next(iter(running)) / "run.log"
    assert wait_until(lambda: log.is_file() and log.read_text() == "hello\n", 120)  # at once
    hosts.let_go()
    assert session.end() == pytest.ExitCode.OK, session.text
    for attempt, record in session.records().items():
        assert record["phase"] == "graded"
        assert record["conditions"]["host"] == record["conditions"]["machine"]
        assert (session.run / attempt / "submission.csv").is_file()
        assert record["grade"]["run"] == str(session.run / attempt)
    assert {r["outcome"] for r in session.report()["results"]} == {"graded"}
    assert hosts.leftovers() == []
    assert not (session.run / ".incoming").exists()


def test_a_resumed_session_repeats_nothing(
    hosts: HostMachines, agent: str, start: Start, tmp_path: Path
) -> None:
    option = hosts.write_toml(tmp_path / "hosts.toml")
    hosts.let_go()
    assert start(agent, option, *TWO).end() == 0
    again = start(agent, option, log="again")
    assert again.end() == 0, again.text
    assert "resumes: 2 of 2 done already" in again.text
    assert sorted(again.records()) == [f"{each[18:]}/seed0/attempt1" for each in TWO]


def test_competitions_of_ones_own_travel(hosts: HostMachines, start: Start, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "competitions")
    option = hosts.write_toml(tmp_path / "hosts.toml")
    own = ("-o", f"mle_competitions={tmp_path / 'competitions'}", "--mle-competition=concrete")
    session = start("--mle-agent=dummy", option, *own, "--mle-time-limit=1m")
    assert session.end() == pytest.ExitCode.OK, session.text
    ((name, record),) = session.records().items()
    assert (name, record["phase"]) == ("concrete/seed0/attempt1", "graded")
    assert session.report()["results"][0]["outcome"] == "graded"
    assert hosts.leftovers() == []


def test_a_slow_cable_is_not_a_lost_host(hosts: HostMachines, start: Start, tmp_path: Path) -> None:
    folder = tmp_path / "talkative"
    folder.mkdir()
    (folder / "main.py").write_text(TALKATIVE)
    (folder / "agent.toml").write_text('command = ["bash", "-c", "python $AGENT_DIR/main.py"]\n')
    option = hosts.write_toml(tmp_path / "hosts.toml")
    for name in hosts.names:
        hosts.do("slow", name, "4000")  # the file takes seconds, the beats must not wait for it
    session = start("--mle-agent=talkative", option, TWO[0])
    assert session.end() == pytest.ExitCode.OK, session.text
    assert "is lost" not in session.text
    ((name, record),) = session.records().items()
    assert record["phase"] == "graded"
    files = [path.stat().st_size for path in (session.run / name).rglob("noise.bin")]
    assert files == [1 << 21]
    assert hosts.leftovers() == []


def test_hosts_that_xdists_own_option_names_get_all_that_others_get(
    hosts: HostMachines, start: Start, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(TALKATIVE)  # only here
    specs = [f"--tx=ssh=-F {hosts.folder}/ssh_config {each}" for each in hosts.names[:2]]
    places = [f"{spec}//python={sys.executable}" for spec in specs]
    session = start("--mle-agent=python mine.py", "--dist=load", *places, TWO[0])
    assert session.end() == pytest.ExitCode.OK, session.text
    ((name, record),) = session.records().items()
    assert record["phase"] == "graded"
    assert record["conditions"]["machine"] in hosts.names[:2]
    assert (session.run / name / "submission.csv").is_file()
    assert hosts.leftovers() == []


def test_secrets_travel_by_value_and_to_no_disk(
    hosts: HostMachines, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "secretive"
    folder.mkdir()
    (folder / "main.py").write_text(SECRETIVE)
    (folder / "agent.toml").write_text(
        'command = ["bash", "-c", "python $AGENT_DIR/main.py"]\n[env]\nKEY = "${MY_OWN_KEY}"\n'
    )
    monkeypatch.setenv("MY_OWN_KEY", "s3cret-value-of-ours")
    option = hosts.write_toml(tmp_path / "hosts.toml")
    session = start("--mle-agent=secretive", option, TWO[0])
    assert session.end() == 0, session.text
    log = next(session.run.rglob("run.log")).read_text()
    assert log == "key of 20 letters\n"
    for name in hosts.names:
        for root, _, files in os.walk(hosts.disk(name) / "root"):
            if "/.pyenv" not in root and "/.cache/" not in root:
                for file in files:
                    assert b"s3cret-value" not in (Path(root) / file).read_bytes()


def test_a_host_with_too_little_room_is_refused_before_anything_runs(
    hosts: HostMachines, start: Start, tmp_path: Path
) -> None:
    mount = "mkdir -p /tmp/small && mount -t tmpfs -o size=100m none /tmp/small"
    ssh = ["ssh", "-F", f"{hosts.folder}/ssh_config", "h1"]
    subprocess.run([*ssh, mount], check=True)
    option = hosts.write_toml(tmp_path / "hosts.toml", h1={"folder": "/tmp/small"})
    session = start("--mle-agent=dummy", option, TWO[0])
    try:
        assert session.end() == pytest.ExitCode.USAGE_ERROR
    finally:
        subprocess.run([*ssh, "umount /tmp/small"], check=True)
    assert "1 of 3 hosts cannot take part:\n  h1: has 10" in session.text
    assert "left on the disk of /tmp/small, and 1GB must stay free: make room there" in session.text
    assert session.records() == {}


def test_what_is_wrong_with_all_hosts_is_one_list_before_anything_runs(
    hosts: HostMachines, agent: str, start: Start, tmp_path: Path
) -> None:
    nowhere = {"ssh": "nobody@127.0.0.1", "python": "python3"}
    option = hosts.write_toml(
        tmp_path / "hosts.toml", h2={"python": "/opt/no/python"}, h4=nowhere, h5=nowhere
    )
    session = start(agent, option, TWO[0])
    assert session.end() == pytest.ExitCode.USAGE_ERROR
    assert "hosts.toml: 3 of 5 hosts cannot take part:" in session.text
    assert "  h2: has no /opt/no/python: run pytest-mlebench hosts setup" in session.text
    assert "  h4: cannot be reached: " in session.text
    assert "  h5: cannot be reached: " in session.text
    assert session.records() == {}


def test_what_a_host_itself_finds_wrong_is_refused_too(
    hosts: HostMachines, start: Start, tmp_path: Path
) -> None:
    option = hosts.write_toml(tmp_path / "hosts.toml")
    (tmp_path / "mine.py").write_text("")
    session = start("--mle-agent=python mine.py", option, TWO[0], "--mle-cpus=5000")
    assert session.end() == pytest.ExitCode.USAGE_ERROR
    assert "3 of 3 hosts cannot take part:" in session.text
    assert "  h1: the limit of 5000 CPUs is more than the " in session.text
    assert hosts.leftovers() == []


def test_with_warn_the_others_go_on_and_the_report_says_who_was_missing(
    hosts: HostMachines, agent: str, start: Start, tmp_path: Path
) -> None:
    option = hosts.write_toml(tmp_path / "hosts.toml", h4={"ssh": "nobody@127.0.0.1"})
    hosts.let_go()
    session = start(agent, option, TWO[0], "--mle-hosts-missing=warn")
    assert session.end() == pytest.ExitCode.OK, session.text
    notes = json.dumps(session.report()["disclosure"]["notes"])
    assert "host h4: cannot be reached" in notes


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-n2",), "--mle-hosts says where attempts run, and so do -n and --tx"),
        (("tests",), "--mle-hosts runs the built-in suite only, given: tests"),
        (("--mle-grace=1s",), "--mle-grace must be 5s or more, given: 1s"),
        (("--dist=loadfile",), "--dist=loadfile cannot be honoured"),
    ],
)
def test_what_cannot_go_together_is_refused(
    start: Start, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    (tmp_path / "hosts.toml").write_text("[hosts.h1]\n")
    (tmp_path / "tests").mkdir()
    session = start("--mle-agent=dummy", "--mle-hosts=hosts.toml", *arguments)
    assert session.end() == pytest.ExitCode.USAGE_ERROR
    assert words in session.text
