"""What an agent finds in its container, and what comes out of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from docker_images import BUSYBOX, PYTHON
from docker_jobs import JobMaker

from pytest_mlebench.agent import Agent
from pytest_mlebench.errors import ConfigError, SandboxError
from pytest_mlebench.sandbox.docker import DockerSandbox, Engine


def facts(text: str) -> dict[str, str]:
    """Return the ``key=value`` lines of an output."""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def test_a_submission_logs_and_code_come_out(sandbox: DockerSandbox, make_job: JobMaker) -> None:
    job = make_job(
        "cp $DATA_DIR/sample_submission.csv $SUBMISSION_DIR/submission.csv;"
        "echo thought > $LOGS_DIR/thoughts.txt; echo 1+1 > $CODE_DIR/solution.py; echo done"
    )
    outcome = sandbox.run(job)
    assert (outcome.reason, outcome.exit_code, outcome.problem) == ("exited", 0, None)
    assert job.submission.read_text() == "id,target\n1,0\n"
    assert (job.artefacts / "logs" / "thoughts.txt").read_text() == "thought\n"
    assert (job.artefacts / "code" / "solution.py").read_text() == "1+1\n"
    assert job.log.read_text() == "done\n"


def test_the_environment_is_the_contract(sandbox: DockerSandbox, make_job: JobMaker) -> None:
    job = make_job("env; echo where=$(pwd); cat /home/instructions.txt", env={"MODEL": "small"})
    sandbox.run(job)
    text = job.log.read_text()
    expected = {
        "COMPETITION_ID": "demo",
        "DATA_DIR": "/home/data",
        "SUBMISSION_DIR": "/home/submission",
        "LOGS_DIR": "/home/logs",
        "CODE_DIR": "/home/code",
        "AGENT_DIR": "/home/agent",
        "MLE_SEED": "1",
        "MLE_TIME_LIMIT_SECS": "60",
        "MLE_VALIDATE_URL": "http://localhost:5000/validate",
        "MODEL": "small",
        "where": "/home/agent",
    }
    assert expected.items() <= facts(text).items()
    assert text.endswith("Win.\n")


def test_the_agent_is_nobody_special(sandbox: DockerSandbox, make_job: JobMaker) -> None:
    job = make_job(
        "echo uid=$(id -u); echo name=$(id -un); touch $HOME/x && echo writable=yes;"
        "grep -E 'CapEff|CapBnd|NoNewPrivs|Seccomp:' /proc/self/status | sed 's/:\\s*/=/'"
    )
    sandbox.run(job)
    found = facts(job.log.read_text())
    assert found["uid"] != "0"
    assert found["writable"] == "yes"
    assert (found["CapEff"], found["CapBnd"]) == ("0" * 16, "0" * 16)
    assert (found["NoNewPrivs"], found["Seccomp"]) == ("1", "2")


def test_the_data_are_read_only(sandbox: DockerSandbox, make_job: JobMaker, data: Path) -> None:
    job = make_job(
        "echo x > /home/data/x; rm /home/data/description.md; echo > /home/instructions.txt"
    )
    sandbox.run(job)
    assert job.log.read_text().count("Read-only file system") == 3
    assert sorted(path.name for path in data.iterdir()) == [
        "description.md",
        "sample_submission.csv",
    ]


@pytest.mark.parametrize("image", [BUSYBOX, PYTHON])
@pytest.mark.parametrize("network", ["none", "open"])
def test_the_format_check_answers_inside(
    sandbox: DockerSandbox, make_job: JobMaker, image: str, network: str
) -> None:
    job = make_job(
        "wget -qO- http://localhost:5000/health; wget -qO- http://127.0.0.1:5000/health;"
        "printf 'id,target\\n1,2\\n' > good.csv; printf 'a,b\\n' > bad.csv;"
        "/home/validate_submission.sh good.csv; sh /home/validate_submission.sh bad.csv",
        image=image,
        network=network,
    )
    outcome = sandbox.run(job)
    answers = [json.loads(line) for line in job.log.read_text().splitlines()]
    assert answers == [
        {"status": "running"},
        {"status": "running"},
        {"result": "Submission is valid."},
        {"result": "Submission invalid! the columns must be id,target"},
    ]
    assert outcome.format_checks == 2


def test_a_large_file_goes_through_the_format_check(
    sandbox: DockerSandbox, make_job: JobMaker
) -> None:
    script = (
        "import urllib.request as u\n"
        "body = b'id,target\\n' + b'1,2\\n' * 20_000_000\n"
        "print(u.urlopen(u.Request('http://localhost:5000/validate', data=body)).read().decode())\n"
    )
    agent = Agent(name="big", image=PYTHON, command=("python3", "-c", script))
    job = make_job(agent=agent, submission_bytes=10**8)
    sandbox.run(job)
    assert json.loads(job.log.read_text()) == {"result": "Submission is valid."}


def test_many_connections_at_once_do_not_stop_the_format_check(
    sandbox: DockerSandbox, make_job: JobMaker
) -> None:
    script = (
        "import socket, urllib.request as u\n"
        "idle = [socket.create_connection(('localhost', 5000)) for _ in range(28)]\n"
        "for _ in range(100): u.urlopen('http://localhost:5000/health').read()\n"
        "print('ok')\n"
    )
    agent = Agent(name="many", image=PYTHON, command=("python3", "-c", script))
    job = make_job(agent=agent)
    sandbox.run(job)
    assert job.log.read_text() == "ok\n"


def test_the_agents_folder_is_copied_in(
    sandbox: DockerSandbox, make_job: JobMaker, tmp_path: Path
) -> None:
    folder = tmp_path / "agent"
    (folder / ".git").mkdir(parents=True)
    (folder / "main.sh").write_text("ls -a; touch mine; echo $1 > main.sh; ls -l main.sh\n")
    agent = Agent(name="files", image=BUSYBOX, command=("sh", "main.sh", "changed"), folder=folder)
    job = make_job(agent=agent)
    assert sandbox.run(job).exit_code == 0
    assert job.log.read_text().splitlines()[:3] == [".", "..", "main.sh"]
    assert sorted(path.name for path in folder.iterdir()) == [".git", "main.sh"]
    assert "ls -a" in (folder / "main.sh").read_text()


def test_neither_datasets_nor_runs_are_copied_with_the_agents_folder(
    engine: Engine, make_job: JobMaker, data: Path, tmp_path: Path
) -> None:
    # the project's own folder is the agent's, with everything in it
    (tmp_path / "main.sh").write_text("find . -type f | sort\n")
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "pyvenv.cfg").touch()
    agent = Agent(name="all", image=BUSYBOX, command=("sh", "main.sh"), folder=tmp_path)
    job = make_job(agent=agent)
    sandbox = DockerSandbox(
        cache=tmp_path / "runs" / ".docker", hidden=[tmp_path / "runs"], address=engine.address
    )
    assert data.is_relative_to(tmp_path)
    sandbox.run(job)
    assert job.log.read_text() == "./main.sh\n"


def test_secrets_are_in_the_environment_and_nowhere_else(
    sandbox: DockerSandbox,
    engine: Engine,
    make_job: JobMaker,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("API_KEY", "sk-very-secret")
    job = make_job("echo key: $KEY; [ $KEY = sk-very-secret ]", env={"KEY": "${API_KEY}"})
    assert sandbox.run(job).exit_code == 0
    assert job.log.read_text() == "key: ***\n"
    for path in job.folder.rglob("*"):
        assert not path.is_file() or b"sk-very-secret" not in path.read_bytes()


def test_the_exit_code_is_the_agents(sandbox: DockerSandbox, make_job: JobMaker) -> None:
    outcome = sandbox.run(make_job("exit 7"))
    assert (outcome.reason, outcome.exit_code) == ("exited", 7)
    assert outcome.problem == "the agent left no submission.csv in its submission folder"


def test_a_command_that_is_not_there_says_so(sandbox: DockerSandbox, make_job: JobMaker) -> None:
    job = make_job(agent=Agent(name="typo", image=BUSYBOX, command=("pyhton", "x.py")))
    assert sandbox.run(job).exit_code == 127
    assert job.log.read_text() == "mlebench: cannot start pyhton: No such file or directory\n"


def test_evidence_is_kept(sandbox: DockerSandbox, engine: Engine, make_job: JobMaker) -> None:
    job = make_job("i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; sleep 5")
    outcome = sandbox.run(job)
    image = engine.api.inspect_image(BUSYBOX)
    assert outcome.image in {image["Id"], *image["RepoDigests"]}
    assert outcome.cpu_seconds is not None
    assert 0.05 < outcome.cpu_seconds < outcome.seconds
    assert outcome.peak_memory_bytes is not None
    assert 10_000 < outcome.peak_memory_bytes < 10**8
    phases = outcome.details["phases"]
    assert list(phases) == ["prepare", "create", "start", "run", "fetch", "collect", "remove"]
    samples = [json.loads(line) for line in (job.folder / "stats.jsonl").read_text().splitlines()]
    assert [set(sample) for sample in samples[:1]] == [{"t", "memory", "cpu", "pids", "disk"}]
    assert 2 <= len(samples) <= 12


def test_nothing_is_left_on_either_side(
    sandbox: DockerSandbox, engine: Engine, make_job: JobMaker
) -> None:
    job = make_job("echo hi")
    sandbox.run(job)
    left = {path.name for path in job.folder.iterdir()} - {"stats.jsonl"}
    assert left == {"artefacts", "run.log"}
    label = {"label": f"pytest-mlebench.attempt={job.labels['attempt']}"}
    assert engine.api.containers(all=True, filters=label) == []


def test_an_attempt_without_its_leased_gpus_is_refused(
    sandbox: DockerSandbox, make_job: JobMaker
) -> None:
    job = make_job()
    wanted = replace(job, limits=replace(job.limits, gpus=1))
    with pytest.raises(SandboxError, match="the attempt needs 1 GPUs and has a lease of 0"):
        sandbox.run(wanted)


def test_an_agent_may_not_mount_the_answers(
    sandbox: DockerSandbox, make_job: JobMaker, data: Path
) -> None:
    for source in (data.parent / "private", data.parents[3]):
        agent = Agent(name="spy", image=BUSYBOX, command=("true",), mounts=(f"{source}:/x:ro",))
        with pytest.raises(ConfigError, match=r"agent 'spy' must not mount .*: the answers lie in"):
            sandbox.run(make_job(agent=agent))


def test_an_explicit_mount_is_honoured(
    sandbox: DockerSandbox, make_job: JobMaker, tmp_path: Path
) -> None:
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "model").write_text("42\n")
    agent = Agent(
        name="heavy",
        image=BUSYBOX,
        command=("sh", "-c", "cat /weights/model; echo x > /weights/model"),
        mounts=(f"{tmp_path}/weights:/weights:ro",),
    )
    job = make_job(agent=agent)
    sandbox.run(job)
    first, second = job.log.read_text().splitlines()
    assert first == "42"
    assert second.endswith("Read-only file system")
