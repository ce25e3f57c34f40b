"""The checks that compare attempts with other people's work: notebooks, and runs of others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_mlebench import __version__
from pytest_mlebench.audit.attempt_files import AttemptFiles
from pytest_mlebench.audit.audit_run import AttemptCheck, sum_of
from pytest_mlebench.audit.plagiarism import CodeSource, compare, read_sources
from pytest_mlebench.reports.findings import Finding

MAX_NAMED = 5


@dataclass(frozen=True)
class OthersWork:
    """The code and the submission of another attempt on a competition."""

    competition: str
    agent: str
    name: str
    code: tuple[CodeSource, ...]
    submission: str | None  # its sum


def notebook_check(where: str, folder_of: Callable[[str], Path]) -> AttemptCheck:
    """Return the comparison with the notebooks in a folder for each competition."""

    def sources(attempt: AttemptFiles) -> tuple[CodeSource, ...]:
        return read_sources(folder_of(attempt.result.competition))

    def run(attempt: AttemptFiles) -> list[Finding]:
        if found := sources(attempt):
            return compare(attempt, found)
        what = f"no notebooks of {attempt.result.competition} were there to compare with"
        return [Finding("plagiarism", "info", what)]

    return AttemptCheck(f"notebooks {where}", run, lambda attempt: _sum(sources(attempt)))


def run_check(where: str, attempts: Iterable[OthersWork], *, within: bool = False) -> AttemptCheck:
    """Return the comparison with other agents' attempts of a run, or of the same one (*within*)."""
    listed = list(attempts)

    def others(attempt: AttemptFiles) -> list[OthersWork]:
        result = attempt.result
        same = [other for other in listed if other.competition == result.competition]
        return [other for other in same if not is_own(other, result.agent)]

    def run(attempt: AttemptFiles) -> list[Finding]:
        found = others(attempt)
        code = [source for other in found for source in other.code]
        return [*_same_submission(attempt, () if within else found), *compare(attempt, code)]

    def inputs(attempt: AttemptFiles) -> str:
        found = others(attempt)
        code = [source for other in found for source in other.code]
        return sum_of(_sum(code), *(f"{other.name} {other.submission}" for other in found))

    return AttemptCheck(f"against {where}", run, inputs)


def is_own(other: OthersWork, agent: str) -> bool:
    """Tell whether an attempt is of the same agent, whose own code is no copy of anybody's."""
    return bool(agent) and other.agent == agent


def others_work(attempt: AttemptFiles, run: str) -> OthersWork:
    """Return what an attempt of another run has to compare with."""
    result = attempt.result
    name = " ".join(filter(None, (run, result.agent, f"seed {result.seed}")))
    code = tuple(CodeSource(f"{name} {text.place}", text.text) for text in attempt.code)
    return OthersWork(result.competition, result.agent, name, code, attempt.submission_digest)


def _same_submission(attempt: AttemptFiles, others: Iterable[OthersWork]) -> list[Finding]:
    mine = attempt.submission_digest
    names = [other.name for other in others if mine is not None and other.submission == mine]
    if not names:
        return []
    what = f"the submission is byte for byte that of {', '.join(names[:MAX_NAMED])}"
    return [Finding("submission", "suspicious", what)]


def _sum(sources: Sequence[CodeSource]) -> str:
    return sum_of(__version__, *(part for each in sources for part in (each.name, each.text)))
