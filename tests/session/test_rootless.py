"""An agent that is only in an image runs in a session without an engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from docker_images import files_of_image
from image_archives import docker_archive, layer, member
from plugin_session import Session
from rootless_images import needs_busybox

pytestmark = needs_busybox

ONE = "--mle-competition=demo-wine-cultivars"
AGENT = b"""#!/bin/sh
cp /home/data/sample_submission.csv /home/submission/submission.csv
/home/validate_submission.sh /home/submission/submission.csv
"""


@pytest.fixture
def image(session: Session) -> Path:
    """The archive of an image with an agent in it, and beside it what declares the agent."""
    own = layer(member("home/agent/start.sh", content=AGENT))
    folder = session.path / "packed"
    folder.mkdir()
    (folder / "agent.toml").write_text('image = "image.tar"\nnetwork = "none"\n')
    return docker_archive(folder / "image.tar", [files_of_image(python=False), own])


def test_a_session_runs_what_is_in_the_archive(
    session: Session, image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{session.path}/none.sock")
    store = session.path / "store"
    options = ("--mle-agent=packed", ONE, "--mle-run=r", f"--mle-data-dir={store}")
    result = session.run(*options)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            f"image: {image} (sha256:*)",
            "walls: users mounts pids ipc uts net seccomp*",
            "not enforced without root: a quota of CPUs*",
        ]
    )
    (record,) = session.records("r").values()
    assert record["conditions"]["sandbox"] == "rootless"
    assert record["ending"]["format_checks"] == 1
    disclosure = session.report("mle-runs/r/report.json")["disclosure"]
    assert disclosure["sandbox"] == "rootless"
    assert disclosure["image"] == record["ending"]["image"]
    assert "mounts" in disclosure["walls"]
    assert any(note.startswith("not enforced without root") for note in disclosure["notes"])
    assert (store / ".images" / record["ending"]["image"][7:] / "root").is_dir()
    session.run(*options).stdout.fnmatch_lines(["*1 passed*"])
    assert len(session.records("r")) == 1, "the same image is the same agent"
    docker_archive(image, [files_of_image(python=False), layer(member("home/agent/start.sh"))])
    result = session.run(*options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*was made under other conditions (agent image was sha256:*"])


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--mle-network=allow:a.org",), "the rootless sandbox cannot enforce --mle-network=allow"),
        (("--mle-sandbox=docker",), "docker load it and give agent.toml its name"),
        (("--mle-sandbox=process",), "has no command that could run outside its image"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_runs(
    session: Session, image: Path, options: tuple[str, ...], problem: str
) -> None:
    result = session.run("--mle-agent=packed", ONE, f"--mle-data-dir={session.path}/s", *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert problem in result.stderr.str()
    assert not (session.path / "mle-runs").exists()
    assert not (session.path / "s").exists()
