"""Whatever way data take (several cores, large files, other libraries), the files are golden."""

from __future__ import annotations

import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from golden_pack import Pack, describe

from pytest_mlebench import load_competition
from pytest_mlebench.archives import deflate, unzip
from pytest_mlebench.host import crew
from pytest_mlebench.preparing import csv_parts, csv_rows, csv_source, json_text, number_text

CSV = (
    "champs-scalar-coupling",
    "facebook-recruiting-iii-keyword-extraction",
    "h-and-m-personalized-fashion-recommendations",
    "new-york-city-taxi-fare-prediction",
    "tabular-playground-series-dec-2021",
    "tabular-playground-series-may-2022",
    "text-normalization-challenge-english-language",
    "ventilator-pressure-prediction",
)
OTHERS = (
    "AI4Code",
    "billion-word-imputation",
    "herbarium-2021-fgvc8",
    "herbarium-2022-fgvc9",
    "iwildcam-2019-fgvc6",
    "iwildcam-2020-fgvc7",
    "leaf-classification",
    "random-acts-of-pizza",
    "spaceship-titanic",
    "stanford-covid-vaccine",
    "statoil-iceberg-classifier-challenge",
    "the-icml-2013-whale-challenge-right-whale-redux",
    "whale-categorization-playground",
)

WITHOUT = """
import sys
sys.modules["isal"] = sys.modules["orjson"] = None
from pathlib import Path
from pytest_mlebench import load_competition
from pytest_mlebench.preparing import json_text
assert json_text.orjson is None
load_competition(sys.argv[1]).prepare(*map(Path, sys.argv[2:]))
"""


def assert_golden(pack: Pack, folder: Path) -> None:
    for name in ("public", "private"):
        expected = pack.prepared[name]
        found = describe(folder / name, expected)
        assert found == expected | {each: found.get(each) for each in pack.repaired(name)}


@pytest.mark.parametrize(
    ("competition_id", "cores"), [*((name, 1) for name in CSV), (CSV[3], 2), (CSV[-1], 2)]
)
def test_large_csv_files_give_the_golden_ones(
    competition_id: str, cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_rows, "MIN_INDEXED_BYTES", 0)
    monkeypatch.setattr(csv_source, "PART_BYTES", 2000)
    monkeypatch.setattr(csv_parts, "MIN_SHARED_CELLS", 0)
    monkeypatch.setattr(csv_rows, "TableRows", None)  # nothing is read as a whole
    monkeypatch.setattr(crew, "host_cpus", lambda: cores)
    pack = Pack(competition_id)
    raw = pack.unpack("raw", tmp_path)
    load_competition(competition_id).prepare(raw, tmp_path / "public", tmp_path / "private")
    assert_golden(pack, tmp_path)


@pytest.mark.parametrize("competition_id", [*CSV, *OTHERS])
def test_the_standard_library_gives_the_golden_files(
    competition_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (number_text, json_text):
        assert module.orjson is not None
        monkeypatch.setattr(module, "orjson", None)
    for each in (deflate, unzip):
        assert each.fast_zlib is not zlib
        monkeypatch.setattr(each, "fast_zlib", zlib)
    pack = Pack(competition_id)
    raw = pack.unpack("raw", tmp_path)
    load_competition(competition_id).prepare(raw, tmp_path / "public", tmp_path / "private")
    assert_golden(pack, tmp_path)


def test_no_fast_library_need_be_installed(tmp_path: Path) -> None:
    name = "statoil-iceberg-classifier-challenge"
    pack = Pack(name)
    paths = (pack.unpack("raw", tmp_path), tmp_path / "public", tmp_path / "private")
    subprocess.run([sys.executable, "-c", WITHOUT, name, *map(str, paths)], check=True)
    assert_golden(pack, tmp_path)
