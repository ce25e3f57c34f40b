"""Images are read from the archives that people have, and every part must have its digest."""

from __future__ import annotations

import gzip
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from image_archives import (
    digest,
    docker_archive,
    layer,
    member,
    oci_files,
    write_folder,
    write_tar,
)

from pytest_mlebench.errors import ConfigError
from pytest_mlebench.sandbox.rootless import image_archive
from pytest_mlebench.sandbox.rootless.image_archive import opened_archive

LAYERS = [layer(member("a", content=b"one")), layer(member("b", content=b"two" * 1000))]
SETTINGS = {
    "Env": ["PATH=/bin", "EQUALS=a=b", "EMPTY="],
    "User": "nonroot",
    "Entrypoint": ["/entry"],
    "Cmd": ["run", "it"],
}


def as_docker(path: Path) -> Path:
    return docker_archive(path / "image.tar", LAYERS, SETTINGS)


def as_oci_tar(path: Path) -> Path:
    write_tar(path / "oci.tar", oci_files(LAYERS, SETTINGS))
    return path / "oci.tar"


def as_oci_folder(path: Path) -> Path:
    write_folder(path / "layout", oci_files(LAYERS, SETTINGS))
    return path / "layout"


def as_plain_oci(path: Path) -> Path:
    write_tar(path / "plain.tar", oci_files(LAYERS, SETTINGS, pack=bytes))
    return path / "plain.tar"


@pytest.mark.parametrize("write", [as_docker, as_oci_tar, as_oci_folder, as_plain_oci])
def test_every_format_gives_the_same_image(write: Callable[[Path], Path], tmp_path: Path) -> None:
    with opened_archive(write(tmp_path)) as archive:
        facts = archive.facts
        assert dict(facts.env) == {"PATH": "/bin", "EQUALS": "a=b", "EMPTY": ""}
        assert facts.user == "nonroot"
        assert facts.command == ("/entry", "run", "it")
        found = []
        for each in archive.layers:
            with archive.layer(each) as file:
                found.append(file.read())
    assert found == LAYERS
    assert type(facts).from_dict(json.loads(json.dumps(facts.to_dict()))) == facts
    with opened_archive(as_docker(tmp_path)) as other:
        assert other.facts.digest == facts.digest


def spoilt(files: dict[str, bytes], wanted: bytes, by: bytes) -> dict[str, bytes]:
    name = f"blobs/sha256/{digest(wanted).removeprefix('sha256:')}"
    assert name in files
    return files | {name: by}


def read_all(path: Path) -> None:
    with opened_archive(path) as archive:
        for each in archive.layers:
            with archive.layer(each):
                pass


def test_a_layer_with_another_digest_is_refused(tmp_path: Path) -> None:
    path, packed = tmp_path / "bad.tar", gzip.compress(LAYERS[1])
    files = oci_files(LAYERS, pack=lambda data: packed if data == LAYERS[1] else data)
    write_tar(path, spoilt(files, packed, gzip.compress(LAYERS[0])))
    with pytest.raises(ConfigError) as error:
        read_all(path)
    assert f"the image {path} is damaged: its layer blobs/sha256/" in str(error.value)
    assert str(error.value).endswith(f"not {digest(packed)}")


def test_a_layer_that_the_configuration_does_not_name_is_refused(tmp_path: Path) -> None:
    path = docker_archive(tmp_path / "bad.tar", LAYERS)
    files = {"0/layer.tar": LAYERS[1], "1/layer.tar": LAYERS[1]}
    good = _files_of(path)
    write_tar(path, good | files)
    with pytest.raises(ConfigError, match=r"is damaged: its layer 0/layer\.tar has the digest"):
        read_all(path)


@pytest.mark.parametrize("cut", [12, 40])
def test_a_layer_that_cannot_be_unpacked_is_refused(cut: int, tmp_path: Path) -> None:
    write_tar(tmp_path / "b.tar", oci_files(LAYERS, pack=lambda data: gzip.compress(data)[:cut]))
    with pytest.raises(ConfigError, match=r"is damaged: blobs/sha256/\w+ cannot be read: "):
        read_all(tmp_path / "b.tar")


@pytest.mark.parametrize("part", ["config", "manifest"])
def test_a_description_with_another_digest_is_refused(part: str, tmp_path: Path) -> None:
    files = oci_files(LAYERS)
    index = json.loads(files["index.json"])
    name = index["manifests"][1]["digest"]
    if part == "config":
        name = json.loads(files[f"blobs/sha256/{name[7:]}"])["config"]["digest"]
    files[f"blobs/sha256/{name[7:]}"] += b" "
    write_tar(tmp_path / "bad.tar", files)
    with pytest.raises(ConfigError, match=f"is damaged: blobs/sha256/{name[7:]} has the digest"):
        read_all(tmp_path / "bad.tar")


def two_images(files: dict[str, bytes]) -> dict[str, bytes]:
    entries = json.loads(files["manifest.json"])
    return files | {"manifest.json": json.dumps(entries * 2).encode()}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (two_images, "has 2 images: save one image alone"),
        (lambda files: {"x": b""}, "has neither a manifest.json nor an index.json: it must be"),
        (lambda files: files | {"manifest.json": b"{"}, "is not an image that can be read (JSON"),
        (lambda files: files | {"manifest.json": b"[1]"}, "is not an image that can be read (Type"),
        (lambda files: without(files, "1/layer.tar"), "is not complete: 1/layer.tar is missing"),
    ],
)
def test_what_is_no_image_is_refused_in_a_sentence(
    change: Callable[[dict[str, bytes]], dict[str, bytes]], problem: str, tmp_path: Path
) -> None:
    path = docker_archive(tmp_path / "bad.tar", LAYERS)
    write_tar(path, change(_files_of(path)))
    with pytest.raises(ConfigError) as error:
        read_all(path)
    assert str(error.value).startswith(f"the image {path} {problem}")


def without(files: dict[str, bytes], name: str) -> dict[str, bytes]:
    return {key: value for key, value in files.items() if key != name}


def test_an_archive_that_is_not_there_or_packed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none.tar is not there: write it with docker save -o"):
        read_all(tmp_path / "none.tar")
    (tmp_path / "text.tar").write_text("no tar")
    with pytest.raises(ConfigError, match=r"text.tar cannot be read: "):
        read_all(tmp_path / "text.tar")
    (tmp_path / "packed.tar").write_bytes(gzip.compress(as_docker(tmp_path).read_bytes()))
    with pytest.raises(ConfigError, match=r"packed.tar is packed as a whole: gunzip it first"):
        read_all(tmp_path / "packed.tar")


def test_an_image_for_other_machines_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_archive.platform, "machine", lambda: "riscv64")
    with pytest.raises(ConfigError, match=r"has no images for riscv64, of 2 in all: save one"):
        read_all(as_oci_tar(tmp_path))


def test_zstd_needs_its_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(image_archive.importlib, "import_module", missing)
    write_tar(tmp_path / "z.tar", oci_files(LAYERS, pack=lambda data: b"\x28\xb5\x2f\xfd" + data))
    with pytest.raises(ConfigError, match=r"has a layer packed with zstd \(blobs/.*pip install"):
        read_all(tmp_path / "z.tar")


def _files_of(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as tar:
        opened = {one.name: tar.extractfile(one) for one in tar.getmembers()}
        return {name: file.read() for name, file in opened.items() if file is not None}
