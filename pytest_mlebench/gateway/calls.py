"""``calls.jsonl``: one line for every call of an attempt, without what was said in it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pytest_mlebench.errors import ConfigError
from pytest_mlebench.gateway.spending import ModelSpending, Spending, Usage, total

FILE = "calls.jsonl"
MAX_CALLS = 100_000  # that are written down; the rest are only counted
MAX_REFUSALS = 1_000  # apart from them: an agent must not be able to fill the file with nothing
MAX_NAME_LENGTH = 200


@dataclass(frozen=True)
class Call:
    """One call, from its arrival to the last byte of its answer."""

    time: float
    upstream: str
    method: str
    path: str
    status: int | None  # None: no answer came
    model: str = ""  # as the agent asked for it
    answered_by: str | None = None  # as the answer says
    stream: bool = False
    usage: Usage | None = None  # None: nobody said
    usd: float | None = None  # None: nobody knows
    unmetered: bool = False  # may have cost something that nobody knows
    seconds: float = 0.0
    first_byte_seconds: float | None = None
    error: str | None = None  # a status, or what happened instead of an answer
    refused: str | None = None  # why the call was not passed on

    @property
    def problem(self) -> str | None:
        """Return what happened instead of an answer, or of its second half."""
        return None if self.error == f"status {self.status}" else self.error

    @property
    def spending(self) -> ModelSpending:
        """Return what this call adds to the figures of its model."""
        return ModelSpending(
            upstream=self.upstream,
            model=self.model,
            calls=1,
            errors=int(self.error is not None),
            unmetered=int(self.unmetered),
            seconds=self.seconds,
            usage=self.usage or Usage(),
            usd=0.0 if self.usage is None else self.usd,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for a line."""
        return vars(self) | {"usage": self.usage and self.usage.to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Call:
        """Return the call that ``to_dict`` wrote."""
        usage = data["usage"]
        return cls(**(dict(data) | {"usage": usage and Usage.from_dict(usage)}))


class CallLog:
    """A file that grows by a line per call, each whole or not there at all."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._file: IO[str] | None = None
        self._calls = 0
        self._refusals = 0

    def write(self, call: Call) -> None:
        """Add a call, unless there are too many."""
        self._calls += call.refused is None
        self._refusals += call.refused is not None
        if self._calls > MAX_CALLS if call.refused is None else self._refusals > MAX_REFUSALS:
            return
        if self._file is None:
            self._file = self._path.open("a", encoding="utf-8", buffering=1)  # line by line
        self._file.write(json.dumps(call.to_dict()) + "\n")

    def close(self) -> None:
        """Close the file; there are no more calls."""
        if self._file is not None:
            self._file.close()


def read_calls(folder: Path) -> Iterator[Call]:
    """Yield the calls of an attempt; a last line that a killed session left unfinished is none."""
    path = folder / FILE
    if not path.is_file():
        return
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.endswith("\n"):
                yield _read_call(line, f"{path}, line {number}")


def _read_call(line: str, where: str) -> Call:
    try:
        return Call.from_dict(json.loads(line))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ConfigError(f"{where}: is not a call: {type(error).__name__}: {error}") from None


class GrowingSpending:
    """What an attempt that runs has spent so far; every look reads on where the last one ended."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._offset = 0
        self._spent = Spending()

    def read(self) -> Spending:
        """Return what has been spent by now."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                lines = [line for line in file if line.endswith(b"\n")]
        except FileNotFoundError:
            return self._spent
        self._offset += sum(map(len, lines))
        calls = (_read_call(line.decode(), str(self._path)) for line in lines)
        self._spent = total([self._spent, *map(_spending, calls)])
        return self._spent


def read_spending(folder: Path) -> Spending:
    """Return what an attempt spent by its calls: also one whose session was killed."""
    return total(_spending(call) for call in read_calls(folder))


def _spending(call: Call) -> Spending:
    if call.refused is not None:
        return Spending(refused={call.refused.partition(":")[0]: 1})
    problems = {call.problem: 1} if call.problem is not None else {}
    return Spending(models=(call.spending,), problems=problems)


def shorten(text: str) -> str:
    """Return a name that an agent chose, at most as long as anybody reads."""
    return text if len(text) <= MAX_NAME_LENGTH else text[: MAX_NAME_LENGTH - 1] + "…"
