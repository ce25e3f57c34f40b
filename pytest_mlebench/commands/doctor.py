"""Look at this machine: what is there for agents to run in, what is missing, how to get it.

Nothing is changed, nothing is downloaded. The exit status is 1 if something is missing without
which no agent can run in a container; the process sandbox needs none of it. With --hosts the
machines of a hosts.toml are looked at too; then it is also 1 if one of them is not ready.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pytest_mlebench._units import show_count, show_size
from pytest_mlebench.commands.hosts import check_hosts
from pytest_mlebench.commands.shared import (
    add_data_dir_option,
    add_runs_dir_option,
    runs_folder,
    say,
    store_folder,
)
from pytest_mlebench.errors import ConfigError, page_address
from pytest_mlebench.limits import STANDARD
from pytest_mlebench.machines.hosts_file import read_hosts

if TYPE_CHECKING:
    from pytest_mlebench.sandbox.docker.engine import Engine, EngineFacts

Verdict = Literal["ok", "note", "missing"]


@dataclass(frozen=True)
class DoctorFinding:
    """One line of the doctor's report."""

    verdict: Verdict
    what: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.verdict:8}{self.what}" + (
            f"\n        -> {self.remedy}" if self.remedy else ""
        )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_runs_dir_option(parser, "where results will go")
    parser.add_argument(
        "--hosts", metavar="FILE", type=Path, help="look at the hosts of this hosts.toml, too"
    )
    add_data_dir_option(parser)


def run(args: argparse.Namespace) -> int:
    """Print the findings."""
    machines = None if args.hosts is None else read_hosts(args.hosts)
    findings = list(examine(runs_folder(args.runs_dir), store_folder(args)))
    for finding in findings:
        say(str(finding))
    status = int(any(finding.verdict == "missing" for finding in findings))
    return status if machines is None else max(status, check_hosts(machines))


def examine(runs: Path, store: Path) -> Iterator[DoctorFinding]:
    """Yield all findings; an engine that does not answer ends the questions about it."""
    yield from _disk(runs)
    yield from _store(store)
    yield from _kaggle()
    yield from _gpus()
    yield from _walls()
    yield from _rootless()
    # late on purpose: heavy
    from pytest_mlebench.sandbox.docker.engine import Engine

    try:
        engine = Engine()
        facts = engine.facts
    except ConfigError as problem:
        yield DoctorFinding("missing", "container engine", str(problem))
        return
    checks: tuple[Callable[[EngineFacts], Iterator[DoctorFinding]], ...] = (
        _engine,
        _enforced,
        _standard,
        _gpu_runtime,
    )
    for check in checks:
        yield from check(facts)
    yield from _base_image(engine)
    yield from _orphans(engine)
    engine.close()


def _disk(runs: Path) -> Iterator[DoctorFinding]:
    from pytest_mlebench.sandbox.disk import free_on  # late: heavy

    folder = next(path for path in (runs.absolute(), *runs.absolute().parents) if path.exists())
    free = free_on(folder).bytes
    what = f"disk of {folder}: {show_size(free)} free"
    if free < STANDARD.disk_bytes:
        yield DoctorFinding(
            "note",
            what,
            f"the standard limit is {show_size(STANDARD.disk_bytes)}: --mle-runs-dir on a larger "
            "disk, or a smaller limit disk= in agent.toml",
        )
    else:
        yield DoctorFinding("ok", what)


def _store(store: Path) -> Iterator[DoctorFinding]:
    from pytest_mlebench.registry import Registry
    from pytest_mlebench.store.store import Store  # late: heavy

    registry = Registry()
    ready = [i for i in registry.split("all") if (Store(store).folder(registry.load(i))).is_dir()]
    what = f"dataset store {store}: {len(ready)} of 75 competitions of MLE-bench"
    if ready:
        yield DoctorFinding("ok", what)
    else:
        yield DoctorFinding("note", what, "pytest-mlebench prepare --split lite, or --data-dir DIR")


def _kaggle() -> Iterator[DoctorFinding]:
    from pytest_mlebench.kaggle.credentials import find_credentials  # late: heavy

    try:
        found = next(find_credentials(), None)
    except ImportError:
        yield DoctorFinding(
            "note", "no Kaggle client", "pip install 'pytest-mlebench[kaggle]' to download datasets"
        )
        return
    except ConfigError as problem:
        yield DoctorFinding("note", "Kaggle credentials", str(problem))
        return
    if found is not None:
        yield DoctorFinding("ok", f"Kaggle credentials: {found.where}")
    else:
        yield DoctorFinding(
            "note",
            "no Kaggle credentials: only prepared datasets and the demo split can be used",
            "export KAGGLE_API_TOKEN, or put kaggle.json into ~/.kaggle "
            f"({page_address('datasets')})",
        )


def _gpus() -> Iterator[DoctorFinding]:
    from pytest_mlebench.host.gpus import find_gpus  # late: heavy

    try:
        yield from (DoctorFinding("ok", f"GPU: {gpu.describe()}") for gpu in find_gpus())
    except ConfigError as problem:
        yield DoctorFinding("note", "no GPU, the standard limit is one with 24 GB", str(problem))


def _walls() -> Iterator[DoctorFinding]:
    from pytest_mlebench.sandbox.process.walls import missing, strongest  # late: heavy

    found = strongest(offline=False)
    yield DoctorFinding("ok", f"walls: {' '.join(found.walls) or 'none'} ({found.builder})")
    for name, meaning in missing(found.walls).items():
        yield DoctorFinding("note", f"walls missing: no {name}: {meaning}", "see SECURITY.md")
    for problem in found.problems:
        yield DoctorFinding("note", f"walls missing: {problem}", "see SECURITY.md")
    yield from _own_disk()


def _own_disk() -> Iterator[DoctorFinding]:
    """Yield whether the kernel bounds what an agent of the process sandbox writes."""
    from pytest_mlebench.limits import STANDARD
    from pytest_mlebench.sandbox.process import own_disk  # late: heavy

    what = "a disk of its own for each attempt"
    if not own_disk.is_due(STANDARD):
        yield DoctorFinding("note", f"no {what}: only root can mount one", "see SECURITY.md")
    elif problem := own_disk.find_problem():
        yield DoctorFinding("note", f"no {what}: {problem}", "see SECURITY.md")
    else:
        yield DoctorFinding("ok", what)


def _rootless() -> Iterator[DoctorFinding]:
    """Yield whether agents can run in their images without an engine."""
    from pytest_mlebench.sandbox.rootless.rootless_sandbox import try_walls  # late: heavy

    what = "images without an engine (--mle-sandbox=rootless)"
    try:
        found = try_walls()
    except ConfigError as problem:
        yield DoctorFinding("note", f"no {what}", str(problem))
    else:
        yield DoctorFinding("ok", f"{what}: {' '.join(found.walls)} ({found.builder})")


def _engine(facts: EngineFacts) -> Iterator[DoctorFinding]:
    from pytest_mlebench.sandbox.docker.engine import MINIMUM_API, is_too_old

    yield DoctorFinding("ok", f"engine: {facts.describe()} at {facts.address}")
    if is_too_old(facts):
        wanted = ".".join(map(str, MINIMUM_API))
        yield DoctorFinding(
            "missing", f"engine API {wanted}", f"this one has {facts.api}: upgrade to Docker 20.10"
        )
    if not facts.local:
        yield DoctorFinding(
            "note",
            f"the engine runs on another machine ({facts.host}): data are copied to it once per "
            "competition, and what agents wrote is copied back at their end",
        )
    if facts.name == "podman":
        yield DoctorFinding(
            "note",
            "Podman tells neither of the OOM killer nor of throttling: an agent that ran out of "
            "memory shows exit code 137",
        )
    if facts.rootless:
        yield DoctorFinding("note", "the engine is rootless: agents run as your own user")


def _enforced(facts: EngineFacts) -> Iterator[DoctorFinding]:
    if facts.missing:
        yield DoctorFinding(
            "missing",
            f"limits of {', '.join(facts.missing)}",
            "the engine cannot enforce them: use cgroup v2, or delegate the controllers to your "
            "user (systemd: Delegate=cpu cpuset memory pids)",
        )
    else:
        yield DoctorFinding(
            "ok", f"limits of memory, swap, CPU and pids (cgroup v{facts.cgroup_version})"
        )


def _standard(facts: EngineFacts) -> Iterator[DoctorFinding]:
    for what, has, wanted, show, option in (
        ("CPUs", facts.cpus, STANDARD.cpus, show_count, "--mle-cpus"),
        ("memory", facts.memory_bytes, STANDARD.memory_bytes, show_size, "--mle-memory"),
    ):
        if has < wanted:
            yield DoctorFinding(
                "note",
                f"{what}: {show(has)}, the standard limit is {show(wanted)}",
                f"{option} lowers it, which the report discloses",
            )
        else:
            yield DoctorFinding("ok", f"{what}: {show(has)}")


def _gpu_runtime(facts: EngineFacts) -> Iterator[DoctorFinding]:
    if facts.has_gpu_runtime:
        yield DoctorFinding("ok", "GPU runtime: nvidia")
    else:
        yield DoctorFinding(
            "note", "no GPU runtime", "install nvidia-container-toolkit, or use --mle-gpus=0"
        )


def _base_image(engine: Engine) -> Iterator[DoctorFinding]:
    from pytest_mlebench.sandbox.docker.base_image import VARIANTS, base_image_name

    for variant in VARIANTS:
        name = base_image_name(variant)
        if engine.api.images(name):
            yield DoctorFinding("ok", f"base image {name}")
        else:
            option = " --cuda" if variant == "cuda" else ""
            yield DoctorFinding(
                "note",
                f"no base image {name}",
                f"pytest-mlebench build-image{option}, if agents are to be built on it",
            )


def _orphans(engine: Engine) -> Iterator[DoctorFinding]:
    from pytest_mlebench.sandbox.docker.cleanup import find_orphans

    if orphans := find_orphans(engine):
        yield DoctorFinding(
            "note", f"{len(orphans)} left by killed sessions", "pytest-mlebench clean"
        )
