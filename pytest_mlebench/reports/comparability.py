"""What the numbers of a report are comparable with: computed from records, never claimed.

The conditions of MLE-bench are those that its authors recommend for published results: 24 hours,
36 CPUs, 440 GB of memory, one A10 with 24 GB, three seeds or more, whole splits, the original
descriptions. What a sandbox cannot know is the author's own word, and is marked as that.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from pytest_mlebench._units import show_size
from pytest_mlebench.limits import STANDARD
from pytest_mlebench.registry import BENCHMARK
from pytest_mlebench.reports.disclosure import Disclosure

if TYPE_CHECKING:
    from pytest_mlebench.reports.report import Report

STANDARD_TEXT = "standard MLE-bench conditions"
STATEMENTS = ("llms", "url", "paper", "statement")  # keys of agent.toml: what nobody can check
MIN_SEEDS = 3
VERSION = "v1"  # of the benchmark's data and graders, as this package has them

_GPU = re.compile(r"(?P<number>\d+) x (?P<name>.+) \((?P<memory>[^()]+)\)")
_STANDARD_GPU = re.compile(r"(NVIDIA )?A10(-24Q)?")  # -24Q: the whole card, as clouds rent it out
VERIFIED = "checksums"

Verdict = Literal["standard", "other", "unknown"]


@dataclass(frozen=True)
class Condition:
    """One condition: what it was, and whether that is the benchmark's standard."""

    name: str
    value: str
    verdict: Verdict
    standard: str = ""  # what it should be, for people
    decides: bool = False  # whether two runs must have it in common to be of one class

    @property
    def reason(self) -> str:
        """Return why it is not the standard."""
        if self.verdict == "unknown":
            return f"{self.name} not known"
        instead = f" instead of {self.standard}" if self.standard else ""
        return f"{self.name} {self.value}{instead}"


@dataclass(frozen=True)
class Comparability:
    """All conditions of a report, what its sandbox guarantees, and what its author says."""

    conditions: tuple[Condition, ...]
    guarantees: tuple[str, ...] = ()
    statements: tuple[tuple[str, str], ...] = ()  # the author's own words

    @property
    def is_standard(self) -> bool:
        """Tell whether every condition is known and the benchmark's own."""
        return all(condition.verdict == "standard" for condition in self.conditions)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return every reason why the conditions are not standard; what is not known comes last."""
        others = [one.reason for one in self.conditions if one.verdict == "other"]
        unknown = [one.name for one in self.conditions if one.verdict == "unknown"]
        return (*others, *([f"not known: {', '.join(unknown)}"] if unknown else []))

    @property
    def sentence(self) -> str:
        """Return the statement in one line."""
        return STANDARD_TEXT if self.is_standard else f"not standard: {'; '.join(self.reasons)}"

    @property
    def missing_statements(self) -> tuple[str, ...]:
        """Return what the author has not said."""
        said = dict(self.statements)
        return tuple(key for key in STATEMENTS if key not in said)

    def lines(self, width: int = 80) -> list[str]:
        """Return the statement for a terminal."""
        texts = [f"conditions: {self.sentence}", *self.guarantees]
        texts += [f"{key}, by the author's own word: {text}" for key, text in self.statements]
        fill = partial(textwrap.wrap, width=width, subsequent_indent="  ", break_on_hyphens=False)
        return [line for text in texts for line in fill(text)]

    def to_dict(self) -> dict[str, Any]:
        """Return the statement in JSON types."""
        return {
            "standard": self.is_standard,
            "reasons": list(self.reasons),
            "conditions": [asdict(condition) for condition in self.conditions],
            "guarantees": list(self.guarantees),
            "statements": dict(self.statements),
        }

    def differences(self, other: Comparability) -> list[str]:
        """Return a phrase for each condition in which two runs are not of one class."""
        theirs = {one.name: one for one in other.conditions}
        phrases = []
        for mine in self.conditions:
            match = theirs.get(mine.name)
            if match is None or not mine.decides:
                continue
            values = [_shown(mine), _shown(match)]
            if values[0] != values[1] or mine.verdict == match.verdict == "unknown":
                phrases.append(f"{mine.name} {' against '.join(dict.fromkeys(values))}")
        return phrases


def comparability(report: Report) -> Comparability:
    """Return what the numbers of a report are comparable with."""
    disclosure = report.disclosure
    return Comparability(
        conditions=(*planned_conditions(disclosure), *_result_conditions(report)),
        guarantees=tuple(_guarantees(disclosure)),
        statements=_statements(disclosure),
    )


def planned_conditions(disclosure: Disclosure) -> list[Condition]:
    """Return the conditions that are known before anything has run."""
    limits, standard = disclosure.limits, STANDARD.describe()
    found = [
        _limit("time", limits, standard),
        _limit("cpus", limits, standard),
        _limit("memory", limits, standard),
        _gpus(disclosure, standard),
    ]
    network, description = disclosure.network, disclosure.description
    found += [
        # the benchmark's own containers have an open network; a stricter one is no advantage
        Condition("network", network or "", "standard" if network else "unknown", decides=True),
        _plain("description", description, "kaggle"),
        _plain("benchmark version", disclosure.benchmark, VERSION),
    ]
    return found


def planned_sentence(disclosure: Disclosure) -> str:
    """Return what can be said of the conditions before anything has run."""
    reasons = [one.reason for one in planned_conditions(disclosure) if one.verdict == "other"]
    return f"not standard: {'; '.join(reasons)}" if reasons else STANDARD_TEXT


def class_warning(before: Comparability, after: Comparability) -> str | None:
    """Return a sentence if two runs are not of one class, or not known to be."""
    if not (phrases := before.differences(after)):
        return None
    return f"A and B are not known to be of one class: {'; '.join(phrases)}"


def gpus_text(gpus: Iterable[Mapping[str, Any]]) -> str | None:
    """Return the GPUs of an attempt as its report has them: ``1 x NVIDIA A10 (24GB)``."""
    names: dict[str, int] = {}
    for gpu in gpus:
        memory = show_size(round(float(gpu.get("memory_bytes") or 0), -9))
        name = f"{gpu.get('name', 'unknown GPU')} ({memory})"
        names[name] = names.get(name, 0) + 1
    return " + ".join(f"{number} x {name}" for name, number in names.items()) or None


def _shown(condition: Condition) -> str:
    return "not known" if condition.verdict == "unknown" else condition.value


def _limit(key: str, limits: Mapping[str, str], standard: Mapping[str, str]) -> Condition:
    return _plain(key, limits.get(key), standard[key])


def _plain(name: str, value: str | None, standard: str) -> Condition:
    if not value:
        return Condition(name, "", "unknown", standard, decides=True)
    verdict: Verdict = "standard" if value == standard else "other"
    return Condition(name, value, verdict, standard, decides=True)


def _gpus(disclosure: Disclosure, standard: Mapping[str, str]) -> Condition:
    """Judge the GPUs that attempts had; before any has run, the number that they are to have."""
    norm = "1 x NVIDIA A10 (24GB)"
    if not disclosure.gpus:
        number = disclosure.limits.get("gpus")
        if number == standard["gpus"]:
            return Condition("GPU", "", "unknown", norm, decides=True)
        return _plain("GPU", number and f"{number} GPUs".replace("0 GPUs", "none"), norm)
    value = ", ".join(disclosure.gpus)
    matches = [_GPU.fullmatch(text) for text in disclosure.gpus]
    alike = all(
        match and match["number"] == "1" and _STANDARD_GPU.fullmatch(match["name"])
        for match in matches
    )
    return Condition("GPU", value, "standard" if alike else "other", norm, decides=True)


def _result_conditions(report: Report) -> list[Condition]:
    return [
        *_seeds(report),
        _coverage(report),
        _data(report),
        *_history(report.disclosure),
        _format_checks(report),
        _leaks(report),
    ]


def _seeds(report: Report) -> list[Condition]:
    seeds = len(report.seeds)
    enough = seeds >= MIN_SEEDS
    found = [
        Condition("seeds", str(seeds), "standard" if enough else "other", f"{MIN_SEEDS} or more")
    ]
    not_run = sum(result.status in {"error", "skipped", "missing"} for result in report.results)
    if not_run:
        found.append(Condition("missing runs", f"{not_run} of {len(report.results)}", "other"))
    return found


def _coverage(report: Report) -> Condition:
    """Judge whether the splits of the benchmark that were touched are whole."""
    rows = [row for row in report.rates if row.name in BENCHMARK]
    inside = {name for row in rows for name in report.membership.splits[row.name]}
    outside = {result.competition for result in report.results} - inside
    texts = list(
        dict.fromkeys(  # several agents may have the same
            row.name if row.is_whole else f"{row.competitions} of {row.of} of {row.name}"
            for row in rows
        )
    )
    if outside:
        texts.append(f"{len(outside)} outside the benchmark")
    whole = bool(rows) and not outside and all(row.is_whole for row in rows)
    return Condition("competitions", ", ".join(texts), "standard" if whole else "other")


def _data(report: Report) -> Condition:
    """Judge whether every dataset was compared with the original's checksums."""
    ids = {result.competition for result in report.results if result.status in {"graded", "failed"}}
    how = {name: report.disclosure.data.get(name, "unknown") for name in ids}
    if not ids or set(how.values()) == {"unknown"}:
        return Condition("data", "", "unknown", "verified by checksums", decides=True)
    loose = sorted(name for name, text in how.items() if text != VERIFIED)
    if not loose:
        return Condition("data", "verified by checksums", "standard", decides=True)
    value = f"not verified by checksums in {len(loose)} of {len(how)} competitions"
    return Condition("data", value, "other", decides=True)


def _history(disclosure: Disclosure) -> list[Condition]:
    """Judge what became of attempts on the way: repeated, resumed, replaced."""
    counts = disclosure.attempts
    if not counts:
        return [Condition("attempts", "", "unknown")]
    found = []
    sessions, repeated = counts.get("sessions", 1), counts.get("repeated", 0)
    superseded = counts.get("superseded", 0)
    text = f"{counts.get('made', 0)} made in {sessions} session{'s' if sessions > 1 else ''}"
    # an attempt that the benchmark itself spoilt is made anew: the agent gets no second chance
    text += f", {repeated} again after errors of the benchmark" if repeated else ""
    found.append(Condition("attempts", text, "standard"))
    if superseded:
        value = f"{superseded} attempts were replaced after the agent or conditions had changed"
        found.append(Condition("agent", value, "other"))
    elif len((disclosure.fingerprint or "").split(", ")) > 1:
        found.append(Condition("agent", "several versions or agents took part", "other"))
    return found


def _format_checks(report: Report) -> Condition:
    text = f"{report.format_checks} used, which see the public sample only"
    return Condition("format checks", text, "standard")


def _leaks(report: Report) -> Condition:
    leaky = report.membership.leaky
    text = f"known in {len(leaky)} competitions" if leaky else "none known"
    return Condition("leaks", text, "standard")


def _guarantees(disclosure: Disclosure) -> Iterable[str]:
    """Yield what the sandboxes and networks of the attempts guarantee about test signals."""
    sandboxes = (disclosure.sandbox or "").split(", ")
    network = disclosure.network or "not known"
    for sandbox in sandboxes:
        if sandbox == "docker":
            reach = {"none": "no network", "open": "open network"}.get(network, network)
            text = f"answers were never in reach: docker, {reach}"
            if network == "open":
                text += " (what the agent fetched is not known)"
            yield text
        elif sandbox in {"process", "rootless"}:
            if disclosure.attempts.get("unconfined", 1):
                yield "no guarantee about the answers: processes without walls around files"
            else:
                yield f"answers were never in reach: processes behind walls, network {network}"
        else:
            yield "nothing is known about what the agent could read"


def _statements(disclosure: Disclosure) -> tuple[tuple[str, str], ...]:
    values = {
        "llms": ", ".join(disclosure.llms),
        "url": disclosure.url,
        "paper": disclosure.paper,
        "statement": disclosure.statement,
    }
    return tuple((key, text) for key, text in values.items() if text)
