"""An image in a file or a folder, as ``docker save`` and the tools of OCI write it.

Everything in it is known by its sha256, from the list of images down to each layer, and nothing is
believed that has another. Formats: the Image Layout and Image Manifest of the OCI's image-spec, and
the ``manifest.json`` of Docker's archives.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib
import json
import platform
import re
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Protocol, cast

from pytest_mlebench.errors import ConfigError

_MAX_JSON_BYTES = 16 << 20
_MAX_NESTING = 4  # indexes that list indexes
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_BLOB = re.compile(r"blobs/sha256/([0-9a-f]{64})")
_CONFIG = re.compile(r"([0-9a-f]{64})\.json")
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"  # RFC 1952, RFC 8878
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}  # uname's names and Go's

_MALFORMED = (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError)


@dataclass(frozen=True)
class ImageFacts:
    """What an image says of itself."""

    digest: str  # of its configuration, which has those of all layers
    env: Mapping[str, str]
    user: str
    command: tuple[str, ...]  # what the image itself starts
    architecture: str

    def to_dict(self) -> dict[str, Any]:
        """Return the facts in JSON types."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ImageFacts:
        """Return the facts that ``to_dict`` wrote."""
        return cls(**{**data, "command": tuple(data["command"])})


@dataclass(frozen=True)
class Layer:
    """One layer, as it is in an archive."""

    blob: str
    digest: str | None  # of the blob as it is there, if anybody says
    diff_id: str  # of the tar in it


class Blobs(Protocol):
    """Where the parts of an image are."""

    def open(self, name: str) -> IO[bytes]:
        """Return a part by its name; KeyError if it is not there."""


class ImageArchive:
    """An archive that is open: what is in it, and the way to its layers."""

    def __init__(self, path: Path, blobs: Blobs) -> None:
        self._path = path
        self._blobs = blobs
        try:
            self.facts, self.layers = self._read()
        except _MALFORMED as problem:
            raise self._error(f"is not an image that can be read ({_name(problem)})") from None

    @contextmanager
    def layer(self, layer: Layer) -> Iterator[Hashed]:
        """Yield a layer's tar; what was read of it has the digests it should have, or an error."""
        with self._open(layer.blob) as file:
            packed = Hashed(file)
            unpacked = Hashed(self._unpacked(packed, layer))
            yield unpacked
            try:
                unpacked.drain()
                packed.drain()
            except tarfile.ReadError as problem:
                raise self._error(f"is damaged: {layer.blob} cannot be read: {problem}") from None
        for hashed, wanted in ((packed, layer.digest), (unpacked, layer.diff_id)):
            if wanted is not None and hashed.digest != wanted:
                raise self._error(
                    f"is damaged: its layer {layer.blob} has the digest {hashed.digest}, "
                    f"not {wanted}"
                )

    def _unpacked(self, packed: Hashed, layer: Layer) -> Any:
        magic = packed.peek(4)
        if magic.startswith(_GZIP):
            return gzip.GzipFile(fileobj=cast(IO[bytes], packed), mode="rb")  # it only reads
        if magic != _ZSTD:
            return packed
        try:
            zstandard = importlib.import_module("zstandard")  # late on purpose: optional
        except ImportError:
            raise self._error(
                f"has a layer packed with zstd ({layer.blob}): pip install zstandard, or write the "
                "image with gzip"
            ) from None
        return zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)

    def _read(self) -> tuple[ImageFacts, tuple[Layer, ...]]:
        try:
            entries = json.loads(self._text("manifest.json"))
        except KeyError:
            return self._read_oci()
        if len(entries) != 1:
            raise self._error(f"has {len(entries)} images: save one image alone")
        return self._read_docker(entries[0])

    def _read_docker(self, entry: Mapping[str, Any]) -> tuple[ImageFacts, tuple[Layer, ...]]:
        name = str(entry["Config"])
        named = _BLOB.fullmatch(name) or _CONFIG.fullmatch(name)
        config = self._text(name, f"sha256:{named[1]}" if named else None)
        blobs = []
        for blob in map(str, entry["Layers"]):
            digest = _BLOB.fullmatch(blob)
            blobs.append((blob, f"sha256:{digest[1]}" if digest else None))
        return self._described(config, blobs)

    def _read_oci(self) -> tuple[ImageFacts, tuple[Layer, ...]]:
        try:
            listed = json.loads(self._text("index.json"))["manifests"]
        except KeyError:
            raise self._error(
                "has neither a manifest.json nor an index.json: it must be what docker save, "
                "podman save or skopeo copy … oci: writes"
            ) from None
        for _ in range(_MAX_NESTING):
            digest = str(self._choose(listed)["digest"])
            found = json.loads(self._text(_blob(digest), digest))
            if "layers" in found:
                break
            listed = found["manifests"]
        config = str(found["config"]["digest"])
        blobs = [(_blob(one["digest"]), str(one["digest"])) for one in found["layers"]]
        return self._described(self._text(_blob(config), config), blobs)

    def _choose(self, manifests: list[Mapping[str, Any]]) -> Mapping[str, Any]:
        """Return the one manifest that is for this machine."""
        own = host_architecture()
        fitting = [
            one
            for one in manifests
            if (place := one.get("platform") or {}).get("architecture", own) == own
            and place.get("os", "linux") == "linux"
        ]
        if len(fitting) != 1:
            raise self._error(
                f"has {len(fitting) or 'no'} images for {own}, of {len(manifests)} in all: "
                "save one image for this machine alone"
            )
        return fitting[0]

    def _described(
        self, text: bytes, blobs: Sequence[tuple[str, str | None]]
    ) -> tuple[ImageFacts, tuple[Layer, ...]]:
        described = json.loads(text)
        settings = described.get("config") or {}
        ids = [str(each) for each in described["rootfs"]["diff_ids"]]
        if len(ids) != len(blobs) or not all(map(_DIGEST.fullmatch, ids)):
            raise self._error(f"has {len(blobs)} layers and names {len(ids)}")
        pairs = (str(line).partition("=") for line in settings.get("Env") or ())
        words = (*(settings.get("Entrypoint") or ()), *(settings.get("Cmd") or ()))
        facts = ImageFacts(
            digest=f"sha256:{hashlib.sha256(text).hexdigest()}",
            env={key: value for key, _, value in pairs},
            user=str(settings.get("User") or ""),
            command=tuple(map(str, words)),
            architecture=str(described.get("architecture", "?")),
        )
        layers = (Layer(*blob, diff_id) for blob, diff_id in zip(blobs, ids, strict=True))
        return facts, tuple(layers)

    def _text(self, name: str, digest: str | None = None) -> bytes:
        """Return a small part, whose digest is compared with the one that somebody gave."""
        with self._blobs.open(name) as file:
            text = file.read(_MAX_JSON_BYTES + 1)
        if len(text) > _MAX_JSON_BYTES:
            raise self._error(f"has a {name} of more than {_MAX_JSON_BYTES >> 20} MB")
        found = f"sha256:{hashlib.sha256(text).hexdigest()}"
        if digest not in (None, found):
            raise self._error(f"is damaged: {name} has the digest {found}, not {digest}")
        return text

    def _open(self, name: str) -> IO[bytes]:
        try:
            return self._blobs.open(name)
        except KeyError:
            raise self._error(f"is not complete: {name} is missing") from None

    def _error(self, text: str) -> ConfigError:
        return ConfigError(f"the image {self._path} {text}")


class Hashed:
    """A stream whose sha256 is computed while it is read."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._ahead = b""
        self._hash = hashlib.sha256()

    @property
    def digest(self) -> str:
        """Return the digest of what was read."""
        return f"sha256:{self._hash.hexdigest()}"

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; whatever a decoder complains of is an error of the archive."""
        try:
            data = self._next(size)
        except Exception as problem:  # those of zstandard have names of their own
            raise tarfile.ReadError(str(problem) or type(problem).__name__) from None
        self._hash.update(data)
        return data

    def _next(self, size: int) -> bytes:
        if size < 0:
            data, self._ahead = self._ahead + self._file.read(), b""
        elif self._ahead:
            data, self._ahead = self._ahead[:size], self._ahead[size:]
        else:
            data = self._file.read(size)
        return bytes(data)

    def peek(self, size: int) -> bytes:
        """Return the first bytes, which are read again later."""
        self._ahead = self._file.read(size)
        return self._ahead

    def drain(self) -> None:
        """Read to the end."""
        while self.read(1 << 20):
            pass


def host_architecture() -> str:
    """Return this machine's architecture as images name it."""
    return _ARCHITECTURES.get(platform.machine(), platform.machine())


@contextmanager
def opened_archive(path: Path) -> Iterator[ImageArchive]:
    """Yield the image in a tar or in a folder of OCI's layout."""
    with ExitStack() as stack:
        try:
            blobs = _Folder(path) if path.is_dir() else _opened_tar(path, stack)
        except FileNotFoundError:
            raise ConfigError(
                f"the image {path} is not there: write it with docker save -o FILE.tar IMAGE, "
                "or correct the agent's image="
            ) from None
        except (tarfile.TarError, OSError) as problem:
            raise ConfigError(f"the image {path} cannot be read: {problem}") from None
        yield ImageArchive(path, blobs)


def _opened_tar(path: Path, stack: ExitStack) -> Blobs:
    file = stack.enter_context(path.open("rb"))
    if file.read(2) == _GZIP:
        raise ConfigError(f"the image {path} is packed as a whole: gunzip it first")
    file.seek(0)
    return _Tar(stack.enter_context(tarfile.open(fileobj=file, mode="r:")))


class _Tar:
    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self._members = {one.name.removeprefix("./"): one for one in tar.getmembers()}

    def open(self, name: str) -> IO[bytes]:
        file = self._tar.extractfile(self._members[name])
        if file is None:
            raise KeyError(name)
        return file


class _Folder:
    def __init__(self, path: Path) -> None:
        self._path = path

    def open(self, name: str) -> IO[bytes]:
        place = self._path / name
        if ".." in place.parts or not place.is_file():
            raise KeyError(name)
        return place.open("rb")


def _blob(digest: str) -> str:
    if not _DIGEST.fullmatch(digest):
        raise ValueError(f"digest {digest[:80]}")
    return f"blobs/sha256/{digest.removeprefix('sha256:')}"


def _name(problem: Exception) -> str:
    return f"{type(problem).__name__}: {str(problem)[:80]}"
