"""The wheel: built from the checkout, installed elsewhere, used from another folder."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*command: str | Path, cwd: Path, **variables: str) -> str:
    result = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_the_wheel_holds_the_competitions(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    ids = {path.parent.name for path in ROOT.glob("competitions/*/competition.toml")}
    for competition_id in ids:
        assert f"pytest_mlebench/competitions/{competition_id}/description.md" in names
    assert "pytest_mlebench/competitions/splits/low.txt" in names
    assert "pytest_mlebench/py.typed" in names
    assert not [name for name in names if name.startswith(("tests/", "competitions/"))]


def test_the_wheel_is_small(wheel: Path) -> None:
    assert wheel.stat().st_size <= 1_500_000


def test_the_wheel_tells_where_to_go(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        text = archive.read(name).decode()
    assert "Project-URL: Documentation, https://" in text
    for extra in ("all", "docker", "gpu", "kaggle", "xdist"):
        assert f"Provides-Extra: {extra}" in text
    assert "](docs/" not in text, "the README is the page on PyPI: links are absolute"


def test_the_source_distribution_has_the_documentation(tmp_path: Path) -> None:
    from hatchling.builders.sdist import SdistBuilder

    (built,) = SdistBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with tarfile.open(built) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"docs/index.md", "docs/competition.schema.json", "mkdocs.yml", "examples"} <= names | {
        name.split("/")[0] for name in names
    }


def test_an_installed_wheel_works_from_another_folder(wheel: Path, tmp_path: Path) -> None:
    # the environment's own packages serve as dependencies; only ours is installed anew
    site = tmp_path / "site"
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    run(*pip, "install", "--quiet", "--no-deps", "--target", site, wheel, cwd=tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    # whoever has a conftest.py above the environment has nothing to do with the session
    for folder in (tmp_path, site):
        (folder / "conftest.py").write_text("raise SystemExit('a foreign conftest was imported')")
    (elsewhere / "pytest.ini").write_text("[pytest]")
    program = "import pytest_mlebench, sys; print(pytest_mlebench.__file__)"
    where = run(sys.executable, "-c", program, cwd=elsewhere, PYTHONPATH=str(site))
    assert Path(where.strip()).is_relative_to(site)
    output = run(
        sys.executable,
        "-m",
        "pytest",
        "--mle-agent=dummy",
        "--mle-competition=demo-digits",
        cwd=elsewhere,
        PYTHONPATH=str(site),
        MLEBENCH_DATA_DIR=str(tmp_path / "store"),
    )
    assert "1 passed" in output
    competition, text = "spooky-author-identification", "obfuscated_description"
    program = f"import pytest_mlebench as m; print(m.load_competition({competition!r}).{text})"
    obfuscated = run(sys.executable, "-c", program, cwd=elsewhere, PYTHONPATH=str(site))
    source = ROOT / "competitions" / competition / "description_obfuscated.md"
    assert obfuscated == source.read_text() + "\n"
    listing = run(
        sys.executable,
        "-m",
        "pytest_mlebench",
        "list",
        "--json",
        cwd=elsewhere,
        PYTHONPATH=str(site),
    )
    assert "demo-digits" in listing
