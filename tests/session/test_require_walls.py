"""Which walls an agent has is said and recorded; who wants all of them can insist."""

from __future__ import annotations

from pathlib import Path

import pytest
from disks import needs_root, run_with_mounts, tiny
from plugin_session import Session

from pytest_mlebench.sandbox.process import own_disk

ONE = "--mle-competition=demo-wine-cultivars"
NO_CGROUPS = tiny(Path("/sys/fs/cgroup"), "4k")


@needs_root
def test_no_agent_starts_where_a_wall_is_missing_that_is_required(session: Session) -> None:
    done = run_with_mounts(
        NO_CGROUPS, "--mle-agent=dummy", ONE, "--mle-require-walls", cwd=session.path
    )
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert (
        "ERROR: --mle-require-walls: the process sandbox is not complete on this host (no cgroup: "
        "memory and processes are counted, not bounded by the kernel): use --mle-sandbox=docker, "
        "or see SECURITY.md for what each wall needs"
    ) in done.stderr
    assert not (session.path / "mle-runs").exists()


@needs_root
def test_header_record_and_report_name_the_walls(session: Session) -> None:
    done = run_with_mounts(NO_CGROUPS, "--mle-agent=dummy", ONE, "--mle-run=r", cwd=session.path)
    assert done.returncode == 0, done.stdout
    header = next(line for line in done.stdout.splitlines() if line.startswith("walls: "))
    assert header.startswith("walls: users mounts pids ipc uts seccomp")
    assert "\nwalls missing: no cgroup: memory and processes are counted" in done.stdout
    (record,) = session.records("r").values()
    walls = " ".join(record["ending"]["walls"])
    assert header.startswith(f"walls: {walls} (")
    assert session.report("mle-runs/r/report.json")["disclosure"]["walls"] == walls


@needs_root
def test_an_attempt_that_may_take_an_hour_has_a_disk_of_its_own(session: Session) -> None:
    if problem := own_disk.find_problem():
        pytest.skip(f"no disks here: {problem}")
    result = session.run("--mle-agent=dummy", ONE, "--mle-time-limit=1h", "--mle-run=r")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["walls: users mounts * disk (*"])
    (record,) = session.records("r").values()
    assert record["ending"]["walls"][-1] == "disk"
    assert not [*session.path.glob("mle-runs/r/*/seed*/attempt*/home")]


@needs_root
def test_a_run_that_requires_walls_requires_them_when_it_is_resumed(session: Session) -> None:
    start = ("--mle-agent=dummy", ONE, "--mle-run=r")
    session.run(*start, "--mle-require-walls").assert_outcomes(passed=1)
    done = run_with_mounts(NO_CGROUPS, *start, cwd=session.path)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--mle-require-walls" in done.stderr


def test_nobody_vouches_for_a_sandbox_of_a_hook(session: Session) -> None:
    session.pytester.makeconftest(
        """
        def pytest_mle_sandbox(config, name, agent):
            class Mine:
                name = "mine"
            return Mine()
        """
    )
    result = session.run("--mle-agent=dummy", ONE, "--mle-require-walls")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*--mle-require-walls: nobody can tell the walls of the sandbox 'mine'*"]
    )


def test_the_ini_twin_of_a_switch_is_on_or_off(session: Session) -> None:
    session.pytester.makeini("[pytest]\nmle_require_walls = yes\n")
    result = session.run("--mle-agent=dummy", ONE)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*mle_require_walls in tox.ini must be one of on, off, given: yes"]
    )
