"""Images that are sent: saved once, fetched in pieces, refused in a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_mlebench.errors import SandboxError
from pytest_mlebench.machines import image_transfer
from pytest_mlebench.machines.delivery import PIECE_BYTES
from pytest_mlebench.machines.image_transfer import ImageSpool, fetch_image
from pytest_mlebench.machines.link import LinkRefused, Reply, answer_questions

DATA = b"layer" * (PIECE_BYTES // 2)


class Wire:
    """A link to a spool in this process, by the very answers that a controller gives."""

    def __init__(self, spool: ImageSpool) -> None:
        self._reply: Reply | None = None
        answer_questions(self, spool.answers(), None)

    def setcallback(self, callback: Any) -> None:
        self._receive = callback

    def close(self) -> None:
        """Do nothing."""

    def send(self, message: tuple[str, Any]) -> None:
        assert self._reply is not None
        self._reply.come.put(message)

    def post(self, question: str, **data: Any) -> Reply:
        self._reply = reply = Reply()
        self._receive((question, data))
        return reply

    def ask(self, question: str, **data: Any) -> Any:
        return self.post(question, **data).wait()


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_transfer, "POLL_SECONDS", 0.01)


def test_an_image_is_saved_once_and_arrives_whole(tmp_path: Path) -> None:
    saved: list[Path] = []

    def save(path: Path) -> None:
        saved.append(path)
        path.write_bytes(DATA)

    spool = ImageSpool(tmp_path / "image.tar", save)
    assert not spool.is_busy()
    for _host in range(2):
        assert b"".join(fetch_image(Wire(spool))) == DATA
    assert spool.is_busy()
    assert len(saved) == 1
    spool.remove()
    assert list(tmp_path.iterdir()) == []


def test_why_an_image_is_not_sent_is_told_to_the_host(tmp_path: Path) -> None:
    def save(path: Path) -> None:
        raise SandboxError("the engine was lost")

    with pytest.raises(LinkRefused, match="image: the engine was lost"):
        list(fetch_image(Wire(ImageSpool(tmp_path / "image.tar", save))))
    with pytest.raises(LinkRefused, match="the controller's engine does not have it"):
        list(fetch_image(Wire(ImageSpool(tmp_path / "image.tar", None))))
