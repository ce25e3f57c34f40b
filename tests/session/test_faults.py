"""Faults of a long session are said in a sentence, cost nothing that was finished, and mend."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from disks import needs_root, read_only, run_with_mounts, tiny
from plugin_session import Session

ONE = "--mle-competition=demo-wine-cultivars"
TWO = (ONE, "--mle-competition=demo-digits")

FILL = """
    import contextlib, os, pathlib

    def fill():
        folder = pathlib.Path("mle-runs/.ballast")
        with contextlib.suppress(OSError):
            folder.mkdir()
            for number in range(1_000_000):  # a disk without inodes is as full as any
                (folder / str(number)).touch()
"""
MOMENTS = {
    "plan, and all that comes after": """
    import pytest

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish():
        fill()
""",
    "record": """
    def pytest_mle_before_run(job):
        if job.competition == "demo-wine-cultivars":
            fill()
""",
}


@needs_root
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_disk_that_is_full_is_a_sentence_and_the_run_resumes(
    session: Session, moment: str
) -> None:
    (session.path / "mle-runs").mkdir()
    session.pytester.makeconftest(
        FILL + MOMENTS[moment] + "\n    if os.environ.get('EMPTY'):\n        fill = lambda: None\n"
    )
    script = session.path / "twice.sh"
    # both sessions in one namespace: the disk is gone with it
    script.write_text(
        f'{sys.executable} -m pytest -p no:cacheprovider "$@"; echo status $?\n'
        "rm -rf mle-runs/.ballast\n"
        f'EMPTY=1 {sys.executable} -m pytest -p no:cacheprovider "$@"; echo status $?\n'
    )
    done = run_with_mounts(
        tiny(session.path / "mle-runs", "4g,nr_inodes=50000"),
        *("--mle-agent=dummy", *TWO, "--mle-run=r"),
        cwd=session.path,
        program=("sh", str(script)),
    )
    first, _, second = done.stdout.partition("status 1\n")
    assert second, done.stdout + done.stderr
    assert "No space left on device" in first
    for word in ("INTERNALERROR", "Traceback", "Errno"):
        assert word not in done.stdout + done.stderr
    assert "2 passed" in second
    assert second.rstrip().endswith("status 0")


@needs_root
def test_a_store_that_cannot_be_written_ends_it_before_anything_runs(session: Session) -> None:
    store = session.path / "store"
    store.mkdir()
    done = run_with_mounts(
        read_only(store), "--mle-agent=dummy", ONE, f"--mle-data-dir={store}", cwd=session.path
    )
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert (
        f"ERROR: --mle-data-dir is in a folder that cannot be written, {store} (Read-only file "
        f"system), given: {store}: choose another"
    ) in done.stderr
    assert not (session.path / "mle-runs").exists()


@needs_root
def test_leases_that_cannot_be_written_end_it_before_anything_runs(session: Session) -> None:
    leases = Path(os.environ["MLEBENCH_LEASES_DIR"])
    leases.mkdir(mode=0o700)
    done = run_with_mounts(
        read_only(leases), "--mle-agent=dummy", ONE, "--mle-cpus=1", cwd=session.path
    )
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert (
        f"ERROR: cannot keep leases in {leases}: Read-only file system: choose another folder with "
        "MLEBENCH_LEASES_DIR"
    ) in done.stderr
    assert not (session.path / "mle-runs").exists()


def test_leases_where_others_may_write_end_it_before_anything_runs(session: Session) -> None:
    leases = Path(os.environ["MLEBENCH_LEASES_DIR"])
    leases.mkdir()
    leases.chmod(0o777)
    result = session.run("--mle-agent=dummy", ONE, "--mle-cpus=1")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*others may write there (mode 0777): chmod 700 {leases}"])


@pytest.mark.parametrize("option", ["runs-dir", "data-dir"])
def test_a_path_that_is_not_utf8_is_refused_in_words(session: Session, option: str) -> None:
    path = os.fsdecode(os.fsencode(session.path) + b"/caf\xe9")
    result = session.run("--mle-agent=dummy", ONE, f"--mle-{option}={path}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    sentence = f"the path {session.path}/caf\\xe9 is not valid UTF-8: choose another folder"
    assert f"ERROR: {sentence}" in result.stderr.str()
