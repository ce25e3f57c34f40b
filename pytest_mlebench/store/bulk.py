"""Prepare many competitions: ask everything first, then download and prepare several at a time."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TypeVar

from pytest_mlebench._messages import Log, Progress, silent
from pytest_mlebench._units import show_size
from pytest_mlebench.archives.entries import nearest
from pytest_mlebench.competition import Competition
from pytest_mlebench.dataset import Dataset
from pytest_mlebench.errors import ConfigError, ConfigErrors, DatasetError, MlebenchError
from pytest_mlebench.host import shared_cpus
from pytest_mlebench.host.hardware import host_cpus
from pytest_mlebench.kaggle.client import Kaggle, NoSuchCompetition, RulesNotAccepted
from pytest_mlebench.registry import Registry
from pytest_mlebench.store.obtain import KeepRaw, StorePlace, find_source
from pytest_mlebench.store.progress import as_progress
from pytest_mlebench.store.store import Store
from pytest_mlebench.store.turns import Turns, in_flight

T = TypeVar("T")

MAX_REQUESTS = 8  # to Kaggle at a time
USUAL_RATIO = 2  # of the bytes of a dataset to those of its zip
MAX_RATIO = 30


@dataclass(frozen=True)
class Preparation:
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
    progress: Log | None = None,
) -> list[Preparation]:
    """Prepare competitions; one that fails does not keep the others from being prepared."""
    competitions = [registry.load(competition_id) for competition_id in ids]
    stoppable = _Stoppable(as_progress(progress or silent))
    preflight(competitions, store, jobs=jobs, keep_raw=keep_raw, source=source, progress=stoppable)

    def prepare(competition: Competition, turns: Turns) -> Preparation:
        try:
            dataset = store.ensure(
                competition,
                verify=verify,
                progress=stoppable,
                keep_raw=keep_raw,
                source=source,
                apart=jobs > 1,
                turns=turns,
            )
        except MlebenchError as error:
            stoppable(f"{competition.id}: failed")
            return Preparation(competition, None, error)
        return Preparation(competition, dataset, None)

    if jobs == 1:
        return [prepare(competition, Turns()) for competition in competitions]
    ordered = largest_first(competitions, store, source)
    with shared_cpus.offered() as cpus:
        turns = Turns.of(jobs, cpus)
        done = _in_threads(lambda each: prepare(each, turns), ordered, in_flight(jobs), stoppable)
    return [done[competition.id] for competition in competitions]


def largest_first(
    competitions: Iterable[Competition], store: Store, source: Path | None = None
) -> list[Competition]:
    """Return competitions by size: a large one that is begun last would go on alone in the end."""

    def size(competition: Competition) -> int:
        if competition.size_gb is not None:
            return int(competition.size_gb * 1e9)
        if source is not None:
            path = find_source(competition, source)
        else:
            path = StorePlace(competition, store.folder(competition)).zip
        return path.stat().st_size if path.is_file() else 0

    return sorted(competitions, key=size, reverse=True)


def preflight(
    competitions: Sequence[Competition],
    store: Store,
    *,
    jobs: int = 1,
    keep_raw: KeepRaw = "none",
    source: Path | None = None,
    progress: Log | None = None,
) -> None:
    """Raise ConfigError, before anything is downloaded, for all that would fail later.

    Credentials, rules that are not accepted (all of them in one message, with links), local files
    that are missing, and space on the disk for the whole selection.
    """
    missing = [each for each in competitions if store.find(each) is None]
    if source is not None:
        _check_space(store.root, _brought(missing, source), jobs, keep_raw)
        return
    places = [StorePlace(each, store.folder(each)) for each in missing]
    wanted = [place for place in places if place.needs_download()]
    found = [_found(place) for place in places if place not in wanted]
    log = progress or silent
    try:
        _check_access(wanted, log)
    except ConfigError as refusal:
        _add_space(refusal, store.root, found + _known(wanted), jobs, keep_raw)
    try:
        _check_space(store.root, found + _published(wanted, log), jobs, keep_raw)
    except ConfigError:  # before we refuse, let us see how large the zips really are
        sizes = _ask(wanted, lambda kaggle, name: kaggle.size(name) or 0, log)
        pairs = zip(wanted, sizes, strict=True)
        needs = [_need(place.competition, packed) for place, packed in pairs]
        _check_space(store.root, found + needs, jobs, keep_raw)


def _add_space(
    refusal: ConfigError, root: Path, needs: Sequence[Need], jobs: int, keep_raw: KeepRaw
) -> NoReturn:
    """Raise a refusal of Kaggle's together with what the disk lacks by the published sizes."""
    try:
        _check_space(root, needs, jobs, keep_raw)
    except ConfigError as lack:
        raise ConfigErrors([refusal, lack]) from None
    raise refusal


def _ask(places: Sequence[StorePlace], question: Callable[[Kaggle, str], T], log: Log) -> list[T]:
    """Ask Kaggle about several competitions at a time."""

    def ask(place: StorePlace) -> T:
        with Kaggle(log) as kaggle:
            return question(kaggle, place.competition.id)

    with ThreadPoolExecutor(min(MAX_REQUESTS, max(1, len(places)))) as pool:
        return list(pool.map(ask, places))


def _check_access(places: Sequence[StorePlace], log: Log) -> None:
    """Raise ConfigError naming all the competitions that cannot be downloaded."""
    if not places:
        return
    Kaggle().__exit__()  # without any credentials, one complaint is enough
    log(f"asking Kaggle for {len(places)} competition(s)")

    def check(kaggle: Kaggle, name: str) -> ConfigError | None:
        try:
            kaggle.check_access(name)
        except (RulesNotAccepted, NoSuchCompetition) as error:
            return error
        return None

    names = [place.competition.id for place in places]
    answers = list(zip(names, _ask(places, check, log), strict=True))
    refused, unknown = (
        sorted(name for name, error in answers if isinstance(error, kind))
        for kind in (RulesNotAccepted, NoSuchCompetition)
    )
    if refused or unknown:
        raise ConfigError("\n".join(_complaint(len(places), refused, unknown)))


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


def _found(place: StorePlace) -> Need:
    """Return what raw files that lie in the store will take."""
    packed = place.zip.stat().st_size if place.zip.exists() else 0
    return Need(0, _need(place.competition, packed).unpacked)


def _known(places: Sequence[StorePlace]) -> list[Need]:
    """Return what downloads take by the published sizes, as far as there are any."""
    sizes = [int((place.competition.size_gb or 0) * 1e9) for place in places]
    return [Need(size, size) for size in sizes]


def _published(places: Sequence[StorePlace], log: Log) -> list[Need]:
    """Return what downloads will take at most: by the published sizes, else by Kaggle's lists."""
    unknown = [place for place in places if place.competition.size_gb is None]
    listed = _ask(unknown, Kaggle.listed_size, log) if unknown else []
    sizes = [int((place.competition.size_gb or 0) * 1e9) for place in places]
    return [Need(size, size) for size in (*sizes, *(size or 0 for size in listed))]


def _need(competition: Competition, packed: int) -> Need:
    """Return what a zip of *packed* bytes takes: the published size, if it can hold that."""
    if competition.size_gb is None:
        return Need(packed, USUAL_RATIO * packed)
    return Need(packed, min(int(competition.size_gb * 1e9), MAX_RATIO * packed))


def _check_space(root: Path, needs: Sequence[Need], jobs: int, keep_raw: KeepRaw) -> None:
    """Raise ConfigError if the disk cannot hold the selection with its raw files in passing."""
    lasting = sum(need.unpacked for need in needs)
    if keep_raw != "none":
        lasting += sum(need.packed for need in needs)
    if keep_raw == "all":
        lasting += sum(need.unpacked for need in needs)
    passing = sorted(need.unpacked + (need.packed if keep_raw == "none" else 0) for need in needs)
    wanted = lasting + sum(passing[-in_flight(jobs) :])
    free = shutil.disk_usage(nearest(root)).free
    if wanted > free:
        raise ConfigError(
            f"the selection needs about {show_size(wanted)} in {root}, "
            f"where {show_size(free)} are free: free some space, "
            "choose another store with --mle-data-dir, or a smaller selection"
        )


def _in_threads(
    prepare: Callable[[Competition], Preparation],
    competitions: Sequence[Competition],
    threads: int,
    stoppable: _Stoppable,
) -> dict[str, Preparation]:
    pool = ThreadPoolExecutor(threads, thread_name_prefix="mle-prepare")
    try:
        futures = {pool.submit(prepare, each): each.id for each in competitions}
        return {futures[done]: done.result() for done in as_completed(futures)}
    except BaseException:
        stoppable.stop.set()  # an interrupt: downloads end at their next block
        raise
    finally:
        pool.shutdown(cancel_futures=True)


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
    return min(4, host_cpus())
