"""A run's folder as results: what was to run, by its plan; what became of it, by the records."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_mlebench.attempts.plan import read_plan
from pytest_mlebench.attempts.record import AttemptRecord, Conditions, Run, read_attempts
from pytest_mlebench.gateway.calls import read_spending
from pytest_mlebench.gateway.model_use import ModelUse
from pytest_mlebench.layout import RunFolder
from pytest_mlebench.limits import STANDARD, Limits
from pytest_mlebench.reports.attempt_facts import AttemptFacts, egress_counts, refused_hosts
from pytest_mlebench.reports.comparability import VERIFIED, gpus_text
from pytest_mlebench.reports.disclosure import Disclosure, host_name, host_text
from pytest_mlebench.reports.findings import read_audit
from pytest_mlebench.reports.report_content import Content
from pytest_mlebench.reports.results import ItemKey, Result, Status, never_ran
from pytest_mlebench.sandbox import Ending

Found = tuple[ItemKey, Result]

_PROCESSES = ("process", "rootless")  # sandboxes whose walls differ from host to host


def result_of(run: Run) -> Result:
    """Return the result that an attempt's record tells of."""
    record = run.record
    status: Status = "missing"
    error = record.error
    if record.phase == "graded" and record.grade is not None:
        status = "graded" if record.grade.valid else "failed"
    elif record.phase == "error":
        status = "error"
    else:
        error = error or f"interrupted: the attempt was left {record.phase!r}"
    ending = record.ending
    return Result(
        competition=record.competition,
        seed=record.seed,
        status=status,
        grade=record.grade if record.phase == "graded" else None,
        error=error,
        agent=record.agent,
        conditions="" if record.item is None else record.item.conditions,
        agent_seconds=None if ending is None else ending.seconds,
        run=str(run.folder),
        format_checks=0 if ending is None else ending.format_checks,
        snapshots=record.snapshots,
        fingerprint=record.fingerprint,
        model_use=model_use_of(run),
        gpus=len(record.conditions.gpus),
        extra=record.extra,
        attempt=_facts(record),
    )


def _facts(record: AttemptRecord) -> AttemptFacts:
    ending, conditions = record.ending, record.conditions
    gpus = tuple(str(gpu.get("name") or gpu.get("id") or "GPU") for gpu in conditions.gpus)
    facts = AttemptFacts(
        host=conditions.host,
        gpus=gpus,
        data_sum=conditions.data_sum,
        time_limit=None if conditions.limits is None else conditions.limits.time_seconds,
        memory_limit=None if conditions.limits is None else conditions.limits.memory_bytes,
        submission_head=record.submission_head,
    )
    if ending is None:
        return facts
    return replace(
        facts,
        ending=ending.reason,
        exit_code=ending.exit_code,
        gpus=gpus or ending.gpus,
        peak_memory=ending.peak_memory_bytes,
        cpu_seconds=ending.cpu_seconds,
        egress=egress_counts(ending.details),
        refused_hosts=refused_hosts(ending.details),
    )


def model_use_of(run: Run) -> ModelUse | None:
    """Return what an attempt used of models; of one that was killed, what its calls tell."""
    record = run.record
    if record.model_use is not None or record.conditions.models is None:
        return record.model_use
    return ModelUse(metered=read_spending(run.folder), interrupted="running" in record.timings)


def latest_attempts(folder: RunFolder) -> list[Run]:
    """Return of every attempt that was made the latest try: the one that is graded, if any is.

    What another version of the agent has superseded is left out.
    """
    return list(read_tries(folder).latest)


@dataclass(frozen=True)
class Tries:
    """The tries of a run's attempts: those that count, and those that do not."""

    latest: tuple[Run, ...]
    others: tuple[Run, ...]  # that the benchmark spoilt, or a changed agent superseded

    @property
    def records(self) -> list[AttemptRecord]:
        """Return the records of those that count."""
        return [run.record for run in self.latest]

    @property
    def found(self) -> list[Found]:
        """Return the results of those that count, each with what its item lost on the others."""
        lost: dict[ItemKey, list[float | None]] = {}
        for run in self.others:
            if (use := model_use_of(run)) is not None:
                lost.setdefault(item_of(run.record), []).append(use.usd)
        found = []
        for run in self.latest:
            item, result = item_of(run.record), result_of(run)
            if tries := lost.pop(item, None):  # once, though an item may have several attempts
                usd = None if None in tries else math.fsum(each or 0.0 for each in tries)
                result = replace(result, lost_usd=usd)
            found.append((item, result))
        return found


def read_tries(folder: RunFolder) -> Tries:
    """Return all tries of a run."""
    latest: dict[tuple[object, ...], Run] = {}
    others: list[Run] = []
    for seed in folder.seeds():
        for run in read_attempts(seed):
            record = run.record
            key = (record.competition, record.seed, record.agent, record.item, record.fingerprint)
            before = latest.get(key)
            if record.superseded or (before and before.phase == "graded" != run.phase):
                others.append(run)
                continue
            if before is not None:
                others.append(before)
            latest[key] = run
    return Tries(tuple(latest.values()), tuple(others))


def read_run_folder(path: Path) -> Content:
    """Return the results of a run, finished or not, and the conditions they came about under."""
    folder = RunFolder(path)
    plan = read_plan(folder)
    tries = read_tries(folder)
    return Content(
        results=settle(plan.expected, tries.found),
        disclosure=disclose(plan.disclosure, tries),
        audit=read_audit(folder.audit),
    )


def item_of(record: AttemptRecord) -> ItemKey:
    """Return the item that an attempt was made for."""
    return record.item or ItemKey(record.competition, record.seed, record.agent)


def settle(expected: Iterable[ItemKey], found: Iterable[Found]) -> tuple[Result, ...]:
    """Return a result for every item that is expected or found, each agent under its own name.

    An item whose test varies the conditions in a way that collection cannot know has several
    results, told apart by their fingerprints.
    """
    results: dict[ItemKey, dict[str | None, Result]] = {key: {} for key in expected}
    for key, result in found:
        known = results.setdefault(key, {})
        if result.status != "missing" or result.fingerprint not in known:
            known[result.fingerprint] = result
    names = _agent_names(results)
    settled = []
    for key, known in results.items():
        for number, result in enumerate(_of_item(key, known)):
            special = f"#{result.fingerprint}" if number else ""
            conditions = " ".join(filter(None, (key.conditions, special)))
            settled.append(replace(result, agent=names[key.agent], conditions=conditions))
    return tuple(settled)


def _of_item(key: ItemKey, known: Mapping[str | None, Result]) -> list[Result]:
    """Return the results of an item's attempts; what has no attempt counts only without any."""
    outside = known.get(None)
    attempts = [result for result in known.values() if result.fingerprint is not None]
    if not attempts:
        return [never_ran(key) if outside is None else outside]
    if outside is None or outside.status != "error":
        return attempts
    return [  # a worker was lost in the middle of it
        replace(result, status="error", error=outside.error)
        if result.status == "missing"
        else result
        for result in attempts
    ]


def _agent_names(results: Mapping[ItemKey, Mapping[str | None, Result]]) -> dict[str, str]:
    """Return how each agent is called: by its own name, and where that is if two have the same."""
    names: dict[str, str] = {}
    for key, known in results.items():
        ran = [result.agent for result in known.values() if result.fingerprint]
        names[key.agent] = ran[0] if ran else names.get(key.agent, key.agent)
    counts = Counter(names.values())
    return {
        where: f"{name} [{where}]" if counts[name] > 1 and where != name else name
        for where, name in names.items()
    }


def _counts(tries: Tries) -> dict[str, int]:
    """Return how many attempts a run consists of, and what became of them on the way."""
    records = [run.record for run in (*tries.latest, *tries.others)]
    processes = [record.ending for record in records if record.conditions.sandbox in _PROCESSES]
    return {
        "made": len(records),
        "repeated": sum(record.phase == "error" for record in records),
        "superseded": sum(record.superseded for record in records),
        "sessions": len({record.session for record in records}),
        "unconfined": sum(ending is not None and not _has_walls(ending) for ending in processes),
    }


def _has_walls(ending: Ending) -> bool:
    """Tell whether a process could reach no file but its own, the answers least of all."""
    old = ending.details.get("confined", False)  # in records from before walls had names
    return bool(old) or any(wall.startswith(("mounts", "landlock")) for wall in ending.walls)


def disclose(base: Disclosure, tries: Tries) -> Disclosure:
    """Return the disclosure of a run with what its attempts themselves tell of their conditions."""
    if not (records := tries.records):
        return base
    conditions = [record.conditions for record in records]
    limits = [each.limits for each in conditions if each.limits is not None]
    endings = [record.ending for record in records if record.ending is not None]
    return replace(
        base,
        agent=_all(record.agent for record in records),
        agent_version=_all(each.agent_version for each in conditions),
        fingerprint=_all(
            None if record.identity is None else record.identity.agent_fingerprint
            for record in records
        ),
        image=_all(ending.image for ending in endings),
        sandbox=_all(each.sandbox for each in conditions),
        walls=_all(" ".join(ending.walls) for ending in endings),
        network=_all(each.network for each in conditions),
        models=_all(each.models for each in conditions),
        budget=_all(each.budget for each in conditions),
        description=_all(each.description for each in conditions),
        limits=_merged([each.describe() for each in limits]),
        deviations=_deviations(limits),
        hardware=_merged([each.hardware for each in conditions]) or base.hardware,
        hosts={**base.hosts, **_hosts(conditions)},
        gpus=tuple(dict.fromkeys(text for each in conditions if (text := gpus_text(each.gpus)))),
        data={record.competition: record.conditions.data for record in records},
        benchmark=_benchmark(base, conditions),
        attempts=_counts(tries),
    )


def _benchmark(base: Disclosure, conditions: Iterable[Conditions]) -> str | None:
    """Return the version of the benchmark: known only of data that have its checksums."""
    verified = all(each.data == VERIFIED for each in conditions)
    return base.benchmark if verified else None


def _hosts(conditions: Iterable[Conditions]) -> dict[str, str]:
    """Return what each host is made of that ran an attempt of a session on several."""
    gpus: dict[str, dict[str, None]] = {}
    hardware: dict[str, Mapping[str, str]] = {}
    for each in conditions:
        if each.machine is not None:
            name = host_name(each.machine, each.host)
            hardware[name] = each.hardware
            gpus.setdefault(name, {})[gpus_text(each.gpus) or ""] = None
    return {name: host_text(table, gpus[name]) for name, table in hardware.items()}


def _all(values: Iterable[str | None]) -> str | None:
    """Return all different values, in order."""
    return ", ".join(dict.fromkeys(value for value in values if value)) or None


def _merged(tables: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return tables as one; a key that has several values shows them all."""
    keys = dict.fromkeys(key for table in tables for key in table)
    return {key: _all(table.get(key) for table in tables) or "" for key in keys}


def _deviations(limits: Iterable[Limits]) -> dict[str, tuple[str, str]]:
    found: dict[str, dict[str, None]] = {}
    standard: dict[str, str] = {}
    for each in dict.fromkeys(limits):
        for key, (value, norm) in each.deviations(STANDARD).items():
            found.setdefault(key, {})[value] = None
            standard[key] = norm
    return {key: (", ".join(values), standard[key]) for key, values in found.items()}
