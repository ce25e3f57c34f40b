"""What keeps an agent in is named, and so is what is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sandbox_job import Place

from pytest_mlebench.agent import Agent, AgentContext
from pytest_mlebench.errors import ConfigError, SandboxError
from pytest_mlebench.host.demo_limits import demo_limits
from pytest_mlebench.sandbox.process import landlock, process_sandbox, seccomp
from pytest_mlebench.sandbox.process.order import Builder
from pytest_mlebench.sandbox.process.process_sandbox import ProcessSandbox
from pytest_mlebench.sandbox.process.walls import Strength, missing

NAMESPACES = ("users", "mounts", "pids", "ipc", "uts")
COMPLETE = (*NAMESPACES, "seccomp", "landlock-7", "cgroup")
AGENT = Agent("a", command=("true",))

FALL_BACK = """
from pytest_mlebench.sandbox.process.walls import strongest
found = strongest(offline=False)
print(found.builder)
print(found.problems)
"""


def test_an_ending_names_the_walls(place: Place) -> None:
    done = place.run(shell="true")
    others = [f"landlock-{landlock.version()}"] if landlock.version() else []
    assert done.outcome.walls[:7] == (*NAMESPACES, "seccomp", *others)
    assert done.outcome.details["builder"] == place.builders[0]


def test_an_agent_without_network_has_one_wall_more(place: Place) -> None:
    assert "net" in place.run(shell="true", network="none").outcome.walls


def test_a_function_has_the_same_walls(own_place: Place) -> None:
    def agent(context: AgentContext) -> None:
        sys.stdout.write(
            f"{os.getpid()} {Path('/etc/shadow').exists()} {[*Path('/run').iterdir()]}"
        )

    done = own_place.run(function=agent)
    assert done.log == "2 False []"
    assert done.outcome.walls[:6] == (*NAMESPACES, "seccomp")


def test_where_the_kernel_gives_no_namespaces_the_ending_says_so(open_place: Place) -> None:
    walls = open_place.run(shell="true").outcome.walls
    assert not set(walls) & set(NAMESPACES)
    assert "seccomp" in walls


def test_nothing_is_missing_where_all_is_there() -> None:
    assert missing(COMPLETE) == {}
    assert missing((*COMPLETE, "net"), network="none") == {}


def test_each_wall_that_is_missing_is_named_with_what_it_means() -> None:
    found = missing(())
    assert list(found) == [*NAMESPACES, "seccomp", "landlock", "cgroup"]
    assert found["cgroup"] == "memory and processes are counted, not bounded by the kernel"
    assert list(missing(COMPLETE, network="none")) == ["net"]


@pytest.mark.parametrize(
    ("walls", "network", "words"),
    [
        (
            ("landlock-5", *NAMESPACES),
            "open",
            "version 5 does not stop connections to abstract unix sockets of this host",
        ),
        (("landlock-5", *NAMESPACES), "none", None),
        (
            ("landlock-2",),
            "none",
            "version 2 does not stop truncation of your files and signals to your processes",
        ),
        (("landlock-6",), "open", None),
    ],
)
def test_an_old_landlock_is_not_taken_for_the_whole_of_it(
    walls: tuple[str, ...], network: str, words: str | None
) -> None:
    assert missing(walls, network=network).get("landlock-6") == words


@pytest.mark.parametrize(
    ("wall", "builder"), [("mounts", "none"), ("net", "namespaces"), ("cgroup", "namespaces")]
)
def test_an_agent_does_not_start_without_a_wall_that_is_required(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wall: str, builder: Builder
) -> None:
    """Even if it was there when the session began."""
    place = Place(tmp_path, builders=(builder,), cgroup=False)
    found = Strength(builder, (wall,))
    monkeypatch.setattr(process_sandbox, "strongest", lambda **_: found)
    monkeypatch.setattr(process_sandbox, "missing", lambda *_, **__: {})  # nothing was, then
    job = place.job(shell="echo started")
    with pytest.raises(SandboxError, match=f"cannot confine the agent: without {wall} it must not"):
        place.sandbox(require_walls=True).run(job)
    assert not job.log.exists() or not job.log.read_text()


def test_without_namespaces_nothing_runs_that_must_have_no_network(open_place: Place) -> None:
    with pytest.raises(SandboxError, match="nobody else can give the agent a network of its own"):
        open_place.run(shell="true", network="none")


class TestPreflight:
    """The header says what there is; who wants all of it can insist."""

    @staticmethod
    def preflight(network: str = "open", **options: Any) -> tuple[str, ...]:
        return ProcessSandbox(**options).preflight(AGENT, demo_limits(), network)

    def test_names_the_walls_and_who_built_them(self) -> None:
        line = self.preflight(builders=("namespaces",))[0]
        assert line.startswith("walls: users mounts pids ipc uts seccomp")
        assert line.endswith(" (namespaces)")

    def test_says_what_is_missing(self) -> None:
        lines = self.preflight(builders=("namespaces",), cgroup=False)
        assert lines[1] == (
            "walls missing: no cgroup: memory and processes are counted, not bounded by the kernel"
        )

    def test_refuses_to_start_without_a_wall_that_is_required(self) -> None:
        with pytest.raises(ConfigError) as caught:
            self.preflight(builders=("none",), require_walls=True)
        text = str(caught.value)
        assert text.startswith(
            "--mle-require-walls: the process sandbox is not complete on this host (no users: "
            "the agent has the rights of whoever runs pytest; no mounts: "
        )
        assert text.endswith(
            "use --mle-sandbox=docker, or see SECURITY.md for what each wall needs"
        )

    def test_names_what_is_missing_for_whoever_asks(self) -> None:
        sandbox = ProcessSandbox(builders=("none",), cgroup=False)
        assert sandbox.missing_walls(AGENT)[:5] == NAMESPACES
        assert sandbox.missing_walls(AGENT)[-1] == "cgroup"

    @pytest.mark.skipif(os.geteuid() != 0, reason="root has everything, others seldom a cgroup")
    def test_is_content_where_all_is_there(self) -> None:
        assert len(self.preflight(require_walls=True)) == 1


def test_a_bubblewrap_that_does_not_work_is_passed_over(tmp_path: Path) -> None:
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho bwrap: no permission >&2; exit 1\n")
    program.chmod(0o755)
    variables = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = [sys.executable, "-c", FALL_BACK]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    assert done.stdout == (
        "namespaces\n('bubblewrap: cannot build the walls: bwrap: no permission',)\n"
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="about root")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="util-linux is not installed")
def test_root_that_may_not_mount_gets_the_walls_of_an_ordinary_user(builder: Builder) -> None:
    program = FALL_BACK.replace("offline=False", f"offline=False, builders=({builder!r},)")
    less = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin")
    command = [*less, sys.executable, "-c", program + "print(*found.walls[:5])"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"{builder}\n()\n{' '.join(NAMESPACES)}\n"


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_of_calls_jumps_to_lines_of_its_own(machine: str) -> None:
    code = seccomp.program(machine)
    lines = [code[start : start + 8] for start in range(0, len(code), 8)]
    assert len(lines) < 4096, "BPF_MAXINSNS of linux/bpf_common.h"
    for number, line in enumerate(lines):
        if line[0] & 0x07 == 0x05:  # BPF_JMP: what it skips must be there
            assert number + 1 + max(line[2], line[3]) < len(lines)
    assert lines[-1][0] == 0x06, "it ends by an answer"
