"""Every competition against its golden pack: preparation, scores, format check."""

from __future__ import annotations

from pathlib import Path

import pytest
from golden_pack import IDS, Pack, case_file, describe, is_close

from pytest_mlebench import InvalidSubmission, load_competition
from pytest_mlebench.errors import PreparationError

pytestmark = pytest.mark.parametrize("competition_id", IDS)


def test_prepare_gives_exactly_the_golden_files(competition_id: str, tmp_path: Path) -> None:
    pack = Pack(competition_id)
    public, private = tmp_path / "public", tmp_path / "private"
    load_competition(competition_id).prepare(pack.unpack("raw", tmp_path), public, private)
    for folder in (public, private):
        expected = pack.prepared[folder.name]
        found = describe(folder, expected)
        repaired = pack.repaired(folder.name)
        assert found == expected | {name: found.get(name) for name in repaired}
    assert (public / "description.md").is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["private", "public", "raw"]


def test_score_agrees_on_every_case(competition_id: str, tmp_path: Path) -> None:
    pack, competition = Pack(competition_id), load_competition(competition_id)
    private, cases = pack.unpack("private", tmp_path), pack.unpack("cases", tmp_path)
    wrong = {}
    for case, expected in pack.cases.items():
        try:
            score: float | str = competition.score(case_file(cases, case), private)
        except InvalidSubmission as problem:
            score = str(problem)
            if expected is not None or "\n" in score or not score:
                wrong[case] = (score, expected)
        else:
            if expected is None or not is_close(score, expected):
                wrong[case] = (score, expected)
    assert not wrong


def test_check_rules_out_what_the_sample_alone_shows(competition_id: str, tmp_path: Path) -> None:
    pack, competition = Pack(competition_id), load_competition(competition_id)
    public, cases = tmp_path / "public", pack.unpack("cases", tmp_path)
    competition.prepare(pack.unpack("raw", tmp_path), public, tmp_path / "private")
    wrong = {}
    for case, expected in pack.cases.items():
        acceptable = expected is not None or case in pack.notes.get("needs_answers", {})
        try:
            competition.check(case_file(cases, case), public)
            accepted, problem = True, ""
        except InvalidSubmission as refusal:
            accepted, problem = False, str(refusal)
        if accepted != acceptable:
            wrong[case] = (problem or "accepted", expected)
    assert not wrong


def test_an_empty_raw_tree_is_one_error_and_leaves_nothing(
    competition_id: str, tmp_path: Path
) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    with pytest.raises(PreparationError, match=competition_id) as caught:
        load_competition(competition_id).prepare(raw, tmp_path / "public", tmp_path / "private")
    assert "no such" in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]
