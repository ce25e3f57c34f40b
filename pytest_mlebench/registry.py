"""Which competitions and splits there are: names from folders and text files, read when chosen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from pytest_mlebench.competition import FILE, RAW, Competition, read_competition
from pytest_mlebench.errors import CompetitionFileError, ConfigError, UnknownName

SPLITS = "splits"
ALIASES = {"lite": "low"}
BENCHMARK = ("low", "medium", "high")  # together they are "all": the 75 of MLE-bench


class Registry:
    """The competitions and splits found below some folders, the built-in one first."""

    def __init__(self, roots: Iterable[Path] = ()) -> None:
        self.roots = (builtin_competitions(), *map(Path, roots))
        self._folders: dict[str, Path] = {}
        self._loaded: dict[str, Competition] = {}
        for root in self.roots:
            self._scan(root)

    def _scan(self, root: Path) -> None:
        if not root.is_dir():
            raise ConfigError(f"mle_competitions names a folder that does not exist: {root}")
        for folder in sorted(root.iterdir()):
            if not (folder / FILE).is_file():
                continue
            if folder.name in self._folders:
                raise ConfigError(
                    f"two competitions are called {folder.name!r}: "
                    f"{self._folders[folder.name]} and {folder}"
                )
            self._folders[folder.name] = folder

    def ids(self) -> tuple[str, ...]:
        """Return the ids of all competitions."""
        return tuple(self._folders)

    def is_builtin(self, competition_id: str) -> bool:
        """Tell whether a competition comes with the package, so that every host has it."""
        return self._folders[competition_id].parent == self.roots[0]

    def load(self, competition_id: str) -> Competition:
        """Return a competition, read once."""
        if competition_id not in self._loaded:
            folder = self._folders.get(competition_id)
            if folder is None:
                raise UnknownName("competition", competition_id, self._folders)
            self._loaded[competition_id] = read_competition(folder)
        return self._loaded[competition_id]

    def load_all(self, ids: Iterable[str]) -> tuple[Competition, ...]:
        """Return some competitions; what is wrong with any of them is one error."""
        loaded, problems = [], []
        for competition_id in ids:
            try:
                loaded.append(self.load(competition_id))
            except CompetitionFileError as problem:
                problems.append(str(problem))
        if problems:
            raise CompetitionFileError("\n".join(problems))
        return tuple(loaded)

    def own_raw(self) -> tuple[Path, ...]:
        """Return the folders of raw files, answers included, beside competitions of one's own."""
        mine = (f for f in self._folders.values() if f.parent != self.roots[0])
        return tuple(folder / RAW for folder in mine if (folder / RAW).is_dir())

    def splits(self) -> tuple[str, ...]:
        """Return the names of all splits."""
        files = (path for root in self.roots for path in (root / SPLITS).glob("*.txt"))
        return tuple(dict.fromkeys((*(path.stem for path in files), "all", *ALIASES)))

    def split(self, name: str) -> tuple[str, ...]:
        """Return the ids of a split: a name, or a text file with one id a line."""
        if name == "all":
            return tuple(sorted(i for part in BENCHMARK for i in self.split(part)))
        stem = ALIASES.get(name, name)
        for root in self.roots:
            path = root / SPLITS / f"{stem}.txt"
            if path.is_file():
                return self._ids_in(path)
        if Path(name).is_file():
            return self._ids_in(Path(name))
        if "/" in name or name.endswith(".txt"):
            raise ConfigError(f"--mle-split names a file that does not exist: {name}")
        raise UnknownName("split", name, self.splits())

    def select(self, splits: Sequence[str], ids: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the ids of some splits and single competitions, each once, in order.

        They are read at once: a mistake in one must show before anything runs.
        """
        for competition_id in ids:
            if competition_id not in self._folders:
                raise UnknownName("competition", competition_id, self._folders)
        chosen = [i for name in splits for i in self.split(name)]
        return tuple(one.id for one in self.load_all(dict.fromkeys((*chosen, *ids))))

    def _ids_in(self, path: Path) -> tuple[str, ...]:
        ids = read_split(path)
        for number, competition_id in ids.items():
            if competition_id not in self._folders:
                raise UnknownName(
                    f"competition in {path} line {number}:", competition_id, self._folders
                )
        if not ids:
            raise ConfigError(f"{path} names no competition")
        return tuple(ids.values())


def read_split(path: Path) -> dict[int, str]:
    """Return the ids in a text file, one a line, by the number of their line."""
    lines = path.read_text(encoding="utf-8").splitlines()
    words = {number: line.partition("#")[0].strip() for number, line in enumerate(lines, start=1)}
    return {number: word for number, word in words.items() if word}


def builtin_competitions() -> Path:
    """Return the folder of the competitions that come with the plugin."""
    package = Path(__file__).parent
    inside = package / "competitions"  # in a wheel; beside the package in a checkout
    return inside if inside.is_dir() else package.parent / "competitions"


@lru_cache(maxsize=1)
def _builtin() -> Registry:
    return Registry()


def load_competition(competition_id: str) -> Competition:
    """Return a built-in competition by its id."""
    return _builtin().load(competition_id)


def list_competitions(split: str | None = None) -> tuple[str, ...]:
    """Return the ids of the built-in competitions, all of them or those of a split."""
    return _builtin().ids() if split is None else _builtin().split(split)
