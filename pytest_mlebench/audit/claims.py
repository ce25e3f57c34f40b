"""Claims of a bundle about itself: its files, its attempts, and the texts that are made of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pytest_mlebench import __version__
from pytest_mlebench.audit.bundle import CLAIMS, MANIFEST, PAGE, RUN, SIGNATURE, Manifest
from pytest_mlebench.layout import AttemptFolder, RunFolder
from pytest_mlebench.reports.formats import json_file, markdown
from pytest_mlebench.reports.report import Report
from pytest_mlebench.sandbox.kept_files import PARTS, is_kept, sums_of

Verdict = Literal["holds", "fails", "unchecked"]
Sums = dict[str, tuple[str, int]]  # path: sha256 and size
SHOWN = 5
# keys of the report that have a claim of their own
_APART = {"results", "rates", "comparability", "audit"}


@dataclass(frozen=True)
class Claim:
    """One claim of a bundle, and what became of it."""

    name: str
    verdict: Verdict
    text: str

    def to_dict(self) -> dict[str, Any]:
        """Return the claim in JSON types."""
        return asdict(self)


def exit_status(claims: list[Claim]) -> int:
    """Return 0 only if every claim holds: 1 if one fails, 3 if some could not be checked."""
    verdicts = {claim.verdict for claim in claims}
    return 1 if "fails" in verdicts else 3 if "unchecked" in verdicts else 0


def files_claim(sums: Sums, manifest: Manifest) -> Claim:
    """Compare every file with its sum; nothing may be missing, nothing may be there beside."""
    there = sums.keys() - {MANIFEST, SIGNATURE}
    wrong = [f"{name} is not in the bundle" for name in manifest.files if name not in there]
    wrong += [f"{name} is not in the manifest" for name in sorted(there - set(manifest.files))]
    wrong += [
        f"{name} was changed"
        for name, facts in manifest.files.items()
        if name in there and sums[name] != facts
    ]
    if wrong:
        more = f" and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
        return Claim("files", "fails", "; ".join(wrong[:SHOWN]) + more)
    return Claim("files", "holds", f"{len(manifest.files)} files have the sums of the manifest")


def attempts_claim(folder: Path) -> Claim:
    """Look for attempts that were taken out: their numbers leave no gap."""
    gaps = []
    count = 0
    for seed in RunFolder(folder / RUN).seeds():
        numbers = [attempt.number for attempt in seed.attempts()]
        count += len(numbers)
        lost = sorted(set(range(1, max(numbers, default=0) + 1)) - set(numbers))
        gaps += [f"{seed.path.relative_to(folder / RUN)}/attempt{number}" for number in lost]
    if gaps:
        return Claim("attempts", "fails", f"not in the bundle: {', '.join(gaps)}")
    return Claim("attempts", "holds", f"{count} attempts, none left out")


def kept_claim(folder: Path, manifest: Manifest, sum_of_file: Callable[[Path], str]) -> Claim:
    """Compare submission, code and logs of every attempt with the sums in its record."""
    run = RunFolder(folder / RUN)
    wrong, unknown, count, logs = [], [], 0, True
    for attempt in (attempt for seed in run.seeds() for attempt in seed.attempts()):
        record = json_file.load_json(attempt.record)
        if record["phase"] not in {"collected", "graded"}:
            continue  # it did not come to its end, and nothing is claimed of it
        name = attempt.path.relative_to(run.path).as_posix()
        claimed, found = record.get("sums") or {}, sums_of(attempt, sum_of_file)
        if not claimed:
            unknown.append(name)
            continue
        count += 1
        with_logs = not lacks_logs(attempt, manifest)
        logs = logs and with_logs
        parts = [part for part in PARTS if part != "logs" or with_logs]
        wrong += [f"{part} of {name}" for part in parts if claimed.get(part) != found.get(part)]
    if wrong:
        text = f"not what was collected: {', '.join(wrong[:SHOWN])}"
        return Claim("kept files", "fails", text)
    if unknown:
        text = f"no sums in the records of {', '.join(unknown[:SHOWN])}"
        return Claim("kept files", "unchecked", text)
    what = "submission, code and logs" if logs else "submission and code, without logs,"
    return Claim("kept files", "holds", f"{what} of {count} attempts have the sums of the records")


def lacks_logs(attempt: AttemptFolder, manifest: Manifest) -> bool:
    """Tell whether something that was kept of an attempt is not in the bundle."""
    inside = "/".join(attempt.path.parts[-3:]) + "/"
    names = [name for name in manifest.left_out if name.startswith(inside)]
    return any(is_kept(name.removeprefix(inside)) for name in names)


def records_claim(claimed: Report, found: Report) -> Claim:
    """Compare the results that are claimed with those that the records tell of."""
    mine = {result.key: result.to_dict() for result in found.results}
    theirs = {result.key: result.to_dict() for result in claimed.results}
    wrong = [
        f"{key.competition} seed {key.seed}"
        for key in dict.fromkeys((*theirs, *mine))
        if mine.get(key) != theirs.get(key)
    ]
    if wrong:
        return Claim(
            "records", "fails", f"the records tell otherwise of {', '.join(wrong[:SHOWN])}"
        )
    return Claim("records", "holds", f"{len(mine)} results are those of plan and records")


def text_claims(
    folder: Path, raw: dict[str, Any], found: Report, manifest: Manifest
) -> list[Claim]:
    """Write the report and its page anew from the run, and compare them as a whole."""
    fresh = replace(found, created=manifest.created)
    report = json_file.render(fresh)
    wrong = []
    if not _is(folder / CLAIMS, report):
        wrong = _differences(raw, json.loads(report)) or ["its layout"]
    page = [] if _is(folder / PAGE, markdown.render(fresh)) else ["its text"]
    return [
        _text_claim("report", "is what the run gives", wrong, manifest),
        _text_claim("disclosure", "the page is what the run gives", page, manifest),
    ]


def _text_claim(name: str, good: str, wrong: list[str], manifest: Manifest) -> Claim:
    if not wrong:
        return Claim(name, "holds", good)
    shown = ", ".join(wrong[:SHOWN])
    if (version := manifest.plugin_version) != __version__:
        text = f"written by version {version}, this is {__version__}: it differs in {shown}"
        return Claim(name, "unchecked", text)
    return Claim(name, "fails", f"the run gives another: {shown}")


def _differences(theirs: dict[str, Any], mine: dict[str, Any]) -> list[str]:
    """Return the keys whose values differ; of tables the keys in them."""
    found = []
    for key in dict.fromkeys((*mine, *theirs)):
        left, right = theirs.get(key), mine.get(key)
        if left == right and (key in theirs) == (key in mine):
            continue
        if key in _APART or not (isinstance(left, dict) and isinstance(right, dict)):
            found.append(key)
        else:
            inner = dict.fromkeys((*right, *left))
            found += [f"{key}.{each}" for each in inner if left.get(each) != right.get(each)]
    return found


def _is(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() == text.encode()


def rates_claim(raw: dict[str, Any], anew: Report) -> Claim:
    """Compare the rates to the last digit."""
    mine = json.loads(json.dumps([row.to_dict() for row in anew.rates]))
    theirs = raw.get("rates")
    if mine == theirs:
        rows = ", ".join(f"{row.name} {row.rates['any_medal'].text()}" for row in anew.rates)
        return Claim("rates", "holds", rows)
    known = {_name(row): row for row in theirs or () if isinstance(row, dict)}
    wrong = [_name(row) for row in mine if known.get(_name(row)) != row]
    return Claim("rates", "fails", f"the scores give other rates for {', '.join(wrong) or 'some'}")


def _name(row: dict[str, Any]) -> str:
    return f"{row.get('agent', '')} {row.get('split', '')}".strip()


def conditions_claim(raw: dict[str, Any], anew: Report) -> Claim:
    mine = json.loads(json.dumps(anew.comparability.to_dict()))
    if mine == raw.get("comparability"):
        return Claim("conditions", "holds", anew.comparability.sentence)
    return Claim("conditions", "fails", f"the records say: {anew.comparability.sentence}")
