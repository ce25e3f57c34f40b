"""The votes of a judge, a line each as they come: none is asked for twice, none is paid unseen."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

from pytest_mlebench.errors import ConfigError

Verdict = Literal["yes", "no", "undecided"]
_ANEW = "anew"


@dataclass(frozen=True)
class Vote:
    """One answer: a verdict, the passage that shows it, and what the answer took."""

    verdict: Verdict
    evidence: str = ""
    why: str = ""
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True)
class JudgeUsage:
    """What a judge has used."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


class VoteLog:
    """What models have answered so far, in memory and, if there is a path, in a file."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._all: dict[str, list[Vote]] = defaultdict(list)  # by model
        self._known: dict[tuple[str, str], list[Vote]] = defaultdict(list)  # by model and question
        for line in self._lines():
            self._take(line)

    def known(self, model: str, key: str) -> list[Vote]:
        """Return how a model has answered a question about a part already."""
        return list(self._known[model, key])

    def add(self, model: str, key: str, place: str, vote: Vote) -> None:
        """Keep an answer, on disk before the next is asked for."""
        line = {"model": model, "key": key, "place": place, **asdict(vote)}
        self._take(line)
        self._write(line)

    def begin_anew(self) -> None:
        """Ask everything again from now on; what it took before still counts."""
        if any(self._known.values()):
            self._known.clear()
            self._write({_ANEW: True})

    def usage(self, model: str) -> JudgeUsage:
        """Return what a model has used in all sessions."""
        votes = self._all[model]
        return JudgeUsage(
            len(votes),
            sum(vote.input_tokens for vote in votes),
            sum(vote.output_tokens for vote in votes),
        )

    def _take(self, line: dict[str, Any]) -> None:
        if line.get(_ANEW):
            self._known.clear()
            return
        vote = Vote(**{item.name: line[item.name] for item in fields(Vote)})
        self._all[line["model"]].append(vote)
        self._known[line["model"], line["key"]].append(vote)

    def _lines(self) -> Iterator[dict[str, Any]]:
        if self._path is None or not self._path.is_file():
            return
        for text in self._path.read_text(encoding="utf-8", errors="replace").splitlines():
            with suppress(ValueError):  # the last one may be cut off by a kill
                line = json.loads(text)
                if isinstance(line, dict) and (_ANEW in line or _is_whole(line)):
                    yield line

    def _write(self, line: dict[str, Any]) -> None:
        if self._path is None:
            return
        try:
            with self._path.open("ab+") as file:
                if file.tell():
                    file.seek(-1, 2)
                    if file.read(1) != b"\n":  # a kill has cut the last line off
                        file.write(b"\n")
                file.write(json.dumps(line).encode() + b"\n")
        except OSError as error:
            raise ConfigError(f"cannot write {self._path}: {error.strerror}") from None


def _is_whole(line: dict[str, Any]) -> bool:
    texts = ("model", "key", "evidence", "why")
    counts = ("input_tokens", "output_tokens")
    return (
        line.get("verdict") in ("yes", "no", "undecided")
        and all(isinstance(line.get(name), str) for name in texts)
        and all(isinstance(line.get(name), int) for name in counts)
    )
