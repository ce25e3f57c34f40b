"""Download a competition's zip: resumed after a kill, hashed on the way, never stalled for ever."""

from __future__ import annotations

import base64
import json
import re
import shutil
import time
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from pytest_mlebench._files import Digest, write_text
from pytest_mlebench._messages import Progress
from pytest_mlebench._units import show_size
from pytest_mlebench.errors import DatasetError
from pytest_mlebench.kaggle.client import Kaggle, Patience

CHUNK_BYTES = 1 << 20
FLUSH_SECONDS = 0.2  # after which even a few bytes are written
WATCH_SECONDS = 60.0  # over which the speed is measured
MIN_BYTES_PER_SECOND = 1000  # below which a connection counts as stalled


@dataclass(frozen=True)
class Zip:
    """A complete zip in the store that we downloaded."""

    md5: str
    bytes: int
    validator: str | None = None
    disposable: bool = False  # prepared, and not to be kept


def read_zip(path: Path) -> Zip | None:
    """Return what is known of a zip that we downloaded, or none if it is not ours or not whole."""
    try:
        known = Zip(**json.loads(_note(path).read_text(encoding="utf-8")))
        return known if path.stat().st_size == known.bytes else None
    except (OSError, ValueError, TypeError):
        return None


def dispose_of(path: Path, known: Zip) -> None:
    """Note that a zip of ours may go as soon as the dataset is in its place."""
    write_text(_note(path), json.dumps(asdict(replace(known, disposable=True))))


def forget_zip(path: Path) -> None:
    """Remove the note on a zip that is gone."""
    if not path.exists():
        _note(path).unlink(missing_ok=True)


def remove_zip(path: Path) -> None:
    """Remove a zip that we downloaded, whole or in part."""
    for file in (path, part_of(path), _note(part_of(path)), _note(path)):
        file.unlink(missing_ok=True)


class Arrivals(Protocol):
    """Someone who works on the bytes while they arrive."""

    def grow(self, size: int) -> None:
        """Receive how many bytes have arrived."""

    def restart(self) -> None:
        """Receive that they come again from the beginning."""


def part_of(target: Path) -> Path:
    """Return the file that grows while *target* is being downloaded."""
    return target.with_name(f"{target.name}.part")


def download(
    kaggle: Kaggle,
    competition: str,
    target: Path,
    progress: Progress,
    arrivals: Arrivals | None = None,
) -> Zip:
    """Download a competition's zip to *target*, beginning where an earlier attempt ended."""
    transfer = _Transfer(kaggle, competition, target, progress, arrivals)
    found = transfer.run()
    if transfer.promised and transfer.promised != found.md5:  # damaged on the way, not at Kaggle
        progress(f"{competition}: the bytes that arrived are wrong, downloading again")
        remove_zip(target)
        transfer = _Transfer(kaggle, competition, target, progress, arrivals)
        found = transfer.run()
        if transfer.promised and transfer.promised != found.md5:
            remove_zip(target)
            raise DatasetError(
                f"{competition}: {target.name} arrived damaged twice, md5 expected "
                f"{transfer.promised}, got {found.md5}: look at the network, then prepare again"
            )
    write_text(_note(target), json.dumps(asdict(found)))  # first: it makes the zip ours to remove
    part_of(target).replace(target)
    _note(part_of(target)).unlink(missing_ok=True)
    return found


class _Stalled(Exception):
    """The connection lives, but next to nothing comes."""


@dataclass
class _Origin:
    """What a partial file is a part of."""

    validator: str | None = None
    total: int | None = None


class _Transfer:
    """One download with as many connections as it takes."""

    def __init__(
        self,
        kaggle: Kaggle,
        competition: str,
        target: Path,
        progress: Progress,
        arrivals: Arrivals | None,
    ) -> None:
        self.kaggle, self.competition, self.progress = kaggle, competition, progress
        self.arrivals = arrivals
        self.part = part_of(target)
        self.promised: str | None = None
        self.digest = Digest()
        self._restart()

    def run(self) -> Zip:
        """Fetch until everything is there."""
        self._take_up()
        patience = Patience(self.progress)
        while not self._complete:
            before = self.have
            try:
                self._fetch()
                problem = f"the connection ended at {self.have} of {self.origin.total} bytes"
            except _Stalled:
                problem = f"the download has stalled at {self.have} bytes"
            except _network_errors() as error:
                problem = f"the connection broke at {self.have} bytes ({type(error).__name__})"
            if self.have > before:
                patience.reset()
            if not self._complete:
                patience.wait(f"{self.competition}: {problem}")
        self.progress.transfer(self.competition, self.have, self.have)
        return Zip(self.digest.hexdigest(), self.have, self.origin.validator)

    @property
    def _complete(self) -> bool:
        return self.origin.total is not None and self.have == self.origin.total

    def _restart(self) -> None:
        self.origin = _Origin()
        self.digest.close()
        self.digest = Digest()
        self.have = 0
        if self.arrivals:
            self.arrivals.restart()

    def _take_up(self) -> None:
        """Begin with what an earlier attempt left, if it is known of what it is a part."""
        try:
            origin = _Origin(**json.loads(_note(self.part).read_text(encoding="utf-8")))
            file = self.part.open("rb")
        except (OSError, ValueError, TypeError):
            return
        with file:
            while block := file.read(CHUNK_BYTES):
                self.digest.update(block)
                self.have += len(block)
        if not origin.validator or self.have > (origin.total or self.have):
            self._restart()
            return
        self.origin = origin
        if self.have:
            self._grown()
            self.progress(f"{self.competition}: continuing at {self.have} bytes")

    def _fetch(self) -> None:
        start, validator = self.have, self.origin.validator
        response = self.kaggle.open_data(self.competition, start=start, validator=validator)
        with closing(response):
            if not self._continues(response):
                if start:
                    self.progress(f"{self.competition}: cannot be continued, from the beginning")
                self._restart()
            self._learn(response)
            with self.part.open("ab" if self.have else "wb", buffering=0) as file:
                self._receive(response, file)

    def _continues(self, response: Any) -> bool:
        if response.status_code != 206:
            return False
        match = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", response.headers.get("Content-Range", ""))
        if match is None or int(match[1]) != self.have:
            raise DatasetError(f"{self.competition}: the server sent other bytes than asked for")
        return self.origin.total in (None, int(match[2]))

    def _learn(self, response: Any) -> None:
        """Note down what is coming, so that a later attempt knows what the part belongs to."""
        headers = response.headers
        etag = headers.get("ETag")
        strong = etag if etag and not etag.startswith("W/") else None
        length = headers.get("Content-Length")
        total = self.have + int(length) if length else None
        self.origin = _Origin(strong or headers.get("Last-Modified"), total)
        self.promised = _promised_md5(headers)
        self._check_space()
        if self.origin.validator:
            write_text(_note(self.part), json.dumps(asdict(self.origin)))
        else:  # nothing to recognise it by: a later attempt has to begin anew
            _note(self.part).unlink(missing_ok=True)

    def _check_space(self) -> None:
        left = (self.origin.total or 0) - self.have
        free = shutil.disk_usage(self.part.parent).free
        if left > free:
            raise DatasetError(
                f"{self.competition}: {show_size(left)} are to be downloaded to "
                f"{self.part.parent}, where {show_size(free)} are free: free some space"
            )

    def _receive(self, response: Any, file: Any) -> None:
        watch = _Watch()
        blocks: list[bytes] = []
        waiting, last = 0, time.monotonic()
        try:
            while block := response.raw.read1(CHUNK_BYTES, decode_content=False):
                blocks.append(block)
                waiting += len(block)
                watch.count(len(block))
                if waiting >= CHUNK_BYTES or time.monotonic() - last > FLUSH_SECONDS:
                    self._take(file, b"".join(blocks))
                    blocks, waiting, last = [], 0, time.monotonic()
        finally:  # what has come is kept, whatever ends the connection
            self._take(file, b"".join(blocks))
        if self.origin.total is None:  # no length was announced: the end is the end
            self.origin.total = self.have

    def _take(self, file: Any, data: bytes) -> None:
        if not data:
            return
        view = memoryview(data)
        while view:
            view = view[file.write(view) :]
        self.digest.update(data)
        self.have += len(data)
        self._grown()
        if not self._complete:  # the end is reported once, by the caller
            self.progress.transfer(self.competition, self.have, self.origin.total)

    def _grown(self) -> None:
        if self.arrivals:
            self.arrivals.grow(self.have)


class _Watch:
    """Raise when a connection has delivered next to nothing for a while."""

    def __init__(self) -> None:
        self.since, self.bytes = time.monotonic(), 0

    def count(self, received: int) -> None:
        self.bytes += received
        elapsed = time.monotonic() - self.since
        if elapsed < WATCH_SECONDS:
            return
        if self.bytes < MIN_BYTES_PER_SECOND * elapsed:
            raise _Stalled
        self.since, self.bytes = time.monotonic(), 0


def _network_errors() -> tuple[type[Exception], ...]:
    import requests  # late on purpose: they come with the client
    import urllib3

    return (requests.RequestException, urllib3.exceptions.HTTPError, ConnectionError, TimeoutError)


def _promised_md5(headers: Any) -> str | None:
    """Return the md5 sum that the blob store announces, if it does."""
    match = re.search(r"md5=([A-Za-z0-9+/=]+)", headers.get("x-goog-hash", ""))
    try:
        return base64.b64decode(match[1], validate=True).hex() if match else None
    except ValueError:
        return None


def _note(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")
