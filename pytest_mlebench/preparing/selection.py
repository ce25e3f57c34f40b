"""Prepare many competitions: ask everything first, then download and prepare several at a time."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from pytest_mlebench.competition import Competition
from pytest_mlebench.dataset import Dataset
from pytest_mlebench.errors import ConfigError, DatasetError, MlebenchError
from pytest_mlebench.preparing.kaggle import Kaggle, NoSuchCompetition, RulesNotAccepted
from pytest_mlebench.preparing.lock import Say
from pytest_mlebench.preparing.progress import Progress, silent, size, told
from pytest_mlebench.preparing.raw import KeepRaw, Place, find_source
from pytest_mlebench.preparing.store import Store
from pytest_mlebench.registry import Registry
from pytest_mlebench.zips.entries import nearest

PROBES = 8  # questions to Kaggle at a time


@dataclass(frozen=True)
class Outcome:
    """What became of one competition."""

    competition: Competition
    dataset: Dataset | None
    error: MlebenchError | None


@dataclass(frozen=True)
class Need:
    """The bytes that a competition takes: as it comes, and when unpacked."""

    packed: int
    unpacked: int


def prepare_selection(
    registry: Registry,
    ids: Iterable[str],
    store: Store,
    *,
    jobs: int = 1,
    keep_raw: KeepRaw = "none",
    source: Path | None = None,
    verify: bool = True,
    progress: Say | None = None,
) -> list[Outcome]:
    """Prepare competitions; one that fails does not keep the others from being prepared."""
    competitions = [registry.load(competition_id) for competition_id in ids]
    teller = _Stoppable(told(progress or silent))
    preflight(competitions, store, jobs=jobs, keep_raw=keep_raw, source=source, progress=teller)

    def prepare(competition: Competition) -> Outcome:
        try:
            dataset = store.ensure(
                competition,
                verify=verify,
                progress=teller,
                keep_raw=keep_raw,
                source=source,
                apart=jobs > 1,
            )
        except MlebenchError as error:
            teller(f"{competition.id}: failed")
            return Outcome(competition, None, error)
        return Outcome(competition, dataset, None)

    if jobs == 1:
        return [prepare(competition) for competition in competitions]
    return _in_threads(prepare, competitions, jobs, teller)


def preflight(
    competitions: Sequence[Competition],
    store: Store,
    *,
    jobs: int = 1,
    keep_raw: KeepRaw = "none",
    source: Path | None = None,
    progress: Say | None = None,
) -> None:
    """Raise ConfigError, before anything is downloaded, for all that would fail later.

    Credentials, rules that are not accepted (all of them in one message, with links), local files
    that are missing, and space on the disk for the whole selection.
    """
    missing = [each for each in competitions if store.find(each) is None]
    if source is not None:
        needs = _brought(missing, source)
    else:
        places = [Place(each, store.folder(each)) for each in missing]
        wanted = [place for place in places if place.needs_download()]
        needs = _ask_kaggle(wanted, progress or silent)
        needs += [_found(place) for place in places if place not in wanted]
    _check_space(store.root, needs, jobs, keep_raw)


def _ask_kaggle(places: Sequence[Place], say: Say) -> list[Need]:
    """Return what the downloads will take, or raise ConfigError naming all that are refused."""
    if not places:
        return []
    Kaggle().__exit__()  # without any credentials, one complaint is enough
    say(f"asking Kaggle for {len(places)} competition(s)")
    refused: list[str] = []
    unknown: list[str] = []

    def ask(place: Place) -> Need | None:
        name = place.competition.id
        try:
            with Kaggle(say) as kaggle:
                return _need(place.competition, kaggle.size(name) or 0)
        except RulesNotAccepted:
            refused.append(name)
        except NoSuchCompetition:
            unknown.append(name)
        return None

    with ThreadPoolExecutor(min(PROBES, len(places))) as pool:
        needs = list(pool.map(ask, places))
    if refused or unknown:
        raise ConfigError("\n".join(_complaint(len(places), sorted(refused), sorted(unknown))))
    return [need for need in needs if need is not None]


def _complaint(asked: int, refused: Sequence[str], unknown: Sequence[str]) -> Iterable[str]:
    if unknown:
        yield f"Kaggle knows no competition {', '.join(unknown)}"
    if refused:
        yield f"the rules of {len(refused)} of {asked} competitions are not accepted yet:"
        yield from (f"  {name}: https://www.kaggle.com/c/{name}/rules" for name in refused)
        yield "accept them there with the account of your Kaggle credentials, then run this again"


def _brought(competitions: Sequence[Competition], source: Path) -> list[Need]:
    """Return what local files will take, or raise ConfigError naming all that are missing."""
    if not source.is_dir():
        raise ConfigError(f"--from names a folder that does not exist: {source}")
    needs, absent = [], []
    for competition in competitions:
        try:
            found = find_source(competition, source)
        except DatasetError as error:
            absent.append(str(error))
            continue
        packed = found.stat().st_size if found.is_file() else 0
        needs.append(Need(0, _need(competition, packed).unpacked))
    if absent:
        raise ConfigError("\n".join(absent))
    return needs


def _found(place: Place) -> Need:
    """Return what raw files that lie in the store will take."""
    packed = place.zip.stat().st_size if place.zip.exists() else 0
    return Need(0, _need(place.competition, packed).unpacked)


def _need(competition: Competition, packed: int) -> Need:
    known = competition.size_gb
    return Need(packed, int(known * 1e9) if known else 2 * packed)


def _check_space(root: Path, needs: Sequence[Need], jobs: int, keep_raw: KeepRaw) -> None:
    """Raise ConfigError if the disk cannot hold the selection with its raw files in passing."""
    lasting = sum(need.unpacked for need in needs)
    if keep_raw != "none":
        lasting += sum(need.packed for need in needs)
    if keep_raw == "all":
        lasting += sum(need.unpacked for need in needs)
    passing = sorted(need.unpacked + (need.packed if keep_raw == "none" else 0) for need in needs)
    wanted = lasting + sum(passing[-jobs:])
    free = shutil.disk_usage(nearest(root)).free
    if wanted > free:
        raise ConfigError(
            f"the selection needs about {size(wanted)} in {root}, where {size(free)} are free: "
            "free some space, choose another store with --mle-data-dir, or a smaller selection"
        )


def _in_threads(
    prepare: Callable[[Competition], Outcome],
    competitions: Sequence[Competition],
    jobs: int,
    teller: _Stoppable,
) -> list[Outcome]:
    pool = ThreadPoolExecutor(jobs, thread_name_prefix="mle-prepare")
    try:
        futures = {pool.submit(prepare, each): each.id for each in competitions}
        outcomes = {futures[done]: done.result() for done in as_completed(futures)}
    except BaseException:
        teller.stop.set()  # an interrupt: downloads end at their next block
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    return [outcomes[each.id] for each in competitions]


class _Stopped(BaseException):
    """The session is being interrupted."""


class _Stoppable:
    """A progress that ends the work which reports to it once the session is interrupted."""

    def __init__(self, inner: Progress) -> None:
        self.inner = inner
        self.stop = threading.Event()

    def __call__(self, text: str) -> None:
        self._check()
        self.inner(text)

    def transfer(self, name: str, done: int, total: int | None) -> None:
        """Pass on a download's progress."""
        self._check()
        self.inner.transfer(name, done, total)

    def _check(self) -> None:
        if self.stop.is_set():
            raise _Stopped


def default_jobs() -> int:
    """Return how many competitions to prepare at a time unless told."""
    return min(4, os.cpu_count() or 1)
