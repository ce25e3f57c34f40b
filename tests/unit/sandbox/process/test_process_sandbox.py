"""An agent in the process sandbox finds what its contract promises, and nothing else."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from sandbox_job import Place, wait_until

from pytest_mlebench.agent import Agent, AgentContext
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.host.demo_limits import demo_limits
from pytest_mlebench.sandbox.process import workspace
from pytest_mlebench.sandbox.process.process_sandbox import ProcessSandbox


def test_the_contracts_tree_is_there(place: Place) -> None:
    done = place.run(
        shell="""
        cd ..
        find . -not -path './tmp/*' | sort
        cat instructions.txt; echo
        echo id,label > submission/submission.csv
        echo done > logs/train.log
        echo 'fit()' > code/model.py
        """
    )
    assert done.outcome.reason == "exited"
    assert done.outcome.exit_code == 0
    assert done.outcome.problem is None
    assert done.log.splitlines() == [
        *(".", "./agent", "./code", "./data", "./data/images", "./data/images/1.txt"),
        *("./data/train.csv", "./instructions.txt", "./logs", "./submission", "./tmp"),
        "./validate_submission.sh",
        f"Write {done.job.folder}/home/submission/submission.csv, not /home/me.",
    ]
    assert done.submission == "id,label\n"
    assert (done.job.artefacts / "logs" / "train.log").read_text() == "done\n"
    assert (done.job.artefacts / "code" / "model.py").read_text() == "fit()\n"


def test_the_environment_is_the_contracts_and_no_more(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAGGLE_KEY", "secret-of-the-host")
    monkeypatch.setenv("MY_KEY", "key-of-the-agent")
    agent = Agent("a", command=("env", "-0"), env={"API_KEY": "${MY_KEY}", "MODE": "fast"})
    done = place.run(agent, gpus=0)
    found = dict(line.split("=", 1) for line in done.log.split("\0") if line)
    home = done.job.folder / "home"
    assert found.pop("PATH").startswith(str(Path(sys.executable).parent))
    assert found.pop("MLE_VALIDATE_URL").startswith("http://127.0.0.1:")
    assert found == {
        "HOME": str(home),
        "TMPDIR": "/tmp",
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "API_KEY": "***",
        "MODE": "fast",
        "COMPETITION_ID": "tiny",
        "DATA_DIR": f"{home}/data",
        "SUBMISSION_DIR": f"{home}/submission",
        "LOGS_DIR": f"{home}/logs",
        "CODE_DIR": f"{home}/code",
        "AGENT_DIR": f"{home}/agent",
        "MLE_SEED": "7",
        "MLE_TIME_LIMIT_SECS": "30",
    }


def test_nothing_but_the_results_stays_in_the_attempts_folder(place: Place) -> None:
    done = place.run(shell="mkdir -p deep/er; chmod 000 deep; touch $SUBMISSION_DIR/submission.csv")
    assert sorted(path.name for path in done.job.folder.iterdir()) == [
        *("artefacts", "run.log", "submission.csv"),
    ]


def test_what_the_agent_used_is_measured(place: Place) -> None:
    done = place.run(
        python="""
import time
block = bytearray(120_000_000)
end = time.process_time() + 0.5
while time.process_time() < end: pass
"""
    )
    assert done.outcome.cpu_seconds is not None
    assert 0.5 <= done.outcome.cpu_seconds < 5
    assert done.outcome.seconds >= 0.5
    assert done.outcome.peak_memory_bytes is not None
    assert 120e6 < done.outcome.peak_memory_bytes < 400e6


def test_the_agent_gets_the_cpus_it_may_use(place: Place) -> None:
    done = place.run(python="import os; print(len(os.sched_getaffinity(0)))", cpus=0.5)
    assert done.log == "1\n"


def test_an_exit_code_is_kept(place: Place) -> None:
    done = place.run(shell="exit 3")
    assert done.outcome.exit_code == 3
    assert done.outcome.problem == "the agent left no submission.csv in its submission folder"


def test_a_death_by_signal_is_an_exit_code_as_shells_write_it(place: Place) -> None:
    assert place.run(shell="kill -SEGV $$").outcome.exit_code == 139


def test_the_format_check_is_at_hand(place: Place) -> None:
    done = place.run(
        shell="""
        echo id > bad.csv; echo id,label > good.csv
        curl -sS -F file=@bad.csv $MLE_VALIDATE_URL
        ../validate_submission.sh good.csv
        """
    )
    assert [json.loads(line)["result"] for line in done.log.splitlines()] == [
        "Submission invalid! column 'label' is missing",
        "Submission is valid.",
    ]
    assert done.outcome.format_checks == 2
    assert len((done.job.folder / "validations.jsonl").read_text().splitlines()) == 2


def test_the_log_can_be_followed_while_the_agent_runs(place: Place) -> None:
    job = place.job(
        python="print('first')\nimport os, time\nwhile not os.path.exists('go'): time.sleep(0.02)"
    )
    thread = threading.Thread(target=place.sandbox().run, args=(job,))
    thread.start()
    followed = wait_until(lambda: job.log.exists() and job.log.read_text() == "first\n", 60)
    (job.folder / "home" / "agent" / "go").touch()
    thread.join()
    assert followed


class TestFunction:
    """A Python function is an agent too: it runs in a child process."""

    def test_is_told_its_context(self, own_place: Place) -> None:
        def agent(context: AgentContext) -> None:
            json.dump({key: str(value) for key, value in vars(context).items()}, sys.stdout)
            (context.submission / "submission.csv").write_text("id,label\n")

        done = own_place.run(function=agent)
        home = done.job.folder / "home"
        told = json.loads(done.log)
        assert told.pop("validate_url").startswith("http://127.0.0.1:")
        assert told == {
            "data": f"{home}/data",
            "submission": f"{home}/submission",
            "logs": f"{home}/logs",
            "code": f"{home}/code",
            "agent": f"{home}/agent",
            "seed": "7",
            "time_limit": "30.0",
            "competition": "tiny",
        }
        assert done.outcome.exit_code == 0
        assert done.submission == "id,label\n"

    def test_runs_apart_from_the_session(
        self, own_place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HOST_SECRET", "x")
        with own_place.answers.open() as file:

            def agent(context: AgentContext) -> None:
                opened = {os.path.realpath(path) for path in Path("/proc/self/fd").iterdir()}
                facts = (str(own_place.answers) in opened, "HOST_SECRET" in os.environ, Path.cwd())
                sys.stdout.write(" ".join(map(str, facts)))

            done = own_place.run(function=agent)
            assert file.readline() == "id,label\n", "the session keeps what it has open"
        assert done.log == f"False False {done.job.folder}/home/agent"
        assert "HOST_SECRET" in os.environ

    def test_that_fails_leaves_its_traceback_in_the_log(self, own_place: Place) -> None:
        def agent(context: AgentContext) -> None:
            raise ZeroDivisionError("by the agent")

        done = own_place.run(function=agent)
        assert done.outcome.exit_code == 1
        assert done.log.endswith("ZeroDivisionError: by the agent\n")

    @pytest.mark.parametrize(("word", "code"), [(None, 0), (4, 4), ("bye", 1)])
    def test_may_exit(self, own_place: Place, word: int | str | None, code: int) -> None:
        assert own_place.run(function=lambda _: sys.exit(word)).outcome.exit_code == code

    def test_outside_a_run_says_what_is_missing(self) -> None:
        with pytest.raises(ConfigError) as caught:
            AgentContext.from_environment({})
        assert str(caught.value) == (
            "the environment variable DATA_DIR is missing: "
            "an agent is started by pytest --mle-agent=NAME"
        )


class TestAgentFolder:
    """An agent's own files lie in AGENT_DIR, where its command starts."""

    def test_is_copied(self, place: Place, tmp_path: Path) -> None:
        folder = tmp_path / "agent"
        folder.mkdir()
        (folder / "start.sh").write_text("#!/bin/sh\necho started in $(pwd)\nrm start.sh\n")
        (folder / "start.sh").chmod(0o755)
        done = place.run(Agent("a", command=("./start.sh",), folder=folder))
        assert done.log == f"started in {done.job.folder}/home/agent\n"
        assert (folder / "start.sh").exists(), "the agent got a copy"

    def test_of_a_repository_is_copied_without_what_is_not_the_agents(self, place: Place) -> None:
        repository = place.folder  # the runs and the store lie in it
        for name in (".git", "__pycache__", "src", ".venv"):
            (repository / name).mkdir()
        (repository / "src" / "agent.py").touch()
        (repository / ".venv" / "pyvenv.cfg").touch()
        command = ("sh", "-c", "find . | sort; readlink .venv")
        done = place.run(Agent("a", command=command, folder=repository))
        assert done.log.splitlines() == [
            *(".", "./.venv", "./src", "./src/agent.py", str(repository / ".venv")),
        ]

    def test_with_a_program_that_is_none(self, place: Place, tmp_path: Path) -> None:
        folder = tmp_path / "agent"
        folder.mkdir()
        (folder / "start.sh").write_text("#!/bin/sh\n")
        done = place.run(Agent("a", command=("./start.sh",), folder=folder))
        assert done.outcome.exit_code == 126
        assert done.log == "cannot start ./start.sh: permission denied\n"
        done = place.run(Agent("a", command=("./nowhere",), folder=folder))
        assert done.outcome.exit_code == 127
        assert done.log == "cannot start ./nowhere: no such file or directory\n"


def test_a_workspace_that_cannot_be_laid_out_is_our_own_fault(place: Place) -> None:
    job = place.job(shell="true")
    (job.folder / "home").mkdir()
    with pytest.raises(workspace.SandboxError, match=r"cannot lay out the workspace .*home"):
        place.sandbox().run(job)


class TestNetwork:
    """The agent reaches what the policy says."""

    PROGRAM = """
import json, os, socket, sys, urllib.request
health = os.environ["MLE_VALIDATE_URL"].replace("/validate", "/health")
print(json.load(urllib.request.urlopen(health))["status"])
try:
    print(socket.create_connection(("127.0.0.1", PORT), timeout=5).recv(5).decode())
except OSError as problem:
    print(problem)
"""

    @pytest.fixture
    def program(self) -> str:
        server = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._greet, args=(server,), daemon=True).start()
        return self.PROGRAM.replace("PORT", str(server.getsockname()[1]))

    @staticmethod
    def _greet(server: socket.socket) -> None:
        with server, server.accept()[0] as connection:
            connection.sendall(b"hello")

    def test_open(self, place: Place, program: str) -> None:
        assert place.run(python=program).log == "running\nhello\n"

    def test_none_leaves_the_format_check_only(self, place: Place, program: str) -> None:
        done = place.run(python=program, network="none")
        assert done.log == "running\n[Errno 111] Connection refused\n"

    def test_none_gives_the_contracts_address(self, place: Place) -> None:
        done = place.run(
            shell="echo label > x; curl -sS -F file=@x http://localhost:5000/validate",
            network="none",
        )
        assert json.loads(done.log) == {"result": "Submission is valid."}
        assert done.outcome.format_checks == 1


class TestPreflight:
    """What cannot work is said before anything runs."""

    @staticmethod
    def preflight(agent: Agent, network: str = "open", **options: Any) -> tuple[str, ...]:
        return ProcessSandbox(**options).preflight(agent, demo_limits(), network)

    @pytest.mark.parametrize(
        ("agent", "network", "sentence"),
        [
            (
                Agent("a", image="busybox"),
                "open",
                "agent 'a' has no command that could run outside its image: "
                "use --mle-sandbox=docker",
            ),
            (
                Agent("a", command=("no-such-program", "x")),
                "open",
                "agent 'a': no such command: no-such-program",
            ),
            (
                Agent("a", command=("true",)),
                "allow:pypi.org",
                "the process sandbox cannot enforce --mle-network=allow:pypi.org: "
                "use --mle-sandbox=docker or --mle-network=open",
            ),
            (
                Agent("a", command=("true",), env={"K": "${NO_SUCH_KEY}"}),
                "open",
                "agent 'a' needs the environment variable NO_SUCH_KEY "
                "(its env sets K = '${NO_SUCH_KEY}'): export NO_SUCH_KEY and try again",
            ),
        ],
    )
    def test_refuses(self, agent: Agent, network: str, sentence: str) -> None:
        with pytest.raises(ConfigError) as caught:
            self.preflight(agent, network)
        assert str(caught.value) == sentence

    def test_refuses_a_policy_that_the_kernel_cannot_enforce(self) -> None:
        with pytest.raises(ConfigError) as caught:
            self.preflight(Agent("a", command=("true",)), "none", builders=("none",))
        assert str(caught.value) == (
            "the process sandbox cannot enforce --mle-network=none, the kernel gives us no "
            "network namespace: use --mle-sandbox=docker or --mle-network=open"
        )

    def test_finds_a_command_in_the_agents_folder(self, tmp_path: Path) -> None:
        (tmp_path / "start.sh").write_text("#!/bin/sh\n")
        (tmp_path / "start.sh").chmod(0o755)
        agent = Agent("a", command=("./start.sh",), folder=tmp_path)
        assert self.preflight(agent, "none")[0].startswith("walls: users mounts pids")


def test_a_list_of_hosts_is_refused_for_an_agent_of_a_fixture_too(place: Place) -> None:
    with pytest.raises(ConfigError, match="the process sandbox cannot enforce --mle-network=allow"):
        place.run(shell="true", network="allow:example.com")
