"""Full leaderboards come from Kaggle or from Meta Kaggle, and medals from them."""

from __future__ import annotations

from pathlib import Path

import pytest
from kaggle_server import KaggleServer
from store_files import MakeCompetition

from pytest_mlebench.cli import main
from pytest_mlebench.competition import Competition
from pytest_mlebench.errors import ConfigError, DatasetError
from pytest_mlebench.kaggle.leaderboards import (
    fetch_leaderboard,
    import_leaderboard,
    leaderboard_of,
    with_leaderboard,
)
from pytest_mlebench.medals import Medal


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "data" / "tiny"


@pytest.fixture
def competition(make_competition: MakeCompetition) -> Competition:
    return make_competition(source="kaggle")


def test_every_page_is_fetched(kaggle: KaggleServer, kept: Path, competition: Competition) -> None:
    kaggle.add("tiny", b"zip")
    kaggle.boards["tiny"] = [(f"team, {i}", f"{1 - i / 1000}") for i in range(123)]
    board = fetch_leaderboard(competition, kept)
    assert board.teams == 123
    assert board.gold == 0.991  # the tenth of 100 to 249 teams
    assert kaggle.count("GetLeaderboard") == 3
    again = leaderboard_of(competition, kept)
    assert again == board


def test_teams_without_a_score_do_not_count(
    kaggle: KaggleServer, kept: Path, competition: Competition
) -> None:
    kaggle.add("tiny", b"zip")
    kaggle.boards["tiny"] = [("a", "0.5"), ("b", ""), ("c", "nan"), ("d", "0.25")]
    assert fetch_leaderboard(competition, kept).teams == 2


def test_a_leaderboard_without_scores_is_refused(
    kaggle: KaggleServer, kept: Path, competition: Competition
) -> None:
    kaggle.add("tiny", b"zip")
    kaggle.boards["tiny"] = []
    with pytest.raises(DatasetError) as caught:
        fetch_leaderboard(competition, kept)
    assert str(caught.value) == "tiny: Kaggle has no scores of any team"


def test_without_one_the_table_of_the_competition_counts(
    kept: Path, competition: Competition
) -> None:
    assert leaderboard_of(competition, kept) == competition.leaderboard


def test_medals_come_from_the_full_leaderboard(
    kaggle: KaggleServer, kept: Path, competition: Competition
) -> None:
    kaggle.add("tiny", b"zip")
    kaggle.boards["tiny"] = [(str(i), str(i)) for i in range(1, 101)]
    fetch_leaderboard(competition, kept)
    full = with_leaderboard(competition, kept).leaderboard
    assert [full.medal(score) for score in (91, 90, 81, 80, 61, 60)] == [
        Medal.GOLD,
        Medal.SILVER,
        Medal.SILVER,
        Medal.BRONZE,
        Medal.BRONZE,
        Medal.NONE,
    ]


TEAMS = """Id,CompetitionId,TeamName,PrivateLeaderboardSubmissionId,IsBenchmark
1,4711,one,11,False
2,4711,,12,False
3,4711,the host,13,True
4,4711,never submitted,,False
5,99,elsewhere,15,False
6,4711,"six, jr",16,False
"""
SUBMISSIONS = """Id,TeamId,PrivateScoreFullPrecision,PrivateScoreLeaderboardDisplay
10,1,0.9,0.9
11,1,0.123456789012345678,0.12
12,2,,0.5
13,3,1.0,1.0
15,5,0.7,0.7
16,6,0.25,0.25
"""


@pytest.fixture
def meta(tmp_path: Path) -> Path:
    """Return a small Meta Kaggle folder."""
    folder = tmp_path / "meta"
    folder.mkdir()
    (folder / "Teams.csv").write_text(TEAMS)
    (folder / "Submissions.csv").write_text(SUBMISSIONS)
    (folder / "Competitions.csv").write_text("Id,Slug,Title\n99,other,O\n4711,tiny,T\n")
    return folder


def stored(kept: Path) -> str:
    return (kept / "leaderboard.csv").read_text()


def test_meta_kaggle_gives_the_private_scores(
    meta: Path, kept: Path, competition: Competition
) -> None:
    assert import_leaderboard(competition, kept, meta).teams == 3
    assert stored(kept) == 'team,score\n2,0.5\n"six, jr",0.25\none,0.12345678901234568\n'


def test_meta_kaggle_is_read_in_parts(
    meta: Path, kept: Path, competition: Competition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_mlebench.kaggle.leaderboards.CHUNK_ROWS", 2)
    assert import_leaderboard(competition, kept, meta).teams == 3


def test_meta_kaggle_without_benchmark_column_or_full_precision_is_read(
    meta: Path, kept: Path, competition: Competition
) -> None:
    lines = TEAMS.splitlines()
    (meta / "Teams.csv").write_text("\n".join(line.rpartition(",")[0] for line in lines))
    (meta / "Submissions.csv").write_text(
        "Id,PrivateScoreLeaderboardDisplay\n11,0.12\n12,0.5\n13,1.0\n16,0.25\n"
    )
    assert import_leaderboard(competition, kept, meta).teams == 4


def test_without_competitions_csv_kaggle_is_asked_for_the_number(
    meta: Path, kept: Path, competition: Competition, kaggle: KaggleServer
) -> None:
    kaggle.add("tiny", b"zip")
    (meta / "Competitions.csv").unlink()
    assert import_leaderboard(competition, kept, meta).teams == 3


@pytest.mark.usefixtures("home")
def test_without_competitions_csv_and_credentials_the_file_is_named(
    meta: Path, kept: Path, competition: Competition
) -> None:
    (meta / "Competitions.csv").unlink()
    with pytest.raises(ConfigError) as caught:
        import_leaderboard(competition, kept, meta)
    assert str(caught.value).startswith(
        f"{meta}: has no Competitions.csv, which gives the number of tiny, "
        "and Kaggle cannot be asked for it: no Kaggle credentials"
    )


@pytest.mark.parametrize(
    "case",
    [
        ("Teams.csv", None, "{folder}: no Teams.csv, is it a Meta Kaggle folder?"),
        ("Submissions.csv", None, "{folder}: no Submissions.csv, is it a Meta Kaggle folder?"),
        ("Teams.csv", "Id\n1\n", "{folder}/Teams.csv: has no column CompetitionId"),
        (
            "Submissions.csv",
            "Id\n1\n",
            "{folder}/Submissions.csv: has neither column PrivateScoreFullPrecision "
            "nor PrivateScoreLeaderboardDisplay",
        ),
        (
            "Competitions.csv",
            "Id,Slug\n1,x\n",
            "{folder}/Competitions.csv: has no competition tiny",
        ),
        (
            "Teams.csv",
            "",
            "{folder}/Teams.csv: not a readable csv file: No columns to parse from file",
        ),
    ],
)
def test_a_folder_that_is_not_meta_kaggle_is_refused(
    meta: Path, kept: Path, competition: Competition, case: tuple[str, str | None, str]
) -> None:
    name, content, problem = case
    if content is None:
        (meta / name).unlink()
    else:
        (meta / name).write_text(content)
    with pytest.raises(ConfigError) as caught:
        import_leaderboard(competition, kept, meta)
    assert str(caught.value) == problem.format(folder=meta)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("team,points\na,1\n", "not a leaderboard ('score'): remove it"),
        ("team,score\na,best\n", "not a leaderboard (could not convert string to float: 'best')"),
        ("team,score\n", "a leaderboard without teams: remove it"),
    ],
)
def test_a_stored_leaderboard_that_is_broken_is_named(
    kept: Path, competition: Competition, content: str, problem: str
) -> None:
    path = kept / "leaderboard.csv"
    path.parent.mkdir(parents=True)
    path.write_text(content)
    with pytest.raises(DatasetError) as caught:
        leaderboard_of(competition, kept)
    assert str(caught.value).startswith(f"{path}: {problem}")


def test_the_command_fetches_and_shows(
    kaggle: KaggleServer,
    kept: Path,
    competition: Competition,
    capsys: pytest.CaptureFixture[str],
) -> None:
    kaggle.add("tiny", b"zip")
    kaggle.boards["tiny"] = [(str(i), str(i)) for i in range(1, 101)]
    where = ["--competitions", str(competition.folder.parent), "--data-dir", str(kept.parent)]
    assert main(["leaderboard", "tiny", *where]) == 0
    assert main(["leaderboard", "tiny", "--fetch", *where]) == 0
    assert capsys.readouterr().out == (
        "tiny: 10 teams, gold 0.9, silver 0.8, bronze 0.7, median 0.5 (101 points)\n"
        "tiny: 100 teams, gold 91, silver 81, bronze 61, median 50.5 (full leaderboard)\n"
    )


def test_the_command_reads_meta_kaggle(
    meta: Path, kept: Path, competition: Competition, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--competitions", str(competition.folder.parent), "--data-dir", str(kept.parent)]
    assert main(["leaderboard", "tiny", "--meta-kaggle", str(meta), *where]) == 0
    assert "tiny: 3 teams" in capsys.readouterr().out
