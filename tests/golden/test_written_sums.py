"""What a competition writes is verified through the store without being read again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from golden_pack import Pack
from opened_files import files_read

from pytest_mlebench import Competition, load_competition
from pytest_mlebench.competition import Checksums
from pytest_mlebench.host import crew
from pytest_mlebench.preparing import csv_rows, written_sums
from pytest_mlebench.store.prepared_sums import expected
from pytest_mlebench.store.store import Store

KINDS = (
    "billion-word-imputation",
    "cdiscount-image-classification-challenge",
    "champs-scalar-coupling",
    "facebook-recruiting-iii-keyword-extraction",
    "herbarium-2022-fgvc9",
    "inaturalist-2019-fgvc6",
    "new-york-city-taxi-fare-prediction",
    "random-acts-of-pizza",
    "spaceship-titanic",
    "tensorflow2-question-answering",
    "text-normalization-challenge-english-language",
)


def golden(competition_id: str) -> Competition:
    """Return a competition whose published sums are those of its tiny files."""
    competition, pack = load_competition(competition_id), Pack(competition_id)
    sums = competition.checksums
    assert sums is not None

    def tiny(part: str, names: Mapping[str, str]) -> dict[str, str]:
        return {name: pack.prepared[part][name] for name in names.keys() - pack.repaired(part)}

    return replace(
        competition,
        checksums=Checksums(None, tiny("public", sums.public), tiny("private", sums.private)),
    )


@pytest.mark.parametrize("competition_id", KINDS)
def test_only_raw_files_that_are_passed_on_are_read(
    competition_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(written_sums, "MIN_NOTED_BYTES", 1)
    monkeypatch.setattr(csv_rows, "MIN_INDEXED_BYTES", 0)
    monkeypatch.setattr(crew, "MAX_CREW", 1)
    Pack(competition_id).unpack("raw", tmp_path / "kaggle" / competition_id)
    competition = golden(competition_id)
    with files_read() as opened:
        dataset = Store(tmp_path / "data").ensure(competition, source=tmp_path / "kaggle")
    assert dataset.verified == "checksums"
    prepared = dataset.public.parent
    linked = {name for name in expected(competition) if (prepared / name).stat().st_nlink > 1}
    read = {"/".join(path.parts[-2:]) for path in opened}  # while written, it is in other folders
    assert read & expected(competition).keys() == linked
    assert len(linked) < len(expected(competition))
