"""The public names: what is there, for people, programs and type checkers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import pytest_mlebench
from pytest_mlebench import Competition, grade_submission, load_competition
from pytest_mlebench.errors import ConfigError


def test_dir_lists_the_public_names_and_all_of_them_are_there() -> None:
    assert set(pytest_mlebench.__all__) | {"__version__"} == set(dir(pytest_mlebench))
    for name in pytest_mlebench.__all__:
        assert getattr(pytest_mlebench, name).__doc__, name
    with pytest.raises(AttributeError, match="has no attribute 'NoSuchThing'"):
        pytest_mlebench.NoSuchThing  # type: ignore[attr-defined]  # noqa: B018  # the point of it


def test_a_type_checker_knows_what_is_not_there(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("from pytest_mlebench import Agent, NoSuchThing\nAgent(name=1)\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=", "--cache-dir", tmp_path / "c", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert 'has no attribute "NoSuchThing"' in done.stdout
    assert 'Argument "name" to "Agent" has incompatible type "int"' in done.stdout


@pytest.fixture
def competition() -> Competition:
    return load_competition("demo-wine-cultivars")


def test_a_file_is_validated_and_graded_by_name(competition: Competition, tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("id,barolo\n1,0.5\n")
    valid, problem = competition.validate(bad)
    assert not valid
    assert problem is not None
    assert "grignolino" in problem
    grade = grade_submission(bad, competition.id)
    assert (grade.valid, grade.problem is not None) == (False, True)
    rows = "".join(f"{i},0.4,0.3,0.3\n" for i in _ids(competition))
    bad.write_text("id,barolo,grignolino,barbera\n" + rows)
    assert competition.validate(bad) == (True, None)
    assert grade_submission(str(bad), competition.id).score == pytest.approx(1.08, abs=0.1)
    with pytest.raises(ConfigError, match="unknown competition 'wine'"):
        grade_submission(bad, "wine")


def _ids(competition: Competition) -> list[str]:
    from pytest_mlebench.store.location import default_store

    path = default_store() / competition.id / "prepared/public/sample_submission.csv"
    return [line.partition(",")[0] for line in path.read_text().splitlines()[1:]]
