"""Code compared with other people's: notebooks of a competition, and attempts of other runs.

Similarity is that of copydetect (winnowed fingerprints of normalised tokens): names, comments and
layout do not count. Unrelated code on one subject stays below 0.25; from 0.60 on it is a copy.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from pytest_mlebench.audit.attempt_files import AttemptFiles, Text, notebook_code
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.reports.findings import Excerpt, Finding, Level

FLAGGED = 0.60  # as in the paper on MLE-bench
SHOWN = 0.40  # from which on a resemblance is noted
NOISE_TOKENS, GUARANTEED_TOKENS = 25, 30  # copydetect's own defaults: shorter matches are chance
MIN_FINGERPRINTS = 40  # a code with fewer is too short to be anybody's own
MAX_FILE_BYTES = 2 << 20
MAX_RANGES = 4
EXCERPT_LINES, EXCERPT_COLUMNS = 24, 120  # of each side, for a reader to judge by


@dataclass(frozen=True)
class CodeSource:
    """Somebody else's code."""

    name: str
    text: str


@dataclass(frozen=True)
class Match:
    """How similar two codes are, and which lines of both that is about."""

    place: str
    source: str
    similarity: float
    ranges: tuple[tuple[int, int, int, int], ...]  # first and last line here, and there
    excerpts: tuple[Excerpt, ...]  # the lines themselves, as many as one looks at

    @property
    def evidence(self) -> tuple[str, ...]:
        """Return the matching lines of both sides."""
        return tuple(
            f"{self.place}:{a}-{b} is like {self.source}:{c}-{d}" for a, b, c, d in self.ranges
        )


@lru_cache(maxsize=8)  # each attempt of a competition asks for them
def read_sources(folder: Path) -> tuple[CodeSource, ...]:
    """Return the notebooks and scripts in a folder."""
    paths = sorted(p for p in folder.rglob("*") if p.suffix.lower() in {".py", ".ipynb"})
    return tuple(
        CodeSource(path.name, _source_text(path))
        for path in paths
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= MAX_FILE_BYTES
    )


def compare(attempt: AttemptFiles, sources: Sequence[CodeSource]) -> list[Finding]:
    """Return a finding for the source that an attempt's code is most like, if it is alike."""
    matches = [match for text in attempt.code for match in _matches(text, sources)]
    best = max(matches, key=lambda match: match.similarity, default=None)
    if best is None or best.similarity < SHOWN:
        return []
    level: Level = "violation" if best.similarity >= FLAGGED else "info"
    what = f"{best.place} is {best.similarity:.0%} like {best.source}"
    return [Finding("plagiarism", level, what, best.evidence, best.excerpts)]


def similarity(mine: str, theirs: str) -> float:
    """Return the larger share of one code that is found in the other, from 0 to 1."""
    _, shares, _ = _library().compare_files(_fingerprint(mine), _fingerprint(theirs))
    return float(max(shares))


def _matches(text: Text, sources: Iterable[CodeSource]) -> Iterator[Match]:
    copydetect = _library()
    mine = _fingerprint(text.text)
    if len(mine.hashes) < MIN_FINGERPRINTS:
        return
    for source in sources:
        theirs = _fingerprint(source.text)
        if len(theirs.hashes) < MIN_FINGERPRINTS:
            continue
        _, shares, slices = copydetect.compare_files(mine, theirs)
        similarity = float(max(shares))
        if similarity >= SHOWN:
            ranges = _ranges(text.text, source.text, slices)
            excerpts = tuple(
                Excerpt(_excerpt(text.text, a, b), _excerpt(source.text, c, d))
                for a, b, c, d in ranges
            )
            yield Match(text.place, source.name, similarity, ranges, excerpts)


@lru_cache(maxsize=256)  # notebooks of a competition are compared with each of its attempts
def _fingerprint(text: str) -> Any:
    window = GUARANTEED_TOKENS - NOISE_TOKENS + 1
    return _library().CodeFingerprint(
        "code.py", NOISE_TOKENS, window, fp=io.StringIO(text), language="python"
    )


def _ranges(mine: str, theirs: str, slices: Any) -> tuple[tuple[int, int, int, int], ...]:
    """Return the lines that match, the longest pieces first, in pairs as they come."""
    left, right = ([(int(a), int(b)) for a, b in zip(*side, strict=True)] for side in slices)
    pieces = sorted(zip(left, right, strict=False), key=lambda pair: pair[0][0] - pair[0][1])
    return tuple(
        (*_lines(mine, *here), *_lines(theirs, *there)) for here, there in pieces[:MAX_RANGES]
    )


def _lines(text: str, start: int, end: int) -> tuple[int, int]:
    return text.count("\n", 0, start) + 1, text.count("\n", 0, max(start, end - 1)) + 1


def _excerpt(text: str, first: int, last: int) -> str:
    """Return some lines of a text, numbered; of many or long ones the beginning."""
    lines = text.split("\n")[first - 1 : min(last, first - 1 + EXCERPT_LINES)]
    shown = [f"{number} {line[:EXCERPT_COLUMNS]}" for number, line in enumerate(lines, first)]
    return "\n".join(shown if last < first + EXCERPT_LINES else [*shown, "…"])


def _source_text(path: Path) -> str:
    text = path.read_text(encoding="utf-8", errors="replace")
    return notebook_text(text) if path.suffix.lower() == ".ipynb" else text


def notebook_text(text: str) -> str:
    """Return the code of a notebook of any version, upgraded by nbformat where it can be."""
    import nbformat  # late on purpose: in the extra "audit"

    try:
        notebook: Any = nbformat.reads(text, as_version=4)  # type: ignore[no-untyped-call]
        cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    except Exception:  # anything may be in a file that somebody calls a notebook
        return notebook_code(text)
    return "\n\n".join(cells)


def require_library() -> None:
    """Refuse where the libraries of the extra are missing, before anything is read."""
    _library()


def _library() -> Any:
    try:
        import copydetect  # late on purpose: in the extra "audit"
        import nbformat  # noqa: F401  # the same
    except ImportError:
        raise ConfigError(
            "comparing code needs copydetect and nbformat: pip install 'pytest-mlebench[audit]'"
        ) from None
    return copydetect
