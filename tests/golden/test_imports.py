"""A process that only grades imports what its competition needs, and nothing more."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from golden_pack import Pack, case_file

HEAVY = ("docker", "kaggle", "PIL", "py7zr", "pytest", "rapidfuzz", "scipy", "sklearn")
OURS = ("pytest_mlebench.plugin", "pytest_mlebench.preparing", "pytest_mlebench.store")

SCORE = """
import json, sys
from pathlib import Path
from pytest_mlebench import load_competition
load_competition(sys.argv[1]).score(Path(sys.argv[2]), Path(sys.argv[3]))
print(json.dumps(sorted(sys.modules)))
"""


@pytest.mark.parametrize(
    ("competition_id", "needed"),
    [
        ("spaceship-titanic", set()),
        ("billion-word-imputation", {"rapidfuzz"}),
        ("google-quest-challenge", {"scipy"}),
    ],
)
def test_grading_imports_only_what_the_competition_needs(
    competition_id: str, needed: set[str], tmp_path: Path
) -> None:
    pack = Pack(competition_id)
    case, private = case_file(pack.unpack("cases", tmp_path), "noisy-1"), tmp_path / "private"
    pack.unpack("private", tmp_path)
    command = [sys.executable, "-c", SCORE, competition_id, str(case), str(private)]
    imported = set(json.loads(subprocess.check_output(command)))
    assert imported & {*HEAVY, *OURS} == needed
