"""Images without an engine on other hosts: the archive is on the controller only."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from host_machines import TWO, HostMachines, RunningSession
from rootless_images import busybox_archive, needs_busybox

pytestmark = [needs_busybox]

Start = Callable[..., RunningSession]

COMMAND = "cat /opt/only-here; cp $DATA_DIR/sample_submission.csv $SUBMISSION_DIR/submission.csv"
AGENT = f"""image = "busybox.tar"
command = ["sh", "-c", "{COMMAND}"]
"""


@pytest.fixture
def agent(tmp_path: Path) -> str:
    """An agent in an image that only the controller has."""
    (tmp_path / "boxed").mkdir()
    busybox_archive(tmp_path / "boxed")
    (tmp_path / "boxed/agent.toml").write_text(AGENT)
    return "--mle-agent=boxed"


def unpacked(hosts: HostMachines, name: str) -> list[tuple[str, int]]:
    """Return the images on a host: their digests, and when each was made."""
    found = hosts.disk(name).joinpath("root/store/.images").glob("*/image.json")
    return [(path.parent.name, path.stat().st_mtime_ns) for path in found]


def test_the_image_is_sent_once_and_unpacked_on_each_host(
    hosts: HostMachines, agent: str, start: Start, tmp_path: Path
) -> None:
    stores = {name: {"data": "/root/store", "slots": 2} for name in hosts.names[:2]}
    option = hosts.write_toml(tmp_path / "hosts.toml", **stores)
    toml = tmp_path / "hosts.toml"
    toml.write_text(toml.read_text().partition("[hosts.h3]")[0])
    session = start(agent, option, *TWO)
    assert session.end() == 0, session.text
    (digest,) = {record["ending"]["image"] for record in session.records().values()}
    assert {record["conditions"]["sandbox"] for record in session.records().values()} == {
        "rootless"
    }
    logs = [path.read_text() for path in session.run.glob("*/seed0/attempt1/run.log")]
    assert logs == ["of the image"] * 2
    before = {name: unpacked(hosts, name) for name in ("h1", "h2")}
    assert [[sha for sha, _ in images] for images in before.values()] == [
        [digest.removeprefix("sha256:")]
    ] * 2
    again = start(agent, option, TWO[0], run="again", log="again")
    assert again.end() == 0, again.text
    assert {name: unpacked(hosts, name) for name in before} == before
    for name in before:
        images = hosts.disk(name) / "root/store/.images"
        assert not list(images.glob(".*")), "what was sent is removed"
    assert not (session.run / ".image.tar").exists()
