"""Fetching a small file from a server that answers as servers do."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from golden_pack import Pack, describe

from pytest_mlebench import load_competition
from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing import fetch

ID = "freesound-audio-tagging-2019"


class Handler(BaseHTTPRequestHandler):
    """Serve one file, cut short on request."""

    content = b"labels"

    def do_GET(self) -> None:
        self.send_response(200 if "labels" in self.path else 404)
        self.send_header("Content-Length", str(len(self.content)))
        self.end_headers()
        self.wfile.write(self.content[: 3 if "short" in self.path else None])

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@pytest.fixture
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_file_is_fetched_whole(address: str, tmp_path: Path) -> None:
    fetch(f"{address}/labels", tmp_path / "labels.zip", max_bytes=6)
    assert (tmp_path / "labels.zip").read_bytes() == b"labels"


@pytest.mark.parametrize(
    ("path", "most", "said"),
    [
        ("/gone", 9, r"^cannot fetch http://\S+/gone: HTTP Error 404.*put x\.zip into the raw fol"),
        ("/labels/short", 9, r"^cannot fetch http://\S+/labels/short: IncompleteRead"),
        ("/labels", 5, r"/labels has more than 5 bytes, expected a small file$"),
    ],
)
def test_what_goes_wrong_is_said(
    address: str, path: str, most: int, said: str, tmp_path: Path
) -> None:
    with pytest.raises(PreparationError, match=said):
        fetch(address + path, tmp_path / "x.zip", max_bytes=most)
    assert not list(tmp_path.iterdir())


def test_labels_that_are_not_in_the_raw_tree_are_fetched(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack, competition = Pack(ID), load_competition(ID)
    raw = pack.unpack("raw", tmp_path)
    labels = raw / "FSDKaggle2019.meta.zip"
    monkeypatch.setattr(Handler, "content", labels.read_bytes())
    labels.unlink()
    code = competition._code("prepare.py")
    monkeypatch.setattr(code, "LABELS_URL", f"{address}/labels")
    public, private = tmp_path / "public", tmp_path / "private"
    public.mkdir()
    private.mkdir()
    code.prepare(raw, public, private)
    assert describe(private, {}) == pack.prepared["private"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["private", "public", "raw"]
