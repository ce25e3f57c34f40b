"""Make a competition of your own, which can be prepared, run and graded at once.

    pytest-mlebench new competition harbour --from-csv train.csv --target level --metric mae
    pytest-mlebench new competition titanic --from-kaggle titanic --metric accuracy

From a csv file: a part of its rows is held out, and the rest follows from its columns (the split,
the sample, the answers, a description, checksums). The table is copied into the new folder, which
agents cannot read. From Kaggle: the data are downloaded, the training table is split, the
leaderboard gives the thresholds, and the description is yours to finish. Nothing that exists is
replaced.
"""

from __future__ import annotations

import argparse
import re
import shutil
import tempfile
from pathlib import Path

from pytest_mlebench.commands.checksums import write_checksums
from pytest_mlebench.commands.pytest_settings import KEY, own_competitions
from pytest_mlebench.commands.shared import add_data_dir_option, say, store_folder
from pytest_mlebench.competition import RAW, Competition, read_competition
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.scaffolds.from_kaggle import SCORES, fetch, find_tables, unpacked_table
from pytest_mlebench.scaffolds.from_table import examine_table
from pytest_mlebench.scaffolds.write import write_scaffold

SHOWN_FILES = 3
_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
_FOLDER = Path("competitions")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("what", choices=("competition",), help="what to make")
    parser.add_argument("name", metavar="NAME", help="the competition's id")
    origin = parser.add_mutually_exclusive_group(required=True)
    origin.add_argument("--from-csv", metavar="FILE", type=Path, help="a table with the answers")
    origin.add_argument("--from-kaggle", metavar="ID", help="a competition on Kaggle")
    parser.add_argument(
        "--id", metavar="COLUMN", help="what identifies a row (default: id, else rows are numbered)"
    )
    parser.add_argument(
        "--target",
        metavar="COLUMN",
        action="append",
        default=[],
        help="what is to be predicted; repeatable",
    )
    parser.add_argument(
        "--metric", metavar="NAME", help="default: rmse for quantities, accuracy for classes"
    )
    parser.add_argument(
        "--held-out",
        metavar="SHARE",
        type=float,
        default=0.2,
        help="the share of rows whose answers are kept back (default: %(default)s)",
    )
    parser.add_argument("--title", metavar="TEXT", help="default: the name in words")
    parser.add_argument(
        "--into",
        metavar="DIR",
        type=Path,
        help=f"the folder of your competitions (default: the first of {KEY}, else {_FOLDER})",
    )
    add_data_dir_option(parser)


def run(args: argparse.Namespace) -> int:
    """Make the competition and say what to do next."""
    if not _NAME.fullmatch(args.name):
        raise ConfigError(f"NAME must be small letters, digits and -, given: {args.name!r}")
    if not 0 < args.held_out < 1:
        raise ConfigError(f"--held-out must be between 0 and 1, given: {args.held_out}")
    known = own_competitions()
    into = args.into or next(iter(known), _FOLDER)
    folder = into / args.name
    if folder.exists():
        raise ConfigError(f"{folder} exists already and is left as it is: choose another NAME")
    made = _from_csv(args, folder) if args.from_csv is not None else _from_kaggle(args, folder)
    say(f"wrote {folder}: metric {made.metric.name}, {len(made.rules.targets)} column(s) to submit")
    if into.resolve() not in {path.resolve() for path in known}:
        say(f'next: add {KEY} = ["{into}"] to [tool.pytest.ini_options] in pyproject.toml')
    say(f"next: pytest --mle-agent=baseline --mle-competition={args.name}")
    return 0


def _from_csv(args: argparse.Namespace, folder: Path) -> Competition:
    table: Path = args.from_csv
    if not table.is_file():
        raise ConfigError(f"--from-csv names a file that does not exist: {table}")
    facts = examine_table(
        table,
        title=_title(args),
        id_column=args.id,
        targets=tuple(args.target),
        metric=args.metric,
        held_out=args.held_out,
        introduction="Say here what the rows are, where they come from and what the answer is for.",
    )
    with _whole(folder):
        write_scaffold(folder, facts.files())
        (folder / RAW).mkdir()
        shutil.copyfile(table, folder / RAW / facts.file)
        return _with_checksums(folder, folder / RAW)


def _from_kaggle(args: argparse.Namespace, folder: Path) -> Competition:
    from pytest_mlebench.store.progress import on_terminal  # late on purpose: heavy

    archive = store_folder(args) / args.name / f"{args.name}.zip"
    with on_terminal() as progress:
        scores = fetch(args.from_kaggle, archive, progress)
    tables = find_tables(archive)
    with (
        tempfile.TemporaryDirectory(prefix="mle-new-") as scratch,
        unpacked_table(archive, tables.train, Path(scratch)) as table,
    ):
        facts = examine_table(
            table,
            title=_title(args),
            id_column=args.id or tables.id,
            targets=tuple(args.target) or tables.targets,
            metric=args.metric,
            held_out=args.held_out,
            introduction=_TO_FINISH.format(id=args.from_kaggle),
            file=tables.train,
            source="kaggle" if args.name == args.from_kaggle else "local",
            leaderboard=SCORES if scores else None,
        )
        with _whole(folder):
            write_scaffold(folder, facts.files() | _board(scores))
            made = _with_checksums(folder, Path(scratch))
    if tables.left_out:
        more = ", …" if len(tables.left_out) > SHOWN_FILES else ""
        say(
            f"left out: {len(tables.left_out)} further file(s) of the download, "
            f"{', '.join(tables.left_out[:SHOWN_FILES])}{more}; "
            f"what agents need of them is for {folder / 'prepare.py'} to copy"
        )
    return made


_TO_FINISH = (
    "To finish: this competition was made from https://www.kaggle.com/c/{id}. Say here, in words "
    "of your own, what the rows are and what the answer is for. Its leaderboard is that of "
    "Kaggle's own test data, which are not the rows held out here: read medals as an estimate."
)


def _board(scores: list[float]) -> dict[str, str]:
    return {SCORES: "score\n" + "".join(f"{score!r}\n" for score in scores)} if scores else {}


def _title(args: argparse.Namespace) -> str:
    return args.title or " ".join(word.capitalize() for word in args.name.split("-"))


def _with_checksums(folder: Path, raw: Path) -> Competition:
    """Prepare once, apart from the store, and write down what came out."""
    competition = read_competition(folder)
    with tempfile.TemporaryDirectory(prefix="mle-new-") as scratch:
        prepared = Path(scratch)
        competition.prepare(raw, prepared / "public", prepared / "private")
        write_checksums(competition, prepared)
    return read_competition(folder)


class _whole:
    """A folder that is there whole when the block ends, or not at all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> None:
        self.folder.mkdir(parents=True)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
