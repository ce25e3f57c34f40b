"""About one line in a hundred becomes a test sentence that has lost one inner word."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from pytest_mlebench.preparing import link, reading, unpacked, write_zip

TEST_SHARE = 0.01
LINES = 30_301_028
HEADER = '"id","sentence"\n'


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out single sentences, with and without a word of each."""
    with unpacked(raw / "train_v2.txt.zip", near=public) as folder:
        train, test = folder / "new_train.txt", folder / "test.txt"
        source = folder / "train_v2.txt"
        with (
            reading(source),
            source.open(encoding="utf-8") as lines,
            train.open("w", encoding="utf-8") as kept,
            test.open("w", encoding="utf-8") as shortened,
            (private / "test.csv").open("w", encoding="utf-8") as whole,
        ):
            shortened.write(HEADER)
            whole.write(HEADER)
            count = 0
            for line, sentence in _draw(lines):
                if sentence is None:
                    kept.write(line)
                    continue
                whole.write(f'{count},"{line}"\n')
                shortened.write(f'{count},"{sentence}"\n')
                count += 1
        write_zip(public / "train_v2.txt.zip", {"train_v2.txt": train})
        write_zip(public / "test_v2.txt.zip", {"test_v2.txt": test})
        link(test, private / "sample_submission.csv")


def _draw(lines: Iterable[str]) -> Iterator[tuple[str, str | None]]:
    """Yield each line, as a test sentence with its shortened form or unchanged with None."""
    random = np.random.RandomState(0)
    for _, line in zip(range(LINES), lines, strict=False):
        chosen = random.uniform() <= TEST_SHARE
        if not chosen or len(line.split()) <= 2:
            yield line, None
            continue
        sentence = line.strip().replace('"', '""')
        words = sentence.split()
        del words[random.randint(1, len(words) - 1)]
        yield sentence, " ".join(words)
