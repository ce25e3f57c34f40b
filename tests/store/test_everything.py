"""All competitions, from Kaggle's zip to the golden result."""

from __future__ import annotations

import hashlib
import io
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from golden_pack import IDS, Pack, describe
from kaggle_server import KaggleServer

from pytest_mlebench.competition import Checksums, Competition
from pytest_mlebench.registry import Registry
from pytest_mlebench.store.bulk import prepare_selection
from pytest_mlebench.store.store import Store


def golden_sums(pack: Pack, part: str) -> dict[str, str]:
    """Return the sums of the golden files that are compared byte by byte."""
    repaired = pack.repaired(part)
    files: dict[str, Any] = pack.prepared[part]
    return {
        name: value
        for name, value in files.items()
        if isinstance(value, str) and value != "empty-dir" and name not in repaired
    }


class GoldenRegistry(Registry):
    """The built-in competitions, with the checksums of the golden packs for the published ones."""

    zips: dict[str, str]

    def load(self, competition_id: str) -> Competition:
        """Return a competition that expects the golden zip and the golden files."""
        pack = Pack(competition_id)
        sums = Checksums(
            self.zips[competition_id], golden_sums(pack, "public"), golden_sums(pack, "private")
        )
        return replace(super().load(competition_id), checksums=sums)


def packed(folder: Path) -> bytes:
    """Return a zip of a folder, with the folders in it."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder))
    return file.getvalue()


@pytest.fixture
def registry(kaggle: KaggleServer, tmp_path: Path) -> GoldenRegistry:
    """Zip the golden raw trees for Kaggle to offer."""
    registry = GoldenRegistry()
    registry.zips = {}
    for competition_id in IDS:
        raw = Pack(competition_id).unpack("raw", tmp_path / "golden" / competition_id)
        data = packed(raw)
        registry.zips[competition_id] = hashlib.md5(data).hexdigest()
        kaggle.add(competition_id, data)
    shutil.rmtree(tmp_path / "golden")
    return registry


def test_all_82_are_prepared_from_kaggle_as_the_packs_say(
    registry: GoldenRegistry, kaggle: KaggleServer, tmp_path: Path
) -> None:
    assert len(IDS) == 82
    store = Store(tmp_path / "data")
    preparations = prepare_selection(registry, IDS, store)
    assert [str(preparation.error) for preparation in preparations if preparation.error] == []
    for preparation in preparations:
        assert preparation.dataset is not None
        assert preparation.dataset.verified == "checksums"
        pack = Pack(preparation.competition.id)
        for folder in (preparation.dataset.public, preparation.dataset.private):
            expected = pack.prepared[folder.name]
            found = describe(folder, expected)
            repaired = pack.repaired(folder.name)
            assert found == expected | {name: found.get(name) for name in repaired}
        left = {path.name for path in store.folder(preparation.competition).iterdir()}
        assert left == {"prepared", ".lock"}
    downloads = [asked for asked in kaggle.asked if asked.what == "blob"]
    assert sum(asked.headers.get("Range") is None for asked in downloads) == 82
    kaggle.asked.clear()
    prepare_selection(registry, IDS, store)
    assert kaggle.asked == []
