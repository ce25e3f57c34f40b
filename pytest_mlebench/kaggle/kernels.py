"""Other people's notebooks for a competition: a list of the best known, fetched when asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from pytest_mlebench._files import write_text
from pytest_mlebench._messages import Log, silent
from pytest_mlebench.competition import Competition
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.kaggle.client import Kaggle, NoSuchKernel

LIST = "kernels.txt"  # beside the folders of competitions: [ID], then USER/NAME, a line each
FOLDER = "kernels"  # in the dataset store, beside a competition's data

_REFERENCE = re.compile(r"[\w-]+/[\w-]+")


def listed_kernels(competition: Competition) -> tuple[str, ...]:
    """Return the notebooks that are known of a competition, as USER/NAME."""
    path = competition.folder.parent / LIST
    if not path.is_file():
        return ()
    found: list[str] = []
    section = ""
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        line = text.strip()
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not _REFERENCE.fullmatch(line):
            raise ConfigError(f"{path} line {number}: must be USER/NAME, given: {line!r}")
        elif line and section == competition.id:
            found.append(line)
    return tuple(found)


def fetched_kernels(kept: Path) -> tuple[Path, ...]:
    """Return the notebooks that were fetched already."""
    return tuple(sorted((kept / FOLDER).glob("*")))


def fetch_kernels(
    competition: Competition, kept: Path, names: Sequence[str], log: Log | None = None
) -> tuple[int, list[str]]:
    """Fetch what is not there yet; return how many came, and why others did not."""
    said = log or silent
    there = {path.stem for path in fetched_kernels(kept)}
    wanted = [name for name in names if _stem(name) not in there]
    problems: list[str] = []
    if not wanted:
        return 0, problems
    with Kaggle(log) as kaggle:
        for number, name in enumerate(wanted, start=1):
            said(f"{competition.id}: notebook {number} of {len(wanted)}: {name}")
            try:
                kernel = kaggle.kernel(name)
            except NoSuchKernel as error:  # one that is gone, or private now
                problems.append(str(error))
                continue
            suffix = ".ipynb" if kernel.is_notebook else ".py"
            write_text(kept / FOLDER / f"{_stem(name)}{suffix}", kernel.source)
    return len(wanted) - len(problems), problems


def _stem(name: str) -> str:
    return name.replace("/", "__")
