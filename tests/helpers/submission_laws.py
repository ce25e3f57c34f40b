"""What holds for every file: a score or one sentence, and check and score agree."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from golden_pack import Pack, case_file
from submission_mutations import mutated

from pytest_mlebench import InvalidSubmission, load_competition
from pytest_mlebench.competition import Competition

# What no sample shows: what the answers make of a number, and which rows are scored.
ONLY_ANSWERS_SHOW = (
    ("", "the score of this submission is not a finite number"),
    ("champs-scalar-coupling", "the logarithm of a mean error of zero is not defined"),
    ("h-and-m-personalized-fashion-recommendations", "missing, for id"),
)


@dataclass
class Bench:
    """A prepared competition, and honest submissions to it."""

    competition: Competition
    public: Path
    private: Path
    honest: tuple[str, ...]
    file: Path
    scored: int = 0  # submissions so far

    @classmethod
    def of(cls, competition_id: str, folder: Path) -> Bench:
        """Prepare the golden data of a competition."""
        pack, competition = Pack(competition_id), load_competition(competition_id)
        public, private = folder / "public", folder / "private"
        competition.prepare(pack.unpack("raw", folder), public, private)
        cases = pack.unpack("cases", folder)
        names = [name for name in ("noisy-1", "gold", "sample") if name in pack.cases]
        honest = tuple(case_file(cases, name).read_text(encoding="utf-8") for name in names)
        return cls(competition, public, private, honest, folder / "submission.csv")

    def write(self, seed: int) -> None:
        """Write the submission of a number: always the same."""
        text = self.honest[seed % len(self.honest)]
        self.file.write_bytes(mutated(text, f"{self.competition.id}-{seed}"))

    def problem(self) -> str | None:
        """Return which law the submission breaks, if any."""
        checked = self._verdict(lambda: self.competition.check(self.file, self.public))
        scored = self._verdict(lambda: self.competition.score(self.file, self.private))
        for verdict in (checked, scored):
            if isinstance(verdict, Exception):
                return f"{type(verdict).__name__}: {verdict}"
            if isinstance(verdict, str) and ("\n" in verdict or len(verdict) > 600):
                return f"not one short sentence: {verdict[:2000]!r}"
        self.scored += isinstance(scored, float)
        if isinstance(scored, float) and not math.isfinite(scored):
            return f"a score of {scored}"
        if isinstance(checked, str) and not isinstance(scored, str):
            return f"check refuses what has the score {scored}: {checked}"
        if isinstance(scored, str) and not isinstance(checked, str) and self._shows(scored):
            return f"check accepts what score refuses: {scored}"
        return None

    def _shows(self, problem: str) -> bool:
        """Tell whether the sample is enough to see a problem."""
        return not any(
            self.competition.id.startswith(name) and words in problem
            for name, words in ONLY_ANSWERS_SHOW
        )

    @staticmethod
    def _verdict(action: Callable[[], float | None]) -> float | str | Exception | None:
        try:
            return action()
        except InvalidSubmission as problem:
            return str(problem)
        except Exception as error:  # whatever else it is, it must not happen
            return error
