"""Large files are verified by the sums that were taken while they were written."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from opened_files import files_read
from store_files import PREPARE, MakeCompetition

from pytest_mlebench.errors import DatasetError
from pytest_mlebench.store.marker import read_marker
from pytest_mlebench.store.store import Store

ROWS = 1_500_000
LARGE = f"""
    import pandas as pd
    from pytest_mlebench.preparing import write_csv
    print("a competition may print what it likes")
    write_csv(pd.DataFrame({{"n": range({ROWS})}}), public / "large.csv")
"""
TAMPER = """
    path = public / "large.csv"
    before = path.stat()
    with path.open("r+b") as file:
        file.write(b"N")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
"""
CONTENT = b"n\n" + b"".join(b"%d\n" % number for number in range(ROWS))
SUM = hashlib.md5(CONTENT).hexdigest()
PUBLISHED = f"""
[checksums]
[checksums.public]
"large.csv" = "{SUM}"
[checksums.private]
"""


@pytest.fixture(params=[False, True], ids=["in this process", "in a process of its own"])
def apart(request: pytest.FixtureRequest) -> bool:
    """Return whether to prepare in a child."""
    return bool(request.param)


@pytest.mark.parametrize("verify", [True, False])
def test_a_large_file_is_not_read_to_be_verified(
    make_competition: MakeCompetition, tmp_path: Path, apart: bool, verify: bool
) -> None:
    competition, store = make_competition(prepare=PREPARE + LARGE, extra=PUBLISHED), Store(tmp_path)
    with files_read() as opened:
        dataset = store.ensure(competition, apart=apart, verify=verify)
    assert "train.csv" in {path.name for path in opened}  # a small one is
    assert "large.csv" not in {path.name for path in opened}
    assert dataset.verified == ("checksums" if verify else "off")
    marker = read_marker(store.prepared(competition))
    assert marker is not None
    assert marker.files["public/large.csv"] == {"md5": SUM, "bytes": len(CONTENT)}
    assert (dataset.public / "large.csv").read_bytes() == CONTENT


def test_a_file_that_was_changed_after_it_was_written_is_found_out(
    make_competition: MakeCompetition, tmp_path: Path, apart: bool
) -> None:
    competition = make_competition(prepare=PREPARE + LARGE + TAMPER, extra=PUBLISHED)
    got = hashlib.md5(b"N" + CONTENT[1:]).hexdigest()
    with pytest.raises(DatasetError, match=f"large.csv expected {SUM}, got {got}"):
        Store(tmp_path).ensure(competition, apart=apart)


def test_a_dataset_is_read_when_it_is_verified_later(
    make_competition: MakeCompetition, tmp_path: Path
) -> None:
    competition, store = make_competition(prepare=PREPARE + LARGE, extra=PUBLISHED), Store(tmp_path)
    public = store.ensure(competition, verify=False).public
    with files_read() as opened:
        assert store.ensure(competition).verified == "checksums"
    assert public / "large.csv" in opened
