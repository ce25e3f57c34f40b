"""An engine on another host: nothing of ours can be bound in, and all works the same."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from docker_engines import OwnEngine, SshHost
from docker_images import BUSYBOX, ensure_busybox
from docker_jobs import JobMaker

from pytest_mlebench.agent import Agent
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.sandbox.docker import DockerSandbox, Engine
from pytest_mlebench.sandbox.docker.cleanup import find_cache, remove_cache


@pytest.fixture(scope="module")
def elsewhere(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DockerSandbox]:
    """A sandbox on an engine whose host has another name."""
    if os.getuid() != 0:
        pytest.skip("only root can start another engine")
    own = OwnEngine("elsewhere")
    try:
        sandbox = DockerSandbox(
            cache=tmp_path_factory.mktemp("cache"), address=own("start"), grace_seconds=1
        )
        ensure_busybox(sandbox.engine.api)
        yield sandbox
    finally:
        own("wipe")


def test_an_engine_elsewhere_is_recognised(elsewhere: DockerSandbox) -> None:
    facts = elsewhere.engine.facts
    assert (facts.host, facts.local) == ("elsewhere", False)
    assert facts.describe().startswith(f"docker {facts.version} on elsewhere (")


def test_everything_goes_there_and_comes_back(
    elsewhere: DockerSandbox, make_job: JobMaker, data: Path
) -> None:
    (data / "folder").mkdir()
    (data / "folder" / "train.csv").write_text("id,x\n")
    job = make_job(
        "ls -R /home/data; cat /home/instructions.txt; touch /home/data/x;"
        "cp $DATA_DIR/sample_submission.csv $SUBMISSION_DIR/submission.csv;"
        "mkdir $LOGS_DIR/deep; echo thought > $LOGS_DIR/deep/t; echo 1 > $CODE_DIR/s.py; id -u"
    )
    outcome = elsewhere.run(job)
    text = job.log.read_text()
    assert "folder\nsample_submission.csv\n\n/home/data/folder:\ntrain.csv\nWin.\n" in text
    assert "Read-only file system" in text
    assert text.endswith("1000\n")
    assert (outcome.exit_code, outcome.problem) == (0, None)
    assert job.submission.read_text() == "id,target\n1,0\n"
    assert (job.artefacts / "logs" / "deep" / "t").read_text() == "thought\n"
    assert (job.artefacts / "code" / "s.py").read_text() == "1\n"
    assert list(outcome.details["phases"])[-3:] == ["fetch", "collect", "remove"]


def test_the_format_check_is_reached_over_the_engines_connection(
    elsewhere: DockerSandbox, make_job: JobMaker
) -> None:
    job = make_job(
        "wget -qO- http://localhost:5000/health;"
        "(echo id,target; yes 1,2 | head -n 1000000) > good.csv; echo a > bad.csv;"
        "/home/validate_submission.sh good.csv; /home/validate_submission.sh bad.csv;"
        "wget -qO- http://localhost:5000/health",
        submission_bytes=10**7,
    )
    outcome = elsewhere.run(job)
    assert [json.loads(line) for line in job.log.read_text().splitlines()] == [
        {"status": "running"},
        {"result": "Submission is valid."},
        {"result": "Submission invalid! the columns must be id,target"},
        {"status": "running"},
    ]
    assert outcome.format_checks == 2


def test_connections_that_say_nothing_do_not_stop_the_format_check(
    elsewhere: DockerSandbox, make_job: JobMaker
) -> None:
    job = make_job(
        "for i in 1 2 3; do nc -w 1 127.0.0.1 5000 </dev/null; done;"
        "for i in 1 2 3 4 5; do wget -qO- http://localhost:5000/health & done; wait"
    )
    elsewhere.run(job)
    assert job.log.read_text().count("running") == 5


def test_the_data_are_copied_once_and_again_when_they_change(
    elsewhere: DockerSandbox, make_job: JobMaker, data: Path
) -> None:
    def volumes() -> set[str]:
        return {v["Name"] for v in elsewhere.engine.api.volumes()["Volumes"] or ()}

    before = volumes()
    jobs = [make_job("ls /home/data") for _ in range(2)]
    with ThreadPoolExecutor() as pool:
        list(pool.map(elsewhere.run, jobs))
    assert len(volumes() - before) == 1
    (data / "new.csv").write_text("1\n")
    job = make_job("cat /home/data/new.csv")
    elsewhere.run(job)
    assert job.log.read_text() == "1\n"
    assert len(volumes() - before) == 2


def test_a_copy_that_broke_off_is_not_used(
    elsewhere: DockerSandbox, make_job: JobMaker, data: Path
) -> None:
    closed = data / "zzz.csv"
    closed.symlink_to("nowhere")
    api = elsewhere.engine.api
    prepared = elsewhere.prepare(make_job().agent)
    volume = elsewhere._volumes
    name = volume.ensure(data, prepared.name)
    next(elsewhere._cache.rglob(name)).unlink()  # as if the session had been killed on the way
    api.remove_volume(name)
    api.create_volume(name)
    job = make_job("ls /home/data")
    elsewhere.run(job)
    assert "sample_submission.csv" in job.log.read_text()


@pytest.mark.parametrize(
    ("trap", "problem"),
    [
        ("ln -s /etc/passwd $F", "submission.csv is a symbolic link, not a regular file"),
        ("mkfifo $F", "submission.csv is a named pipe, not a regular file"),
        ("mkdir $F", "submission.csv is a folder, not a regular file"),
        ("truncate -s 400G $F", "submission.csv is too large: 429.5GB, allowed are 1MB"),
        ("true", "the agent left no submission.csv in its submission folder"),
    ],
    ids=["link", "pipe", "folder", "huge", "nothing"],
)
def test_traps_stay_there(
    elsewhere: DockerSandbox, make_job: JobMaker, trap: str, problem: str
) -> None:
    job = make_job(f"F=$SUBMISSION_DIR/submission.csv; {trap}")
    assert elsewhere.run(job).problem == problem
    assert not job.submission.exists()


def test_artefacts_are_bounded(elsewhere: DockerSandbox, make_job: JobMaker) -> None:
    job = make_job(
        "truncate -s 400G $LOGS_DIR/b; echo x > $LOGS_DIR/a; ln -s /etc $LOGS_DIR/c;"
        "for i in $(seq 200); do echo $i > $CODE_DIR/$i; done",
        artefact_files=50,
    )
    outcome = elsewhere.run(job)
    kept = [path for path in job.artefacts.rglob("*") if path.is_file()]
    assert len(kept) <= 50
    assert any("too large" in note for note in outcome.details["notes"])
    assert not (job.artefacts / "logs" / "c").exists()


def test_limits_hold_there_too(elsewhere: DockerSandbox, make_job: JobMaker) -> None:
    fill = "while true; do dd if=/dev/zero of=$LOGS_DIR/$((i=i+1)) bs=1M count=20; sleep 0.2; done"
    job = make_job(f"{fill} 2>/dev/null", disk_bytes=50 * 10**6)
    assert elsewhere.run(job).reason == "disk-limit"


def test_what_is_kept_there_can_be_removed(elsewhere: DockerSandbox, make_job: JobMaker) -> None:
    elsewhere.run(make_job())
    kinds = [item.kind for item in remove_cache(elsewhere.engine)]
    assert set(kinds) == {"image", "volume"}
    assert find_cache(elsewhere.engine) == []
    assert elsewhere.run(make_job("ls /home/data")).exit_code == 0


def test_mounts_of_this_machine_are_refused(elsewhere: DockerSandbox, make_job: JobMaker) -> None:
    agent = Agent(name="m", image=BUSYBOX, command=("true",), mounts=("/usr:/x:ro",))
    with pytest.raises(ConfigError) as caught:
        elsewhere.preflight(agent, make_job().limits, "none")
    assert str(caught.value) == (
        "agent 'm' wants mounts of this machine, but its engine runs on another (elsewhere): "
        "put the files into the image"
    )


@pytest.fixture
def ssh_host(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshHost]:
    """This host, as one that is reached by ssh."""
    if os.getuid() != 0:
        pytest.skip("only root can start sshd")
    (tmp_path / "ssh").mkdir()
    host = SshHost(tmp_path / "ssh", engine.address)
    monkeypatch.setenv("PATH", f"{host.folder}/bin:{os.environ['PATH']}")
    yield host
    host.process.terminate()
    host.process.wait()


@pytest.mark.parametrize("told", [True, False], ids=["path", "no-path"])
def test_an_engine_is_reached_by_ssh(
    engine: Engine, ssh_host: SshHost, make_job: JobMaker, tmp_path: Path, told: bool
) -> None:
    path = engine.address.removeprefix("unix://") if told else ""
    sandbox = DockerSandbox(cache=tmp_path / "cache", address=f"ssh://mlehost{path}")
    job = make_job("echo id,target > s.csv; /home/validate_submission.sh s.csv; echo done")
    outcome = sandbox.run(job)
    assert (outcome.exit_code, outcome.format_checks) == (0, 1)
    assert job.log.read_text() == '{"result": "Submission is valid."}\ndone\n'
    assert not sandbox.engine.facts.local
    sandbox.engine.close()


def test_a_host_that_ssh_cannot_reach_is_told_in_its_words(
    ssh_host: SshHost, tmp_path: Path
) -> None:
    for address in (
        "ssh://nobody@no-such-host.invalid",
        "ssh://nobody@no-such-host.invalid/x.sock",
    ):
        with pytest.raises(
            ConfigError, match=r"ssh cannot reach nobody@no-such-host\.invalid: ssh: Could not"
        ):
            Engine(address)
    with pytest.raises(ConfigError) as caught:
        Engine("ssh://mlehost/no/such.sock")
    assert str(caught.value).startswith(
        "no container engine answers at ssh://mlehost/no/such.sock ("
    )
    with pytest.raises(ConfigError, match=r"must be ssh://\[USER@\]HOST\[:PORT\], given: ssh://"):
        Engine("ssh://")
