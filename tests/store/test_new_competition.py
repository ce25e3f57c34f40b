"""A competition of one's own comes from a table, or from Kaggle, and can be graded at once."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest
from kaggle_server import KaggleServer

from pytest_mlebench.cli import main
from pytest_mlebench.commands.pytest_settings import own_competitions
from pytest_mlebench.competition import read_competition
from pytest_mlebench.medals import Medal
from pytest_mlebench.registry import Registry

PYPROJECT = '[tool.pytest.ini_options]\nmle_competitions = ["mine"]\n'


def table(rows: int = 60) -> str:
    lines = [f"{i % 7},{['no', 'yes'][i % 2]},{'abc'[i % 3]},{i / 10}" for i in range(rows)]
    return "\n".join(["size,answer,kind,level", *lines]) + "\n"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a folder for competitions and a table."""
    (tmp_path / "repo" / "mine").mkdir(parents=True)
    (tmp_path / "repo" / "pyproject.toml").write_text(PYPROJECT)
    (tmp_path / "repo" / "t.csv").write_text(table())
    monkeypatch.chdir(tmp_path / "repo")
    monkeypatch.setenv("MLEBENCH_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "repo"


def made(name: str, *options: str) -> int:
    return main(["new", "competition", name, *options])


@pytest.mark.parametrize(
    ("target", "metric"),
    [
        *(("level", name) for name in ("rmse", "mae", "rmsle", "pearson", "spearman")),
        *(("kind", name) for name in ("accuracy", "error_rate", "f1", "matthews", "log_loss")),
        *(("answer", name) for name in ("roc_auc", "binary_log_loss")),
        ("size", "quadratic_kappa"),
    ],
)
def test_a_table_makes_a_competition_whose_answers_are_best(
    repository: Path, target: str, metric: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert made("new-one", "--from-csv", "t.csv", "--target", target, "--metric", metric) == 0
    competition = read_competition(repository / "mine" / "new-one")
    assert competition.metric.name == metric
    assert f"`{target}`" in competition.description
    assert "`size`, `answer`, `kind`, `level`" in competition.description
    assert competition.checksums is not None
    assert main(["self-check", "--split", _split(repository)]) == 0
    assert "1 datasets checked, 0 with a problem" in capsys.readouterr().out


def _split(repository: Path) -> str:
    (repository / "all.txt").write_text("new-one\n")
    main(["prepare", "new-one"])
    return "all.txt"


def test_it_is_graded_at_once_by_the_command_and_the_api(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made("new-one", "--from-csv", "t.csv", "--target", "level")
    assert main(["prepare", "new-one"]) == 0
    sample = repository.parent / "data/new-one/prepared/public/sample_submission.csv"
    capsys.readouterr()
    assert main(["grade-sample", str(sample), "new-one", "--json"]) == 0
    grade = json.loads(capsys.readouterr().out)
    assert (grade["score"] is not None, grade["medal"], grade["gold"]) == (True, "none", None)


def test_data_that_have_changed_are_noticed_until_their_sums_are_written(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made("new-one", "--from-csv", "t.csv", "--target", "level")
    assert main(["prepare", "new-one"]) == 0
    raw = repository / "mine/new-one/raw/t.csv"
    raw.write_text(table(80))
    assert main(["prepare", "new-one"]) == 1
    assert "differ from the published checksums" in capsys.readouterr().out
    assert main(["checksums", "new-one", "--write"]) == 0
    assert main(["prepare", "new-one"]) == 0
    text = (repository / "mine/new-one/competition.toml").read_text()
    assert text.count("[checksums.public]") == 1
    assert main(["checksums", "spooky-author-identification", "--write"]) == 4
    assert "--write is for competitions of your own" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--from-csv", "none.csv"], "--from-csv names a file that does not exist: none.csv"),
        (["--from-csv", "t.csv"], "--target is missing: name a column of t.csv: size, answer, "),
        (["--from-csv", "t.csv", "--target", "levle"], "'levle', did you mean 'level'?"),
        (["--from-csv", "t.csv", "--target", "level", "--id", "size"], "without repetitions"),
        (["--from-csv", "t.csv", "--target", "kind", "--metric", "rmse"], "needs numbers, column"),
        (["--from-csv", "t.csv", "--target", "kind", "--metric", "roc_auc"], "of two values"),
        (["--from-csv", "t.csv", "--target", "kind", "--metric", "acc"], "unknown metric 'acc'"),
        (["--from-csv", "t.csv", "--target", "kind", "--metric", "map_at_k"], "more than a table"),
        (["--from-csv", "t.csv", "--target", "kind", "--held-out", "2"], "between 0 and 1"),
    ],
)
def test_what_cannot_be_made_is_said_and_leaves_nothing(
    repository: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert made("new-one", *options) == 4
    assert message in capsys.readouterr().err
    assert list((repository / "mine").iterdir()) == []


def test_a_competition_that_exists_is_left_alone(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repository / "mine" / "new-one").mkdir()
    assert made("new-one", "--from-csv", "t.csv", "--target", "level") == 4
    assert "exists already and is left as it is" in capsys.readouterr().err


@pytest.mark.parametrize("table", ["train.csv", "tables/train.csv.zip"])
def test_kaggle_gives_data_and_leaderboard(
    repository: Path,
    kaggle: KaggleServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    table: str,
) -> None:
    monkeypatch.setenv("MLEBENCH_DATA_DIR", str(repository.parent / "data"))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        rows = "".join(f"{i},{i % 5},{i / 10}\n" for i in range(50))
        archive.writestr(table, _table(table, "PassengerId,size,level\n" + rows))
        archive.writestr("test.csv", "PassengerId,size\n99,1\n")
        archive.writestr("gender_submission.csv", "PassengerId,level\n99,1\n")
    kaggle.add("ships", packed.getvalue())
    kaggle.boards["ships"] = [(f"team {i}", f"{0.1 + i / 100}") for i in range(120)]
    assert made("ships", "--from-kaggle", "ships", "--metric", "mae") == 0
    assert "left out: 1 further file(s) of the download, test.csv; what" in capsys.readouterr().out
    folder = repository / "mine" / "ships"
    competition = read_competition(folder)
    assert competition.checksums is not None
    assert set(competition.checksums.private) == {"answers.csv"}
    assert (competition.source, competition.rules.targets) == ("kaggle", ("level",))
    assert (competition.leaderboard.teams, competition.leaderboard.gold) == (120, 0.19)
    assert "To finish" in competition.description
    assert main(["prepare", "ships"]) == 0
    prepared = repository.parent / "data/ships/prepared"
    assert (
        competition.leaderboard.medal(
            competition.score(prepared / "private/answers.csv", prepared / "private")
        )
        is Medal.GOLD
    )


def _table(name: str, text: str) -> bytes:
    """Return a table as a download has it: as it is, or in a zip of its own."""
    if not name.endswith(".zip"):
        return text.encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("train.csv", text)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", '[tool.pytest.ini_options]\nmle_competitions = ["a", "b"]\n'),
        ("pytest.ini", "[pytest]\nmle_competitions = a b\n"),
        ("pytest.ini", "[pytest]\nmle_competitions =\n    a\n    b\n"),
        ("tox.ini", "[pytest]\nmle_competitions = a b\n"),
        ("setup.cfg", "[tool:pytest]\nmle_competitions = a b\n"),
    ],
    ids=lambda value: value.split("\n")[0],
)
def test_the_command_line_sees_the_competitions_that_pytest_sees(
    pytester: pytest.Pytester, name: str, text: str
) -> None:
    (pytester.path / name).write_text(text)
    (pytester.path / "a" / "splits").mkdir(parents=True)
    (pytester.path / "b").mkdir()
    below = pytester.path / "a" / "splits"
    config = pytester.parseconfig()
    assert list(own_competitions(below)) == config.getini("mle_competitions")
    assert len(Registry(own_competitions(below)).roots) == 3
