"""Sessions that want GPUs, on a host whose driver is a small library of our own."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_nvml import build, fake_gpus
from plugin_session import Session

from pytest_mlebench.host.usage import read_usage

TWO = ("--mle-competition=demo-digits", "--mle-competition=demo-wine-cultivars")
LARGE = 25 * 10**9

LOOKING = """
import os, shutil, time
print("sees", os.environ["CUDA_VISIBLE_DEVICES"], flush=True)
time.sleep({pause})
shutil.copy(os.environ["DATA_DIR"] + "/sample_submission.csv",
            os.environ["SUBMISSION_DIR"] + "/submission.csv")
"""


@pytest.fixture(autouse=True)
def driver(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> pytest.MonkeyPatch:
    """A host with a driver and, for a start, two GPUs."""
    folder: Path = build(tmp_path_factory.mktemp("nvml"))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(folder))
    monkeypatch.setenv("FAKE_GPUS", fake_gpus(LARGE, LARGE))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return monkeypatch


def test_each_attempt_sees_the_gpu_of_its_lease_alone(session: Session) -> None:
    session.run("--mle-agent=dummy", "--mle-prepare=only", *TWO)
    agent = f"--mle-agent={session.agent('looking', LOOKING.format(pause=4))}"
    session.run(agent, "--mle-run=mine", "--mle-gpus=1", "-n2", *TWO).assert_outcomes(passed=2)
    records = session.records("mine")
    seen = []
    for name, record in records.items():
        ((gpu),) = record["ending"]["gpus"]
        folder = session.path / "mle-runs/mine" / name
        assert f"sees {gpu}\n" in (folder / "run.log").read_text()
        used = read_usage(folder / "stats.jsonl")
        assert {(one.gpu, one.gpu_memory) for one in used} == {(40, LARGE / 5), (None, None)}
        assert any(one.memory and one.cpu_seconds for one in used)
        assert record["conditions"]["gpus"] == [
            {"id": gpu, "name": f"Tensor {gpu[4]}", "memory_bytes": LARGE}
        ]
        seen.append(gpu)
    assert sorted(seen) == ["GPU-0000-feed", "GPU-1111-feed"]


def test_as_many_workers_start_as_there_are_gpus(
    session: Session, driver: pytest.MonkeyPatch
) -> None:
    small = ("--mle-gpus=1", "--mle-cpus=0.5", "--mle-memory=1GB")
    arguments = ("--mle-agent=dummy", "-nauto", *small, "--mle-prepare=only", *TWO)
    session.run(*arguments).stdout.fnmatch_lines("*2 workers*")
    driver.setenv("FAKE_GPUS", fake_gpus(LARGE))
    session.run(*arguments).stdout.fnmatch_lines("*1 worker*")


def test_gpus_wanted_and_none_there_is_refused_before_anything_runs(
    session: Session, driver: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    driver.setenv("FAKE_GPUS", "")
    result = session.alone("--mle-agent=dummy", "--mle-gpus=1", TWO[0], *workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines("*this host has none: use --mle-gpus=0 to run without")
    assert not (session.path / "mle-runs").exists()
