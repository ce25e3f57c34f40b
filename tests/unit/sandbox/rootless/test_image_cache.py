"""An image is unpacked once, whole or not at all, and kept while somebody uses it."""

from __future__ import annotations

import multiprocessing
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from image_archives import digest, docker_archive, layer, member, oci_files, write_folder

from pytest_mlebench.agent import Agent
from pytest_mlebench.cli import main
from pytest_mlebench.errors import ConfigError, InfrastructureError
from pytest_mlebench.sandbox.docker.images import Images
from pytest_mlebench.sandbox.rootless import image_archive
from pytest_mlebench.sandbox.rootless.image_cache import FOLDER, Bring, ImageCache
from pytest_mlebench.sandbox.rootless.mount_points import FILES, FOLDERS, make_mount_point

ONE = layer(member("etc/passwd", content=b"root:x:0:0::/root:/bin/sh\n"), member("opt/x"))


def image(folder: Path, *layers: bytes) -> Agent:
    archive = docker_archive(folder / "image.tar", [ONE, *layers], {"Cmd": ["/run"]})
    return Agent("tester", image=str(archive))


def test_an_image_is_unpacked_once(tmp_path: Path) -> None:
    agent = image(tmp_path)
    first = ImageCache(tmp_path / "cache").ensure(agent)
    (first.root / "mark").touch()
    again = ImageCache(tmp_path / "cache").ensure(agent)
    assert (again.root / "mark").exists()
    assert again.facts == first.facts
    assert first.root.parent.name == first.facts.digest.removeprefix("sha256:")
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700


def test_the_digest_of_an_archive_needs_no_unpacking(tmp_path: Path) -> None:
    agent = image(tmp_path)
    cache = ImageCache(tmp_path / "cache")
    known = cache.digest(agent)
    assert not (tmp_path / "cache").exists()
    assert cache.ensure(agent).facts.digest == known


def sent(agent: Agent, folder: Path) -> Bring:
    """Return what brings an agent's image as another host saves it."""
    ImageCache(folder / "other").save(agent, folder / "saved")
    return lambda: iter([(folder / "saved").read_bytes()])


def never() -> Iterator[bytes]:
    raise AssertionError("it was asked for")


def test_an_image_of_another_host_is_sent_once(tmp_path: Path) -> None:
    agent = image(tmp_path)
    known = ImageCache(tmp_path / "other").digest(agent)
    bring = sent(agent, tmp_path)
    there = Agent("tester", image=str(tmp_path / "away" / "image.tar"))
    found = ImageCache(tmp_path / "cache").ensure_same(there, known, bring)
    assert found.facts.digest == known
    again = ImageCache(tmp_path / "cache").ensure_same(there, known, never)
    assert again.root == found.root
    assert not list((tmp_path / "cache").glob(".*"))


def test_the_same_file_in_the_same_place_is_taken_instead(tmp_path: Path) -> None:
    agent = image(tmp_path)
    cache = ImageCache(tmp_path / "cache")
    known = cache.digest(agent)
    assert cache.ensure_same(agent, known, never).facts.digest == known


def test_another_image_than_the_expected_one_is_refused(tmp_path: Path) -> None:
    agent = image(tmp_path)
    with pytest.raises(ConfigError, match=r"sha256:\w+ was sent in the place of sha256:0"):
        ImageCache(tmp_path / "cache").ensure_same(
            Agent("tester", image="/away.tar"), f"sha256:{'0' * 64}", sent(agent, tmp_path)
        )


def test_an_image_that_nobody_can_send_is_named(tmp_path: Path) -> None:
    def lost() -> Iterator[bytes]:
        raise InfrastructureError("the connection to the controller is lost")
        yield b""

    with pytest.raises(ConfigError, match=r"^the image /away\.tar is not here, and was not sent"):
        ImageCache(tmp_path / "cache").ensure_same(
            Agent("tester", image="/away.tar"), f"sha256:{'0' * 64}", lost
        )
    assert not list((tmp_path / "cache").glob(".*"))


def test_a_folder_of_ocis_layout_is_sent_as_a_file(tmp_path: Path) -> None:
    write_folder(tmp_path / "layout", oci_files([ONE]))
    agent = Agent("tester", image=f"{tmp_path}/layout")
    known = ImageCache(tmp_path / "other").digest(agent)
    bring = sent(agent, tmp_path)
    there = Agent("tester", image="/away/layout")
    assert ImageCache(tmp_path / "cache").ensure_same(there, known, bring).facts.digest == known


def test_places_for_mounts_are_made_and_are_no_links(tmp_path: Path) -> None:
    links = layer(
        *(member(name, tarfile.SYMTYPE, linkname="/etc") for name in ("tmp", "home/data")),
        member("etc/resolv.conf", tarfile.SYMTYPE, linkname="/run/resolv.conf"),
        member("home/instructions.txt", tarfile.DIRTYPE),
    )
    root = ImageCache(tmp_path / "cache").ensure(image(tmp_path, links)).root
    for target in FOLDERS:
        assert (root / target[1:]).is_dir()
        assert not (root / target[1:]).is_symlink()
    for target in FILES:
        assert (root / target[1:]).is_file()
        assert not (root / target[1:]).is_symlink()


def test_a_link_above_a_place_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    link = layer(member("home", tarfile.SYMTYPE, linkname=str(outside)))
    with pytest.raises(ConfigError) as error:
        ImageCache(tmp_path / "cache").ensure(image(tmp_path, link))
    assert str(error.value) == (
        "the image has a link or a file at 'home', where a folder is needed for /home/agent"
    )
    assert list(outside.iterdir()) == []
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["locks"]


def test_a_mount_does_not_take_the_place_of_something_else(tmp_path: Path) -> None:
    root = ImageCache(tmp_path / "cache").ensure(image(tmp_path)).root
    make_mount_point(root, "/models/large", folder=True)
    assert (root / "models/large").is_dir()
    with pytest.raises(ConfigError, match=r"something else at /opt/x than what is to be mounted"):
        make_mount_point(root, "/opt/x", folder=True)
    with pytest.raises(ConfigError, match=r"nothing can be mounted at '/a/../../b' in an image"):
        make_mount_point(root, "/a/../../b", folder=True)


def test_a_damaged_image_leaves_nothing_behind(tmp_path: Path) -> None:
    agent = image(tmp_path)
    path = tmp_path / "image.tar"
    path.write_bytes(path.read_bytes().replace(b"root:x:0:0", b"evil:x:0:0"))
    with pytest.raises(ConfigError, match=f"is damaged: its layer .* not {digest(ONE)}"):
        ImageCache(tmp_path / "cache").ensure(agent)
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["locks"]


def test_what_a_killed_process_left_is_made_anew(tmp_path: Path) -> None:
    agent = image(tmp_path)
    cache = ImageCache(tmp_path / "cache")
    name = cache.digest(agent).removeprefix("sha256:")
    for partial in (f".{name}.partial", name):
        (tmp_path / "cache" / partial / "root" / "stale").mkdir(parents=True)
    root = cache.ensure(agent).root
    assert (root / "opt/x").is_file()
    assert not (root / "stale").exists()
    assert not (tmp_path / "cache" / f".{name}.partial").exists()


def _ensure(folder: Path) -> str:
    agent = Agent("tester", image=str(folder / "image.tar"))
    root = ImageCache(folder / "cache").ensure(agent).root
    return f"{root.stat().st_ino} {(root / 'opt/x').is_file()}"


def test_several_processes_unpack_it_once(tmp_path: Path) -> None:
    image(tmp_path)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert len(set(pool.map(_ensure, [tmp_path] * 4))) == 1


def test_an_image_for_another_machine_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = image(tmp_path)
    monkeypatch.setattr(image_archive.platform, "machine", lambda: "riscv64")
    with pytest.raises(ConfigError, match=r"is for \w+, and this machine is riscv64"):
        ImageCache(tmp_path / "cache").ensure(agent)


def test_a_cache_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"cannot keep an unpacked image in .*: choose another"):
        ImageCache(tmp_path / "file" / "cache").ensure(image(tmp_path))


def test_an_image_on_an_engine_needs_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(ConfigError, match=r"agent 'x' has its image on a container engine .*save"):
        ImageCache(tmp_path / "cache").ensure(Agent("x", image="python:3"))


def test_an_engine_does_not_take_an_archive(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"is an archive, /.*image.tar: docker load it and give"):
        Images(None, tmp_path).ensure(image(tmp_path))  # type: ignore[arg-type]  # it is not asked


def test_clean_removes_what_no_session_uses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    monkeypatch.setenv("MLEBENCH_LEASES_DIR", str(tmp_path / "leases"))
    cache = ImageCache(tmp_path / FOLDER)
    root = cache.ensure(image(tmp_path)).root
    command = ["clean", "--cache", f"--data-dir={tmp_path}", f"--runs-dir={tmp_path}/runs"]
    main(command)
    assert root.is_dir(), "it is in use"
    for descriptor in cache._held.values():
        os.close(descriptor)
    main([*command, "--dry-run"])
    assert f"would remove unpacked image {root.parent}" in capsys.readouterr().out
    assert root.is_dir()
    main(command[:1] + command[2:])
    assert root.is_dir(), "only with --cache"
    main(command)
    assert f"removed unpacked image {root.parent}" in capsys.readouterr().out
    assert not root.parent.exists()
    assert ImageCache(tmp_path / FOLDER).ensure(image(tmp_path)).root == root
