"""The commands beside pytest that speak with the engine."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
from docker_images import BUSYBOX
from docker_jobs import JobMaker

from pytest_mlebench.agent import Agent
from pytest_mlebench.cli import main
from pytest_mlebench.sandbox.docker import DockerSandbox, Engine
from pytest_mlebench.sandbox.docker.base_image import RECIPE
from pytest_mlebench.sandbox.docker.cleanup import find_cache
from pytest_mlebench.sandbox.docker.images import Images
from pytest_mlebench.sandbox.docker.labels import COPIED, this_process

# Stands in for Python's own image, which no test can pull: its programs say what they are told.
STAND_IN = f"""
FROM {BUSYBOX}
RUN printf '#!/bin/sh\\necho apt-get $@\\n' > /usr/bin/apt-get \\
    && printf '#!/bin/sh\\necho python3 $@\\n' > /usr/bin/python3 \\
    && printf '#!/bin/sh\\necho nonroot:x:1000:1000::/home/nonroot:/bin/bash >> /etc/passwd\\n\\
echo nonroot:x:1000: >> /etc/group\\nmkdir /home/nonroot\\n' > /usr/bin/useradd \\
    && chmod 755 /usr/bin/apt-get /usr/bin/python3 /usr/bin/useradd
"""


@pytest.fixture
def address(engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """The engine's address, in the environment as for any user."""
    monkeypatch.setenv("DOCKER_HOST", engine.address)
    monkeypatch.chdir(tmp_path)
    return engine.address


@pytest.fixture
def stand_in(engine: Engine, tmp_path: Path) -> str:
    """An image that the recipe can be built on without a network."""
    folder = tmp_path / "stand-in"
    folder.mkdir()
    (folder / "Dockerfile").write_text(f"{STAND_IN}ENV UNIQUE={uuid4().hex}\n")
    return Images(engine, tmp_path / "cache").build(folder, "stand-in").name


def test_the_base_image_is_built_and_runs_an_agent(
    address: str,
    engine: Engine,
    sandbox: DockerSandbox,
    make_job: JobMaker,
    stand_in: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tag = "mlebench-test/base:cuda"
    options = ["--cuda", "--base", stand_in, "--tag", tag]
    assert main(["build-image", *options]) == 0
    first, second, third = capsys.readouterr().out.splitlines()
    assert first == f"building {tag} on {engine.facts.describe()}"
    assert second.startswith(f"{tag}: ")
    log = Path(third.removeprefix("log: ")).read_text()
    assert "python3 -m pip install -r /opt/requirements.txt" in log.splitlines()
    assert main(["build-image", *options, "--log-dir", "elsewhere"]) == 0  # nothing to do
    assert capsys.readouterr().out.splitlines() == [first, second]
    script = "id -un; echo $PATH; cat /opt/requirements.txt; touch /home/nonroot/x && echo mine"
    job = make_job(agent=Agent(name="based", image=tag, command=("sh", "-c", script)))
    sandbox.run(job)
    lines = job.log.read_text().splitlines()
    assert lines[:2] == ["nonroot", "/home/nonroot/venv/bin:/usr/bin:/usr/sbin"]
    assert lines[2:-1] == (RECIPE / "cuda.txt").read_text().splitlines()
    assert lines[-1] == "mine"


@pytest.mark.parametrize("variant", ["cpu", "cuda"])
def test_every_package_of_the_recipe_is_pinned(variant: str) -> None:
    lines = (RECIPE / f"{variant}.txt").read_text().splitlines()
    assert all("==" in line for line in lines)
    wanted = [
        line for line in (RECIPE / f"{variant}.in").read_text().splitlines() if line[0] != "#"
    ]
    pinned = {line.partition("==")[0] for line in lines}
    assert set(wanted) <= pinned
    assert ("torch" in pinned) is (variant == "cuda")
    assert any("nvidia" in name for name in pinned) is (variant == "cuda")


def test_clean_removes_orphans_and_says_so(
    address: str, engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = this_process().labels() | {"pytest-mlebench.started": "0"}
    name = "mlebench-test-clean"
    engine.api.create_container(BUSYBOX, ["true"], name=name, labels=labels)
    assert main(["clean", "--dry-run"]) == 0
    line = f"container {name} (left by process {labels['pytest-mlebench.pid']})"
    assert f"would remove {line}" in capsys.readouterr().out.splitlines()
    assert main(["clean"]) == 0
    assert f"removed {line}" in capsys.readouterr().out.splitlines()
    assert engine.api.containers(all=True, filters={"name": name}) == []
    assert main(["clean"]) == 0
    assert capsys.readouterr().out == "nothing to remove\n"


def test_clean_removes_what_is_kept_only_when_asked(
    address: str,
    engine: Engine,
    sandbox: DockerSandbox,
    make_job: JobMaker,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "Dockerfile").write_text(f"FROM {BUSYBOX}\nENV UNIQUE={uuid4().hex}\n")
    agent = Agent(name="gone", build=tmp_path / "x", command=("true",))
    kept = sandbox.prepare(agent).name
    engine.api.create_volume("mlebench-test-copied", labels={COPIED: "demo"})
    main(["clean"])
    assert engine.api.images(kept)
    main(["clean", "--cache", "--dry-run"])
    assert f"would remove image {kept}\n" in capsys.readouterr().out
    assert engine.api.images(kept)
    engine.api.remove_image(kept)  # others' tests need theirs: not by the command itself
    assert sandbox.run(make_job(agent=agent)).exit_code == 0  # it is made again
    assert sandbox.prepare(agent).name == kept
    names = {item.describe() for item in find_cache(engine)}
    assert names >= {f"image {kept}", "volume mlebench-test-copied"}
    engine.api.remove_volume("mlebench-test-copied")


def test_the_doctor_tells_what_is_there_and_what_is_not(
    address: str, engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["doctor"])
    text = capsys.readouterr().out
    assert f"ok      engine: {engine.facts.describe()} at {address}" in text
    assert "disk of " in text
    if engine.facts.cpus < 36:
        assert (
            f"note    CPUs: {engine.facts.cpus}, the standard limit is 36\n"
            "        -> --mle-cpus lowers it, which the report discloses\n"
        ) in text
    assert "pytest-mlebench/base:cpu" in text


def test_without_an_engine_the_doctor_says_how_to_get_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KAGGLE_API_TOKEN", "KAGGLE_USERNAME", "KAGGLE_KEY", "KAGGLE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    store = ("--data-dir", str(tmp_path / "store"))
    assert main(["doctor", "--runs-dir", str(tmp_path), *store]) == 1
    text = capsys.readouterr().out
    assert f"note    dataset store {tmp_path}/store: 0 of 75 competitions of MLE-bench\n" in text
    assert "note    no Kaggle credentials: only prepared datasets and the demo split" in text
    assert "walls: " in text
    assert "missing container engine\n" in text
    assert "point DOCKER_HOST at one that runs" in text
