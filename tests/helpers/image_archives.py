"""Archives of images, made by hand: what ``docker save`` and the tools of OCI write."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), "?")


def member(name: str, kind: bytes = tarfile.REGTYPE, **facts: Any) -> tuple[tarfile.TarInfo, bytes]:
    """Return an entry of a layer."""
    content = facts.pop("content", b"")
    info = tarfile.TarInfo(name)
    info.type, info.size, info.mtime = kind, len(content), 1_500_000_000
    info.mode = 0o755 if kind == tarfile.DIRTYPE else 0o644
    for key, value in facts.items():
        setattr(info, key, value)
    return info, content


def layer(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    """Return a layer as a tar."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for info, content in members:
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def digest(data: bytes) -> str:
    """Return what a blob is known by."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def configuration(layers: Sequence[bytes], settings: Mapping[str, Any] | None = None) -> bytes:
    """Return the configuration of an image."""
    described = {
        "architecture": ARCHITECTURE,
        "os": "linux",
        "config": {"Env": ["PATH=/usr/bin:/usr/sbin"], **(settings or {})},
        "rootfs": {"type": "layers", "diff_ids": [digest(each) for each in layers]},
    }
    return json.dumps(described).encode()


def docker_archive(
    path: Path, layers: Sequence[bytes], settings: Mapping[str, Any] | None = None
) -> Path:
    """Write what ``docker save`` writes."""
    config = configuration(layers, settings)
    name = f"{digest(config).removeprefix('sha256:')}.json"
    names = [f"{number}/layer.tar" for number in range(len(layers))]
    manifest = [{"Config": name, "RepoTags": ["test:1"], "Layers": names}]
    files = dict(zip(names, layers, strict=True))
    write_tar(path, {**files, name: config, "manifest.json": json.dumps(manifest).encode()})
    return path


def oci_files(
    layers: Sequence[bytes], settings: Mapping[str, Any] | None = None, *, pack: Any = gzip.compress
) -> dict[str, bytes]:
    """Return the files of an OCI layout whose layers are packed."""
    blobs = {}

    def put(data: bytes, kind: str) -> dict[str, Any]:
        blobs[f"blobs/sha256/{digest(data).removeprefix('sha256:')}"] = data
        kind = f"application/vnd.oci.image.{kind}"
        return {"mediaType": kind, "digest": digest(data), "size": len(data)}

    config = put(configuration(layers, settings), "config.v1+json")
    packed = [put(pack(each), "layer.v1.tar+gzip") for each in layers]
    manifest = {"schemaVersion": 2, "config": config, "layers": packed}
    ours = put(json.dumps(manifest).encode(), "manifest.v1+json")
    ours["platform"] = {"architecture": ARCHITECTURE, "os": "linux"}
    other = {**ours, "digest": digest(b"other"), "platform": {"architecture": "s390x"}}
    index = {"schemaVersion": 2, "manifests": [other, ours]}
    layout = json.dumps({"imageLayoutVersion": "1.0.0"}).encode()
    return {"oci-layout": layout, "index.json": json.dumps(index).encode(), **blobs}


def write_tar(path: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a tar."""
    path.write_bytes(layer(*(member(name, content=data) for name, data in files.items())))


def write_folder(path: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder."""
    for name, data in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
