"""The store makes a dataset once, whole or not at all, and knows when it is complete."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest
from store_files import PREPARE, MakeCompetition, tree

from pytest_mlebench._files import md5
from pytest_mlebench.errors import DatasetError, PreparationError
from pytest_mlebench.store.marker import Marker
from pytest_mlebench.store.store import Store


def checksums_of(prepared: Path) -> str:
    """Return the table of checksums that a prepared folder has."""
    lines = ["\n[checksums]\n"]
    for part in ("public", "private"):
        lines.append(f"[checksums.{part}]\n")
        files = sorted(p for p in (prepared / part).glob("*.csv"))
        lines.extend(f'"{path.name}" = "{md5(path)}"\n' for path in files)
    return "".join(lines)


def test_a_generated_competition_is_prepared(
    tmp_path: Path, make_competition: MakeCompetition
) -> None:
    dataset = Store(tmp_path / "data").ensure(make_competition())
    assert dataset.sample.read_text().startswith("id,y\n15,0\n")
    assert dataset.answers.read_text().startswith("id,y\n15,1\n")
    assert (dataset.public / "description.md").read_text() == "# tiny\n"
    assert dataset.public == tmp_path / "data" / "tiny" / "prepared" / "public"
    assert dataset.verified == "none"


def test_the_answers_are_closed_to_others_and_the_data_are_not(
    tmp_path: Path, make_competition: MakeCompetition
) -> None:
    dataset = Store(tmp_path / "data").ensure(make_competition())
    assert dataset.private.stat().st_mode & 0o777 == 0o700
    assert dataset.public.stat().st_mode & 0o055 == 0o055


def test_nothing_but_the_prepared_folder_is_left(
    tmp_path: Path, make_competition: MakeCompetition
) -> None:
    Store(tmp_path / "data").ensure(make_competition())
    left = {path.name for path in (tmp_path / "data" / "tiny").iterdir()}
    assert left == {"prepared", ".lock"}


def test_a_prepared_competition_is_not_prepared_again(
    tmp_path: Path, make_competition: MakeCompetition
) -> None:
    store = Store(tmp_path / "data")
    first = store.ensure(make_competition()).sample.stat().st_ino
    messages: list[str] = []
    again = store.ensure(make_competition(), progress=messages.append)
    assert again.sample.stat().st_ino == first
    assert messages == []


def test_a_generated_competition_is_made_anew_when_its_code_changes(
    tmp_path: Path, make_competition: MakeCompetition
) -> None:
    store = Store(tmp_path / "data")
    store.ensure(make_competition())
    changed = make_competition(prepare=PREPARE.replace("range(20)", "range(30)"))
    assert store.find(changed) is None
    assert store.ensure(changed).answers.read_text().count("\n") == 16


def test_an_empty_store_has_no_dataset(tmp_path: Path, make_competition: MakeCompetition) -> None:
    assert Store(tmp_path / "data").find(make_competition()) is None


def test_a_dataset_whose_answers_are_gone_is_not_complete(
    tmp_path: Path, make_competition: MakeCompetition
) -> None:
    store = Store(tmp_path / "data")
    store.ensure(make_competition()).answers.unlink()
    assert store.find(make_competition()) is None
    assert store.ensure(make_competition()).answers.is_file()


def test_never_preparing_says_how_to_prepare(
    tmp_path: Path, make_competition: MakeCompetition
) -> None:
    with pytest.raises(DatasetError) as caught:
        Store(tmp_path / "data").ensure(make_competition(), prepare=False)
    assert str(caught.value) == (
        f"tiny: not prepared in {tmp_path / 'data'}: run pytest-mlebench prepare --competition tiny"
    )


def test_a_local_competition_without_raw_files_says_where_to_put_them(
    tmp_path: Path, make_competition: MakeCompetition
) -> None:
    competition = make_competition(source="local")
    with pytest.raises(DatasetError) as caught:
        Store(tmp_path / "data").ensure(competition)
    assert str(caught.value) == (
        f"tiny: no raw files: put them into {competition.folder / 'raw'} or "
        f"{tmp_path / 'data' / 'tiny' / 'raw'}, "
        "or name the folder that has them with pytest-mlebench prepare --from DIR"
    )


def test_a_generator_that_fails_is_named(tmp_path: Path, make_competition: MakeCompetition) -> None:
    broken = PREPARE.replace('(raw / "images").mkdir()', 'raise RuntimeError("no luck")')
    with pytest.raises(PreparationError) as caught:
        Store(tmp_path / "data").ensure(make_competition(prepare=broken))
    assert str(caught.value) == "tiny: cannot generate its data: RuntimeError: no luck"


def test_a_failed_preparation_leaves_the_old_state(
    tmp_path: Path, make_competition: MakeCompetition
) -> None:
    store = Store(tmp_path / "data")
    store.ensure(make_competition())
    before = tree(tmp_path / "data" / "tiny" / "prepared")
    broken = make_competition(prepare=PREPARE.replace("[:15]", "['x']"))
    with pytest.raises(PreparationError):
        store.ensure(broken)
    assert tree(tmp_path / "data" / "tiny" / "prepared") == before
    assert not list((tmp_path / "data" / "tiny").glob(".tmp-*"))


def prepared_elsewhere(tmp_path: Path, make_competition: MakeCompetition) -> str:
    """Lay out a dataset as another program would: no marker; return its checksums."""
    prepared = Store(tmp_path / "data").ensure(make_competition()).public.parent
    (prepared / ".mlebench.json").unlink()
    (prepared / "private").chmod(0o755)
    return checksums_of(prepared)


def test_data_without_a_marker_are_used_if_their_checksums_say_so(
    tmp_path: Path, make_competition: MakeCompetition
) -> None:
    sums = prepared_elsewhere(tmp_path, make_competition)
    competition = make_competition(source="kaggle", extra=sums)
    store = Store(tmp_path / "data")
    found = store.find(competition)
    assert found is not None
    assert found.verified == "checksums"
    marker = json.loads((found.public.parent / ".mlebench.json").read_text())
    assert marker["verified"] == "checksums"
    assert found.private.stat().st_mode & 0o777 == 0o700, "closed, as if it had been made here"


def test_a_read_only_store_is_used_without_a_marker(
    tmp_path: Path, make_competition: MakeCompetition, monkeypatch: pytest.MonkeyPatch
) -> None:
    sums = prepared_elsewhere(tmp_path, make_competition)

    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Marker, "write", refuse)
    competition = make_competition(source="kaggle", extra=sums)
    before = {path.name for path in (tmp_path / "data" / "tiny").rglob("*")}
    dataset = Store(tmp_path / "data").ensure(competition)
    assert dataset.verified == "checksums"
    assert {path.name for path in (tmp_path / "data" / "tiny").rglob("*")} == before


def test_data_without_a_marker_that_differ_are_not_complete(
    tmp_path: Path, make_competition: MakeCompetition
) -> None:
    sums = prepared_elsewhere(tmp_path, make_competition)
    (tmp_path / "data" / "tiny" / "prepared" / "public" / "train.csv").write_text("id,y\n")
    assert Store(tmp_path / "data").find(make_competition(source="kaggle", extra=sums)) is None


def test_data_without_marker_and_checksums_are_never_taken_for_complete(
    tmp_path: Path, make_competition: MakeCompetition
) -> None:
    prepared_elsewhere(tmp_path, make_competition)
    assert Store(tmp_path / "data").find(make_competition()) is None


def test_prepared_files_that_differ_are_named(
    tmp_path: Path, make_competition: MakeCompetition
) -> None:
    right = Store(tmp_path / "right").ensure(make_competition())
    sums = checksums_of(right.public.parent)
    good = md5(right.public / "train.csv")
    competition = make_competition(extra=sums.replace(good, "0" * 32))
    with pytest.raises(DatasetError) as caught:
        Store(tmp_path / "data").ensure(competition)
    assert str(caught.value) == (
        "tiny: 1 prepared file(s) differ from the published checksums: "
        f"public/train.csv expected {'0' * 32}, got {good}: "
        "fetch the raw files again, or accept them with --mle-verify=off or prepare --verify off"
    )
    assert not (tmp_path / "data" / "tiny" / "prepared").exists()


def test_verification_can_be_turned_off_and_is_remembered(
    tmp_path: Path, make_competition: MakeCompetition
) -> None:
    right = Store(tmp_path / "right").ensure(make_competition())
    sums = checksums_of(right.public.parent).replace(md5(right.public / "train.csv"), "0" * 32)
    competition = make_competition(extra=sums)
    store = Store(tmp_path / "data")
    assert store.ensure(competition, verify=False).verified == "off"
    assert store.ensure(competition, verify=False).verified == "off"
    with pytest.raises(DatasetError, match="differ from the published checksums"):
        store.ensure(competition)


def test_a_store_that_cannot_be_written_says_so(
    tmp_path: Path, make_competition: MakeCompetition
) -> None:
    (tmp_path / "data").write_text("not a folder")
    with pytest.raises(DatasetError) as caught:
        Store(tmp_path / "data").ensure(make_competition())
    assert str(caught.value) == (
        f"tiny: cannot write to the dataset store {tmp_path / 'data'}: Not a directory: "
        "choose another with --mle-data-dir"
    )
