"""A registry on the loopback with one image, as far as an engine that pulls it can tell.

It speaks what a pull needs of the OCI distribution specification: manifests and blobs, by GET and
HEAD. Engines take a registry at 127.0.0.1 without TLS.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from image_archives import configuration, digest

NAME = "mlebench-test/pulled"
_DOCKER = "application/vnd.docker"
_MANIFEST = f"{_DOCKER}.distribution.manifest.v2+json"
_CONFIG = f"{_DOCKER}.container.image.v1+json"
_LAYER = f"{_DOCKER}.image.rootfs.diff.tar.gzip"


class ImageRegistry(ThreadingHTTPServer):
    """Serves an image of one layer under a tag and under its digest."""

    def __init__(self, layer: bytes) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        config, packed = configuration([layer]), gzip.compress(layer)
        manifest = {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _described(config, _CONFIG),
            "layers": [_described(packed, _LAYER)],
        }
        self.manifest = json.dumps(manifest).encode()
        self.blobs = {digest(data): data for data in (config, packed)}
        self.image_id = digest(config)
        self.asked: list[str] = []  # what manifests were asked for by: a tag, a digest

    @property
    def repository(self) -> str:
        """Return the name of the image without a tag."""
        return f"127.0.0.1:{self.server_port}/{NAME}"

    @property
    def by_digest(self) -> str:
        """Return the name that no other image can have."""
        return f"{self.repository}@{digest(self.manifest)}"


class _Handler(BaseHTTPRequestHandler):
    server: ImageRegistry
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        kind, data = self._find()
        self.send_response(200 if data is not None else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data or b"")))
        if data is not None:
            self.send_header("Docker-Content-Digest", digest(data))
        self.end_headers()
        if self.command == "GET" and data is not None:
            self.wfile.write(data)

    do_HEAD = do_GET

    def _find(self) -> tuple[str, bytes | None]:
        place, _, name = self.path.rpartition("/")
        if self.path == "/v2/":
            return "application/json", b"{}"
        if place == f"/v2/{NAME}/manifests":
            self.server.asked.append(name)
            is_known = name in ("1", digest(self.server.manifest))
            return _MANIFEST, self.server.manifest if is_known else None
        if place == f"/v2/{NAME}/blobs":
            return "application/octet-stream", self.server.blobs.get(name)
        return "text/plain", None

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: what was asked for is kept."""


def _described(data: bytes, kind: str) -> dict[str, object]:
    return {"mediaType": kind, "digest": digest(data), "size": len(data)}


@contextmanager
def image_registry(layer: bytes) -> Iterator[ImageRegistry]:
    """Serve an image as long as the block lasts."""
    with ImageRegistry(layer) as registry:
        thread = Thread(target=registry.serve_forever)
        thread.start()
        try:
            yield registry
        finally:
            registry.shutdown()
            thread.join()
