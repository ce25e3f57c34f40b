"""The files of an attempt, as an audit reads them: hostile, bounded, never followed by links."""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pytest_mlebench._files import sha256
from pytest_mlebench.competition import Competition
from pytest_mlebench.gateway.conversation import exchanges
from pytest_mlebench.gateway.transcripts import FILE as TRANSCRIPTS
from pytest_mlebench.gateway.transcripts import read_transcripts
from pytest_mlebench.layout import AttemptFolder
from pytest_mlebench.reports.results import Result

CODE_SUFFIXES = (".py", ".ipynb", ".r", ".sh", ".jl")
MAX_FILE_BYTES = 2 << 20
MAX_FILES = 500
MAX_LOG_BYTES = 16 << 20  # of each log: the first half and the last half of that


@dataclass(frozen=True)
class Text:
    """A text and where it is, relative to the attempt."""

    place: str
    text: str

    @cached_property
    def lowered(self) -> str:
        """Return the text in lower case."""
        return self.text.lower()


@dataclass(frozen=True)
class AttemptFiles:
    """One attempt: its result, its files, and what is known of its competition."""

    result: Result
    folder: AttemptFolder
    competition: Competition | None = None
    public: Path | None = None  # the public data, if they are prepared here
    known_sum: str | None = None  # the sha256 sum of the submission, where it was just taken

    @cached_property
    def code(self) -> tuple[Text, ...]:
        """Return the code that was kept, notebooks as their code cells."""
        found = []
        for path in self._below("artefacts/code", *CODE_SUFFIXES):
            text = _read(path, MAX_FILE_BYTES)
            if path.suffix.lower() == ".ipynb":
                text = notebook_code(text)
            found.append(Text(self._place(path), text))
        return tuple(found)

    @cached_property
    def logs(self) -> tuple[Text, ...]:
        """Return what the agent has written while it ran."""
        paths = [self.folder.log, *self._below("artefacts/logs", ".log", ".txt", ".out", ".jsonl")]
        return tuple(
            Text(self._place(path), _read(path, MAX_LOG_BYTES)) for path in paths if _is_file(path)
        )

    @cached_property
    def transcripts(self) -> tuple[Text, ...]:
        """Return what the agent and its models said, every turn once, as far as that was kept."""
        parts, size = [], 0
        for exchange in exchanges(read_transcripts(self.folder.path)):
            parts.append(exchange.describe()[: MAX_LOG_BYTES - size])
            size += len(parts[-1])
            if size >= MAX_LOG_BYTES:
                break
        return (Text(TRANSCRIPTS, "\n".join(parts)),) if parts else ()

    @cached_property
    def code_files(self) -> tuple[str, ...]:
        """Return the names of all files that were kept with the code."""
        return tuple(self._place(path) for path in self._below("artefacts/code"))

    @cached_property
    def submission_digest(self) -> str | None:
        """Return the sha256 sum of the submission, if there is one."""
        path = self.folder.submission
        return (self.known_sum or sha256(path)) if _is_file(path) else None

    @property
    def sample(self) -> Path | None:
        """Return the sample submission, where the data are prepared."""
        if self.public is None or self.competition is None:
            return None
        path = self.public / self.competition.sample
        return path if path.is_file() else None

    @property
    def texts(self) -> tuple[Text, ...]:
        """Return everything that can be read: logs, code, transcripts."""
        return (*self.logs, *self.code, *self.transcripts)

    @cached_property
    def digest(self) -> str:
        """Return a sum of everything that an audit looks at."""
        parts = [str(self.submission_digest), str(self.result.grade and self.result.grade.score)]
        parts += [f"{each.place} {each.text}" for each in self.texts]
        parts += self.lines("egress.jsonl")
        return hashlib.sha256("\0".join(parts).encode(errors="replace")).hexdigest()

    def lines(self, name: str) -> list[str]:
        """Return the lines of a record that a sandbox has left beside the attempt's own."""
        path = self.folder.path / name
        return _read(path, MAX_LOG_BYTES).splitlines() if _is_file(path) else []

    def records(self, name: str) -> Iterator[dict[str, Any]]:
        """Yield the objects of such a record; a line that was cut off by a kill ends it."""
        for line in self.lines(name):
            try:
                data = json.loads(line)
            except ValueError:
                return
            if isinstance(data, dict):
                yield data

    def _below(self, inside: str, *suffixes: str) -> list[Path]:
        root = self.folder.path / inside
        found = []
        for path in sorted(root.rglob("*")) if root.is_dir() and not root.is_symlink() else ():
            if _is_file(path) and (not suffixes or path.suffix.lower() in suffixes):
                found.append(path)
            if len(found) == MAX_FILES:
                break
        return found

    def _place(self, path: Path) -> str:
        return path.relative_to(self.folder.path).as_posix()


def notebook_code(text: str) -> str:
    """Return the code cells of a notebook, whatever version it is of; nothing if it is none."""
    try:
        data = json.loads(text)
        sheets = data.get("worksheets") or [data]
        cells = [cell for sheet in sheets for cell in sheet.get("cells", ())]
        sources = [
            cell.get("source", cell.get("input", ""))
            for cell in cells
            if cell.get("cell_type") == "code"
        ]
    except (ValueError, AttributeError, TypeError, RecursionError):
        return ""
    return "\n\n".join("".join(each) if isinstance(each, list) else str(each) for each in sources)


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _read(path: Path, bound: int) -> str:
    """Return a text, of a long one its beginning and its end."""
    with path.open("rb") as file:
        size = path.stat().st_size
        if size <= bound:
            return file.read(bound).decode(errors="replace")
        head = file.read(bound // 2)
        file.seek(-(bound // 2), 2)
        return (head + b"\n...\n" + file.read(bound // 2)).decode(errors="replace")
