"""What an audit has found: findings with evidence, attempt by attempt; none changes a grade."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal, get_args

from pytest_mlebench._files import write_text
from pytest_mlebench._plain_text import one_line
from pytest_mlebench._toml import Table
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.medals import Medal
from pytest_mlebench.reports.json_table import json_table
from pytest_mlebench.reports.results import ItemKey, Result

# info: worth knowing, allowed; suspicious: somebody should look; violation: against the rules
Level = Literal["info", "suspicious", "violation"]
LEVELS: tuple[Level, ...] = get_args(Level)
FORMAT = "pytest-mlebench audit"
SCHEMA = 2
READABLE = (1, 2)  # 1 did not know which check had found what
FACTS = "facts"  # the check that every audit makes
_FURTHER = ("plagiarism", "judge")  # in audits of the first schema, all that was not a fact


@dataclass(frozen=True)
class Excerpt:
    """Lines of an attempt and lines of somebody else's that are alike."""

    here: str
    there: str


@dataclass(frozen=True)
class Finding:
    """One finding: which check, how grave, what, and where that is to be seen."""

    check: str
    level: Level
    what: str
    evidence: tuple[str, ...] = ()  # "place: quotation"
    excerpts: tuple[Excerpt, ...] = ()  # of both sides, one for each piece of the evidence

    @property
    def pieces(self) -> list[tuple[str, Excerpt | None]]:
        """Return the evidence, each piece with the lines of both sides if there are any."""
        return list(zip_longest(self.evidence, self.excerpts[: len(self.evidence)]))

    def to_dict(self) -> dict[str, Any]:
        """Return the finding in JSON types."""
        return asdict(self) | {
            "evidence": list(self.evidence),
            "excerpts": [asdict(excerpt) for excerpt in self.excerpts],
        }

    @classmethod
    def from_table(cls, table: Table) -> Finding:
        """Return what ``to_dict`` wrote."""
        return cls(
            check=table.text("check"),
            level=table.choice("level", LEVELS),
            what=table.text("what"),
            evidence=table.texts("evidence", ()),
            excerpts=tuple(
                Excerpt(each.text("here"), each.text("there")) for each in table.tables("excerpts")
            ),
        )


@dataclass(frozen=True)
class CheckFindings:
    """What one check has found about an attempt, and a sum of all it looked at."""

    name: str
    inputs: str  # other inputs are looked at anew
    findings: tuple[Finding, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return it in JSON types."""
        findings = [finding.to_dict() for finding in self.findings]
        return {"name": self.name, "inputs": self.inputs, "findings": findings}


@dataclass(frozen=True)
class AttemptFindings:
    """Everything that was found about one attempt."""

    key: ItemKey
    digest: str  # of its files: of others nothing is known
    checks: tuple[CheckFindings, ...] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)  # of its code: size, style, comments

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return the findings of all checks."""
        return tuple(finding for check in self.checks for finding in check.findings)

    def check(self, name: str) -> CheckFindings | None:
        """Return what a check has found, if it was made."""
        return next((check for check in self.checks if check.name == name), None)

    @property
    def level(self) -> Level:
        """Return the gravest level."""
        return max((one.level for one in self.findings), key=LEVELS.index, default="info")

    @property
    def name(self) -> str:
        """Return which attempt it is."""
        return f"{self.key.competition} seed {self.key.seed}"

    def to_dict(self) -> dict[str, Any]:
        """Return it in JSON types."""
        return {
            **self.key.to_dict(),
            "digest": self.digest,
            "checks": [check.to_dict() for check in self.checks],
            "figures": dict(self.figures),
        }

    @classmethod
    def from_dict(cls, data: object, where: str, schema: int = SCHEMA) -> AttemptFindings:
        """Return what ``to_dict``, of this schema or an earlier one, wrote."""
        table = json_table(data, where)
        figures = table.table("figures", None)
        checks = _checks_of(table) if schema > 1 else _checks_of_first_schema(table)
        return cls(
            key=ItemKey.from_dict(data, where),
            digest=table.text("digest").split(" ")[0],  # the first schema had names of checks there
            checks=tuple(checks),
            figures={} if figures is None else figures.take_all(),
        )


@dataclass(frozen=True)
class Audit:
    """The findings of a whole run, and what a judge has used."""

    attempts: tuple[AttemptFindings, ...]
    plugin_version: str
    judges: tuple[Mapping[str, Any], ...] = ()  # of each: model, votes, calls, tokens

    def of_level(self, level: Level) -> list[AttemptFindings]:
        """Return the attempts whose gravest finding is of a level."""
        return [attempt for attempt in self.attempts if attempt.level == level]

    @property
    def flagged(self) -> list[AttemptFindings]:
        """Return the attempts with a violation."""
        return self.of_level("violation")

    def to_dict(self) -> dict[str, Any]:
        """Return the audit in JSON types."""
        return {
            "format": FORMAT,
            "schema": SCHEMA,
            "plugin_version": self.plugin_version,
            "judges": [dict(judge) for judge in self.judges],
            "attempts": [attempt.to_dict() for attempt in self.attempts],
        }

    @classmethod
    def from_dict(cls, data: object, where: str) -> Audit:
        """Return what ``to_dict`` wrote."""
        table = json_table(data, where)
        schema = int(table.number("schema", 0))
        if table.text("format", "") != FORMAT or schema not in READABLE:
            raise ConfigError(f"{where}: not an audit that this version reads")
        judge = table.table("judge", None)  # the one of the first schema
        judges = [each.take_all() for each in (*table.tables("judges"), *filter(None, (judge,)))]
        attempts = data.get("attempts") if isinstance(data, Mapping) else ()
        if not isinstance(attempts, list):
            raise ConfigError(f"{where}: attempts must be a list")
        return cls(
            attempts=tuple(
                AttemptFindings.from_dict(each, f"{where}: attempts[{number}]", schema)
                for number, each in enumerate(attempts)
            ),
            plugin_version=table.text("plugin_version"),
            judges=tuple(judge for judge in judges if judge),
        )


def read_audit(path: Path) -> Audit | None:
    """Return the audit in a file, if there is one."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None
    return Audit.from_dict(data, str(path))


def write_audit(path: Path, audit: Audit) -> None:
    """Write an audit, all of it or nothing."""
    write_text(path, json.dumps(audit.to_dict(), indent=1, ensure_ascii=False) + "\n")


def without_flagged(results: Iterable[Result], audit: Audit) -> tuple[Result, ...]:
    """Return the results with every flagged attempt counted as no medal."""
    flagged = {attempt.key for attempt in audit.flagged}
    return tuple(_no_medal(each) if each.key in flagged else each for each in results)


def audit_lines(audit: Audit, width: int = 80) -> list[str]:
    """Return the audit for a terminal: counts, then everything that is more than a note."""
    counts = Counter(finding.level for each in audit.attempts for finding in each.findings)
    undecided = sum(
        f.check == "judge" and f.level == "info" for a in audit.attempts for f in a.findings
    )
    text = ", ".join(f"{counts[level]} {level}" for level in reversed(LEVELS))
    lines = [f"audit of {len(audit.attempts)} attempts: {text}"]
    if undecided:
        lines.append(f"the judge left {undecided} questions undecided")
    for attempt in audit.attempts:
        for finding in attempt.findings:
            if finding.level != "info":
                sentence = one_line(f"{attempt.name}: {finding.level}: {finding.what}")
                lines += textwrap.wrap(sentence, width, subsequent_indent="  ")
    return lines


def violations(audit: Audit) -> Sequence[str]:
    """Return a sentence for every attempt with a violation."""
    return [
        f"{each.name}: {finding.what} (--mle-fail-on=violation)"
        for each in audit.flagged
        for finding in each.findings
        if finding.level == "violation"
    ]


def _checks_of(table: Table) -> Iterator[CheckFindings]:
    for check in table.tables("checks"):
        findings = tuple(Finding.from_table(each) for each in check.tables("findings"))
        yield CheckFindings(check.text("name"), check.text("inputs"), findings)


def _checks_of_first_schema(table: Table) -> Iterator[CheckFindings]:
    """Yield facts, which are looked for anew, and what was found beyond them, which is kept."""
    findings = [Finding.from_table(each) for each in table.tables("findings")]
    facts = tuple(finding for finding in findings if finding.check not in _FURTHER)
    yield CheckFindings(FACTS, "", facts)
    for name in _FURTHER:
        if found := tuple(finding for finding in findings if finding.check == name):
            yield CheckFindings(name, "", found)


def _no_medal(result: Result) -> Result:
    if result.grade is None:
        return result
    return replace(result, grade=replace(result.grade, medal=Medal.NONE, above_median=False))
