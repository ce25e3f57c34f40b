"""Prepared files are compared with published sums; tables, where bytes vary, by content."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from store_files import MakeCompetition

from pytest_mlebench._files import md5
from pytest_mlebench.competition import Checksums, Competition
from pytest_mlebench.errors import DatasetError
from pytest_mlebench.store.prepared_sums import compare, content, verify

# The library that writes these tables is on its way out of pandas; their bytes are the point here.
pytestmark = pytest.mark.filterwarnings("ignore:.*fastparquet.*:DeprecationWarning")

TABLE = pd.DataFrame({"id": range(1000), "x": [i / 7 for i in range(1000)]})


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    """Return a folder with a parquet table."""
    (tmp_path / "prepared" / "public").mkdir(parents=True)
    path = tmp_path / "prepared" / "public" / "meta.parquet"
    TABLE.to_parquet(path, engine="fastparquet", index=False)
    return tmp_path / "prepared"


def expecting(make_competition: MakeCompetition, value: str) -> Competition:
    sums = Checksums(None, {"meta.parquet": value}, {})
    return replace(make_competition(source="kaggle"), checksums=sums)


def test_a_table_written_otherwise_has_the_same_content(prepared: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.parquet"
    TABLE.to_parquet(
        other, engine="fastparquet", index=False, compression="GZIP", row_group_offsets=300
    )
    first = prepared / "public" / "meta.parquet"
    assert md5(first) != md5(other)
    assert content(first) == content(other)


def test_a_table_is_compared_by_content_where_that_is_published(
    prepared: Path, make_competition: MakeCompetition
) -> None:
    value = f"content:{content(prepared / 'public' / 'meta.parquet')}"
    assert compare(expecting(make_competition, value), prepared).wrong == []
    TABLE.assign(x=TABLE["x"] + 1).to_parquet(
        prepared / "public" / "meta.parquet", engine="fastparquet", index=False
    )
    (mismatch,) = compare(expecting(make_competition, value), prepared).wrong
    assert mismatch.expected == value
    assert mismatch.got.startswith("content:")


def test_a_table_with_other_bytes_is_accepted_if_it_is_whole(
    prepared: Path, make_competition: MakeCompetition
) -> None:
    assert compare(expecting(make_competition, "0" * 32), prepared).wrong == []


def test_a_table_that_is_cut_off_is_not_accepted(
    prepared: Path, make_competition: MakeCompetition
) -> None:
    path = prepared / "public" / "meta.parquet"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DatasetError, match="not a readable parquet file"):
        verify(expecting(make_competition, "0" * 32), prepared, "try again")


def test_a_table_without_rows_is_not_accepted(
    prepared: Path, make_competition: MakeCompetition
) -> None:
    TABLE[:0].to_parquet(prepared / "public" / "meta.parquet", engine="fastparquet", index=False)
    with pytest.raises(DatasetError, match="got a table without rows"):
        verify(expecting(make_competition, "0" * 32), prepared, "try again")


def test_many_mismatches_are_shown_in_part(
    tmp_path: Path, make_competition: MakeCompetition
) -> None:
    sums = Checksums(None, {f"{i}.csv": "0" * 32 for i in range(7)}, {})
    competition = replace(make_competition(source="kaggle"), checksums=sums)
    with pytest.raises(DatasetError) as caught:
        verify(competition, tmp_path, "try again")
    message = str(caught.value)
    assert message.startswith("tiny: 7 prepared file(s) differ from the published checksums: ")
    assert f"public/0.csv expected {'0' * 32}, got no such file; public/1.csv" in message
    assert message.endswith(
        "; and 2 more: try again, or accept them with --mle-verify=off or prepare --verify off"
    )
