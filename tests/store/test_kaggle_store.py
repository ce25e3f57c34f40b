"""From Kaggle's zip to a prepared dataset: verified, kept as asked, nothing stored twice."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from kaggle_server import KaggleServer
from store_files import PREPARE, MakeCompetition, tree, zipped

from pytest_mlebench.archives.archive import write_zip
from pytest_mlebench.competition import Checksums, Competition
from pytest_mlebench.errors import ConfigError, DatasetError, PreparationError
from pytest_mlebench.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "data")


@pytest.fixture
def competition(
    kaggle: KaggleServer, tmp_path: Path, make_competition: MakeCompetition
) -> Competition:
    """Return a competition that Kaggle has, with the checksum of its zip."""
    made = make_competition(source="kaggle")
    data = zipped(made, tmp_path)
    kaggle.add("tiny", data)
    return replace(made, checksums=Checksums(hashlib.md5(data).hexdigest(), {}, {}))


def left(store: Store) -> set[str]:
    return {path.name for path in (store.root / "tiny").iterdir()}


def test_a_competition_is_downloaded_verified_and_prepared(
    store: Store, competition: Competition, kaggle: KaggleServer
) -> None:
    said: list[str] = []
    dataset = store.ensure(competition, progress=said.append)
    assert dataset.answers.read_text().startswith("id,y\n15,1\n")
    assert [line.partition(",")[0] for line in said] == [
        "tiny: downloading",
        f"tiny: {len(kaggle.blobs['tiny'].data)}B downloaded",
        "tiny: unpacking tiny.zip",
        "tiny: preparing",
        "tiny: prepared",
    ]
    assert left(store) == {"prepared", ".lock"}


def test_the_marker_says_what_was_prepared_from_what(
    store: Store, competition: Competition, kaggle: KaggleServer
) -> None:
    prepared = store.ensure(competition).public.parent
    marker = json.loads((prepared / ".mlebench.json").read_text())
    zip_md5 = hashlib.md5(kaggle.blobs["tiny"].data).hexdigest()
    assert marker["origin"]["md5"] == zip_md5
    assert marker["origin"]["bytes"] == len(kaggle.blobs["tiny"].data)
    assert marker["competition"] == "tiny"
    assert marker["source"] == "kaggle"
    assert marker["version"]
    answers = (prepared / "private" / "test.csv").read_bytes()
    assert marker["files"]["private/test.csv"] == {
        "md5": hashlib.md5(answers).hexdigest(),
        "bytes": len(answers),
    }


def test_a_prepared_competition_is_not_asked_for_again(
    store: Store, competition: Competition, kaggle: KaggleServer
) -> None:
    store.ensure(competition)
    kaggle.asked.clear()
    store.ensure(competition)
    assert kaggle.asked == []


def test_the_zip_can_be_kept(store: Store, competition: Competition, kaggle: KaggleServer) -> None:
    store.ensure(competition, keep_raw="zip")
    assert left(store) == {"prepared", ".lock", "tiny.zip", "tiny.zip.json"}
    assert (store.root / "tiny" / "tiny.zip").read_bytes() == kaggle.blobs["tiny"].data


def test_everything_can_be_kept_and_is_stored_once(store: Store, competition: Competition) -> None:
    dataset = store.ensure(competition, keep_raw="all")
    raw = store.root / "tiny" / "raw"
    assert left(store) == {"prepared", ".lock", "tiny.zip", "tiny.zip.json", "raw", ".raw.json"}
    assert (raw / "train.csv").is_file()
    image = dataset.public / "images" / "1.bin"
    assert image.stat().st_ino == (raw / "images" / "1.bin").stat().st_ino


@pytest.mark.parametrize("kept", ["zip", "all"])
def test_what_was_kept_is_used_again(
    store: Store, competition: Competition, kaggle: KaggleServer, kept: str
) -> None:
    assert kept in ("zip", "all")
    store.ensure(competition, keep_raw=kept)  # type: ignore[arg-type]
    shutil.rmtree(store.prepared(competition))
    kaggle.asked.clear()
    assert store.ensure(competition, keep_raw=kept).answers.is_file()  # type: ignore[arg-type]
    assert kaggle.asked == []


def test_a_zip_of_the_reference_implementation_is_used_and_left_alone(
    store: Store, competition: Competition, kaggle: KaggleServer
) -> None:
    folder = store.root / "tiny"
    folder.mkdir(parents=True)
    (folder / "tiny.zip").write_bytes(kaggle.blobs["tiny"].data)
    store.ensure(competition)
    assert kaggle.asked == []
    assert left(store) == {"prepared", ".lock", "tiny.zip"}


def test_raw_files_that_lie_there_are_used_and_left_alone(
    store: Store, competition: Competition, kaggle: KaggleServer
) -> None:
    raw = store.root / "tiny" / "raw"
    raw.mkdir(parents=True)
    competition.generate(raw)
    before = tree(raw)
    said: list[str] = []
    store.ensure(competition, progress=said.append)
    assert said[0] == f"tiny: using the raw files in {raw}"
    assert kaggle.asked == []
    assert tree(raw) == before


def test_a_zip_that_is_not_the_published_one_is_named(
    store: Store, competition: Competition, kaggle: KaggleServer
) -> None:
    wrong = replace(competition, checksums=Checksums("0" * 32, {}, {}))
    got = hashlib.md5(kaggle.blobs["tiny"].data).hexdigest()
    path = store.root / "tiny" / "tiny.zip"
    with pytest.raises(DatasetError) as caught:
        store.ensure(wrong)
    message = (
        f"tiny: {path} is not the published zip, md5 expected {'0' * 32}, got {got}: "
        "remove it and prepare again, or accept it with --mle-verify=off or prepare --verify off"
    )
    assert str(caught.value) == message
    kaggle.asked.clear()
    with pytest.raises(DatasetError) as caught:
        store.ensure(wrong)
    assert str(caught.value) == message
    assert store.ensure(wrong, verify=False).verified == "off"
    assert kaggle.asked == []  # what was downloaded once is not downloaded again


def test_a_foreign_zip_that_is_not_the_published_one_is_named(
    store: Store, competition: Competition, kaggle: KaggleServer
) -> None:
    folder = store.root / "tiny"
    folder.mkdir(parents=True)
    (folder / "tiny.zip").write_bytes(kaggle.blobs["tiny"].data)
    wrong = replace(competition, checksums=Checksums("0" * 32, {}, {}))
    with pytest.raises(DatasetError, match="is not the published zip"):
        store.ensure(wrong)
    assert not (folder / "prepared").exists()


def test_a_download_that_is_no_archive_is_named(
    store: Store, make_competition: MakeCompetition, kaggle: KaggleServer
) -> None:
    kaggle.add("tiny", b"<html>sorry</html>")
    with pytest.raises(PreparationError, match=r"tiny\.zip: neither zip, 7z nor tar"):
        store.ensure(make_competition(source="kaggle"))


@pytest.mark.usefixtures("home")
def test_without_credentials_the_way_out_is_named(
    store: Store, make_competition: MakeCompetition
) -> None:
    with pytest.raises(ConfigError, match="no Kaggle credentials"):
        store.ensure(make_competition(source="kaggle"))


@pytest.mark.parametrize("layout", ["id.zip", "id/id.zip", "id/raw/", "id/", "id.tar.gz"])
def test_local_sources_are_taken_in_every_layout(
    store: Store, competition: Competition, kaggle: KaggleServer, tmp_path: Path, layout: str
) -> None:
    source = tmp_path / "source"
    target = source / layout.replace("id", "tiny")
    target.parent.mkdir(parents=True)
    if layout.endswith(".zip"):
        target.write_bytes(kaggle.blobs["tiny"].data)
    else:
        raw = target if layout.endswith("/") else tmp_path / "raw"
        raw.mkdir()
        competition.generate(raw)
        if layout.endswith(".tar.gz"):
            shutil.make_archive(str(source / "tiny"), "gztar", raw)
    before = tree(source)
    assert store.ensure(competition, source=source).answers.is_file()
    assert kaggle.asked == []
    assert tree(source) == before
    assert left(store) == {"prepared", ".lock"}


def test_a_local_zip_is_verified_too(
    store: Store, competition: Competition, tmp_path: Path
) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "train.csv").write_text("id,y\n")
    write_zip(tmp_path / "source" / "tiny.zip", tmp_path / "other")
    with pytest.raises(DatasetError, match="is not the published zip"):
        store.ensure(competition, source=tmp_path / "source")


def test_a_local_source_without_the_competition_is_named(
    store: Store, competition: Competition, tmp_path: Path
) -> None:
    (tmp_path / "source" / "other").mkdir(parents=True)
    with pytest.raises(DatasetError) as caught:
        store.ensure(competition, source=tmp_path / "source")
    assert str(caught.value) == (
        f"tiny: nothing for it in {tmp_path / 'source'}: "
        "expected tiny.zip or a folder tiny with raw files"
    )


def test_symbolic_links_in_local_raw_files_are_followed(
    store: Store, competition: Competition, tmp_path: Path
) -> None:
    (tmp_path / "real").mkdir()
    competition.generate(tmp_path / "real")
    (tmp_path / "source" / "tiny").mkdir(parents=True)
    for path in (tmp_path / "real").iterdir():
        (tmp_path / "source" / "tiny" / path.name).symlink_to(path)
    dataset = store.ensure(competition, source=tmp_path / "source")
    image = dataset.public / "images" / "1.bin"
    assert image.read_bytes() == b"\1" * 1000
    assert not image.is_symlink()


def test_preparing_apart_gives_the_same(
    store: Store, competition: Competition, tmp_path: Path
) -> None:
    store.ensure(competition)
    Store(tmp_path / "apart").ensure(competition, apart=True)
    assert tree(tmp_path / "apart" / "tiny") == tree(store.root / "tiny")


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("raise ValueError('no')", "tiny: cannot prepare {raw}: ValueError: no"),
        (
            "os.kill(os.getpid(), 9)",
            "tiny: its preparation was killed: out of memory? use fewer --jobs",
        ),
        ("os._exit(3)", "tiny: its preparation ended with 3: "),
    ],
)
def test_a_preparation_apart_that_fails_is_explained(
    store: Store, make_competition: MakeCompetition, code: str, problem: str
) -> None:
    broken = PREPARE.replace("    header, *rows", f"    {code}\n    header, *rows")
    with pytest.raises(PreparationError) as caught:
        store.ensure(make_competition(prepare=broken), apart=True)
    start, _, end = problem.partition("{raw}")
    assert str(caught.value).startswith(start)
    assert str(caught.value).endswith(end)
