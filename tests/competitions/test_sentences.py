"""Lines of the billion-word text are held out as if each were looked at by itself."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from pytest_mlebench import load_competition
from pytest_mlebench.errors import PreparationError

NAME = "billion-word-imputation"


@pytest.fixture
def code() -> ModuleType:
    """The competition's own preparation."""
    return load_competition(NAME)._code("prepare.py")


def drawn_one_by_one(lines: Iterable[str]) -> Iterator[tuple[str, str | None]]:
    """Yield each line, as a test sentence with its shortened form or unchanged with None."""
    random = np.random.RandomState(0)
    for line in lines:
        chosen = random.uniform() <= 0.01
        if not chosen or len(line.split()) <= 2:
            yield line, None
            continue
        sentence = line.strip().replace('"', '""')
        words = sentence.split()
        del words[random.randint(1, len(words) - 1)]
        yield sentence, " ".join(words)


def lines(count: int) -> list[str]:
    draw = np.random.default_rng(1)
    words = ["a", 'say "hi"', "ü", "中\u3000文", "\u00a0", "x\ty", "end"]
    lengths = draw.integers(0, 40, count)
    return [" ".join(words[k % 7] for k in range(n, 2 * n)) + "\n" for n in lengths.tolist()]


@pytest.mark.parametrize("batch", [1, 2, 7, 1 << 20])
def test_the_random_numbers_are_those_of_numpy(
    batch: int, code: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code, "BATCH", batch)
    random, draw = np.random.RandomState(0), code.Draw()
    for bound in [*range(2, 60), 2**16, 2**31, 2**32 - 1] * (20 if batch > 2 else 1):
        waited = 0
        while random.uniform() > 0.01:
            waited += 1
        assert draw.wait() == waited
        assert draw.integer(1, bound) == random.randint(1, bound)


@pytest.mark.parametrize("end", ["\n", "", "\r\n", "\r"])
def test_lines_are_held_out_as_one_by_one(end: str, code: ModuleType, tmp_path: Path) -> None:
    text = "".join(lines(30_000)).removesuffix("\n")
    text = text.replace("\n", end) + end if end.startswith("\r") else text + end
    raw, public, private = tmp_path / "raw", tmp_path / "public", tmp_path / "private"
    for folder in (raw, public, private):
        folder.mkdir()
    with zipfile.ZipFile(raw / "train_v2.txt.zip", "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("train_v2.txt", text)
    (raw / "train_v2.txt").write_bytes(text.encode())
    with (raw / "train_v2.txt").open(encoding="utf-8") as file:
        pairs = list(drawn_one_by_one(file))
    code.prepare(raw, public, private)
    kept = "".join(line for line, shorter in pairs if shorter is None)
    with zipfile.ZipFile(public / "train_v2.txt.zip") as zipped:
        assert zipped.read("train_v2.txt").decode() == kept
    taken = [(line, shorter) for line, shorter in pairs if shorter is not None]
    assert len(taken) > 100
    whole = "".join(f'{n},"{line}"\n' for n, (line, _) in enumerate(taken))
    shortened = "".join(f'{n},"{shorter}"\n' for n, (_, shorter) in enumerate(taken))
    assert (private / "test.csv").read_text(encoding="utf-8") == f'"id","sentence"\n{whole}'
    sample = (private / "sample_submission.csv").read_text(encoding="utf-8")
    assert sample == f'"id","sentence"\n{shortened}'


def test_not_more_lines_are_taken_than_the_original_has(
    code: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code, "LINES", 5)
    with (tmp_path / "a").open("wb") as one, (tmp_path / "b").open("wb") as other:
        blocks = iter([b"1\n2\n3", b"\n4\n5\n6\n", b"7\n"])
        kept = b"".join(code._kept(code._whole_lines(blocks), one, other))
    assert kept == b"1\n2\n3\n4\n5\n"


def test_what_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    with zipfile.ZipFile(tmp_path / "raw" / "train_v2.txt.zip", "w") as zipped:
        zipped.writestr("train_v2.txt", b"a b c\n\xff\xfe\n")
    with pytest.raises(PreparationError, match=r"train_v2\.txt\.zip is not utf-8 text"):
        load_competition(NAME).prepare(tmp_path / "raw", tmp_path / "a", tmp_path / "b")
