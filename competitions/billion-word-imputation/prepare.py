"""About one line in a hundred becomes a test sentence that has lost one inner word."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

import numpy as np

from pytest_mlebench.preparing import (
    new_file,
    read_blocks,
    reading,
    require,
    write_zip,
    write_zip_of,
    zip_members,
)

TEST_SHARE = 0.01
LINES = 30_301_028
HEADER = b'"id","sentence"\n'
BATCH = 1 << 20  # random numbers


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out single sentences, with and without a word of each."""
    archive, name = require(raw / "train_v2.txt.zip"), "train_v2.txt"
    size = zip_members(archive)[name].size
    sample = private / "sample_submission.csv"
    with (
        reading(archive),
        new_file(sample) as shortened,
        new_file(private / "test.csv") as whole,
    ):
        kept = _kept(_whole_lines(read_blocks(archive, name)), whole, shortened)
        write_zip_of(public / archive.name, name, kept, max_bytes=size + 1)
    write_zip(public / "test_v2.txt.zip", {"test_v2.txt": sample})


def _kept(lines: Iterable[bytes], whole: IO[bytes], shortened: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines that stay, many at a time; write the sentences that are held out."""
    whole.write(HEADER)
    shortened.write(HEADER)
    draw, count, left = Draw(), 0, LINES
    wait = draw.wait()  # lines that pass before the next one is chosen
    for text in lines:
        ends = _line_ends(text)[:left]
        line = start = 0
        while wait < len(ends) - line:
            line += wait
            begin, end = ends[line - 1] if line else 0, ends[line]
            sentence = text[begin:end].decode().strip().replace('"', '""')
            words = sentence.split()
            if len(words) > 2:
                yield text[start:begin]
                start = end
                del words[draw.integer(1, len(words) - 1)]
                whole.write(f'{count},"{sentence}"\n'.encode())
                shortened.write(f'{count},"{" ".join(words)}"\n'.encode())
                count += 1
            line += 1
            wait = draw.wait()
        wait -= len(ends) - line
        left -= len(ends)
        yield text[start : ends[-1] if ends else 0]


def _whole_lines(blocks: Iterable[bytes | memoryview]) -> Iterator[bytes]:
    """Yield a text some whole lines at a time, all of which end in a line feed alone."""
    rest = b""
    for block in blocks:
        lines, feed, after = bytes(block).rpartition(b"\n")
        if feed:
            yield _checked(rest + lines + feed)
            rest = after
        else:
            rest += after
    if rest:
        yield _checked(rest)


def _checked(lines: bytes) -> bytes:
    if not lines.isascii():
        lines.decode()  # or an error that says where it is no text
    if b"\r" in lines:
        return lines.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return lines


def _line_ends(text: bytes) -> list[int]:
    ends: list[int] = (np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n")) + 1).tolist()
    return ends if text.endswith(b"\n") else [*ends, len(text)]


class Draw:
    """What ``RandomState(0)`` gives when each line draws ``uniform()`` and some ``randint()`` too.

    A uniform number is made of two numbers of the generator, a whole number below a bound of one,
    which is drawn again as long as its last bits are too large.
    """

    def __init__(self) -> None:
        self._generator = np.random.MT19937()
        self._generator.state = np.random.RandomState(0).get_state(legacy=False)
        self._numbers = np.zeros(0, dtype=np.uint64)
        self._chosen: tuple[list[int], list[int]] = ([], [])
        self._place = 0
        self._fill()

    def wait(self) -> int:
        """Return how many lines pass before the next one that is chosen."""
        passed = 0
        while True:
            chosen = self._chosen[self._place % 2]
            found = bisect_left(chosen, self._place)
            if found < len(chosen):
                passed += (chosen[found] - self._place) // 2
                self._place = chosen[found] + 2
                return passed
            lines = (len(self._numbers) - self._place) // 2
            passed += lines
            self._place += 2 * lines
            self._fill()

    def integer(self, low: int, high: int) -> int:
        """Return a whole number from *low* to *high*, that one excluded."""
        bound = high - 1 - low
        if not bound:
            return low
        mask = (1 << bound.bit_length()) - 1
        while True:
            if self._place == len(self._numbers):
                self._fill()
            number = int(self._numbers[self._place]) & mask
            self._place += 1
            if number <= bound:
                return low + number

    def _fill(self) -> None:
        """Draw another batch, and find out which lines it chooses wherever a line begins."""
        more = self._generator.random_raw(BATCH)
        self._numbers = np.concatenate([self._numbers[self._place :], more])
        self._place = 0
        # As numpy makes a double of two numbers: 27 bits of one and 26 of the other.
        high, low = self._numbers[:-1] >> np.uint64(5), self._numbers[1:] >> np.uint64(6)
        uniform = (high * 67108864.0 + low) / 9007199254740992.0
        chosen = np.flatnonzero(uniform <= TEST_SHARE)
        self._chosen = (chosen[chosen % 2 == 0].tolist(), chosen[chosen % 2 == 1].tolist())
