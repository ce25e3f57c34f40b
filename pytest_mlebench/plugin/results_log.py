"""The session's account: what is expected, what became of it, and whether the bars are reached.

The report is always of the whole run on disk; a session that visits a part of it adds to it.
"""

from __future__ import annotations

import gc
import logging
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_mlebench._files import short_path
from pytest_mlebench.attempts.plan import Plan, write_plan
from pytest_mlebench.attempts.run_results import disclose, read_tries, settle
from pytest_mlebench.errors import ConfigError, MlebenchError
from pytest_mlebench.plugin import options
from pytest_mlebench.plugin.junit_totals import add_totals
from pytest_mlebench.plugin.preflight import OpenRun, open_run, stamp
from pytest_mlebench.plugin.session import ITEM_KEY, MleSession
from pytest_mlebench.plugin.verdicts import PHASES, found_in
from pytest_mlebench.reports.compare import compare, comparison_lines
from pytest_mlebench.reports.findings import Audit, read_audit, violations
from pytest_mlebench.reports.gates import check_gates
from pytest_mlebench.reports.report import Report
from pytest_mlebench.reports.results import ItemKey, Result
from pytest_mlebench.reports.summary import Line

logger = logging.getLogger(__name__)

MAX_JOB_SUMMARY = 900_000  # bytes; GitHub refuses a step's summary above 1 MiB
_ASKING = (
    "fail-under",
    "fail-over",
    "fail-on",
    "baseline",
    "report",
)  # options that are about results


class ResultsLog:
    """What the controlling process knows of the items, and makes of it in the end."""

    def __init__(self, session: MleSession) -> None:
        self.session = session
        self.expected: dict[ItemKey, None] = {}
        self.found: list[tuple[ItemKey, Result]] = []
        self.missed: list[str] = []  # a sentence for every bar that is not reached
        self.written: list[Path] = []
        self.comparison: list[Line] = []
        self.report: Report | None = None
        self.run: OpenRun | None = None
        self._keys: dict[str, ItemKey] = {}  # by node id

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Refuse, before anything runs, what cannot work."""
        if self.session.config.option.collectonly:
            return
        try:
            with _without_garbage_collection():
                self.run = open_run(self.session)
        except ConfigError as error:
            raise pytest.UsageError(str(error)) from None

    @pytest.hookimpl(tryfirst=True)  # before the terminal, which shows it
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note what is going to run."""
        keys = {item.nodeid: item.stash.get(ITEM_KEY, None) for item in session.items}
        self.expect({nodeid: key for nodeid, key in keys.items() if key is not None})

    def expect(self, keys: Mapping[str, ItemKey]) -> None:
        """Note items that are going to run, by node id; workers send theirs."""
        self._keys.update(keys)
        new = [key for key in keys.values() if key not in self.expected]
        if not new or self.run is None or self.session.settings.prepare == "only":
            return
        self.expected.update(dict.fromkeys(new))
        plan = self._disclosing(self.run.plan.expecting(new))
        if plan != self.run.plan:
            self.run = replace(self.run, plan=plan)
            self._write_plan(plan)

    def _disclosing(self, plan: Plan) -> Plan:
        """Return the plan with what tests of the user's own select, if that is something else."""
        ids = tuple(dict.fromkeys(key.competition for key in plan.expected))
        if not self.session.settings.tests:
            return plan
        disclosure = replace(plan.disclosure, seeds=len({key.seed for key in plan.expected}))
        if set(ids) != set(self.session.settings.ids):
            disclosure = replace(disclosure, splits=(), competitions=ids)
        return replace(plan, disclosure=disclosure)

    def disclose_hosts(self, hosts: Mapping[str, str], notes: Iterable[str]) -> None:
        """Let the report say which hosts take part, what each is made of, and what is special."""
        if self.run is None:
            return
        base = self.run.plan.disclosure
        known = dict.fromkeys((*self.run.notes, *notes))
        plan = replace(
            self.run.plan,
            disclosure=replace(base, hosts={**base.hosts, **hosts}, notes=tuple(known)),
        )
        self.run = replace(self.run, plan=plan)
        self._write_plan(plan)

    def key_of(self, nodeid: str) -> ItemKey | None:
        """Return what identifies an item, if it is about an attempt."""
        return self._keys.get(nodeid)

    def nodeid_of(self, key: ItemKey) -> str | None:
        """Return the node id of an item, if it has been collected."""
        return next((nodeid for nodeid, each in self._keys.items() if each == key), None)

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the result of an item."""
        found = self.result_of(report)
        if found is not None:
            self.found.append(found)

    def result_of(self, report: pytest.TestReport) -> tuple[ItemKey, Result] | None:
        """Return the result on a report; a lost worker leaves none, which is an error."""
        found = found_in(report)
        key = self._keys.get(report.nodeid)
        if found is None and key is not None and report.when not in PHASES:
            text = str(report.longrepr)
            found = key, Result(key.competition, key.seed, "error", error=text, agent=key.agent)
        return found

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the reports and judge the gates."""
        if self.run is None or self.session.settings.prepare == "only":
            return
        self._note_what_nobody_ran(session)
        if not self.expected:
            return
        with _without_garbage_collection():
            self.report = self._whole_report()
            self._write_reports(self.report)
        add_totals(session.config, self.report)
        self._append_job_summary(self.report)
        gates = self.session.settings.gates
        named = [gate.split for gate in gates if gate.split is not None]
        membership = self.report.membership.including(self.session.registry, named)
        self.missed += check_gates(gates, self.report.results, membership)
        self._judge_spending(self.report)
        self._compare(self.report)
        ended_well = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        if self.missed and session.exitstatus in ended_well:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl
    def pytest_unconfigure(self) -> None:
        """Let go of the run's folder."""
        if self.run is not None:
            self.run.close()

    def _note_what_nobody_ran(self, session: pytest.Session) -> None:
        """Let no session end well that was to run an agent and ran none."""
        config = session.config
        ended_well = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        if not self.expected:
            if self.session.settings.hosts is not None:
                if session.exitstatus in ended_well:
                    self.missed.append("nothing ran: no host came to work")
                    session.exitstatus = pytest.ExitCode.TESTS_FAILED
            elif asked := self._asked(config):
                self.missed.append(
                    f"{asked} has nothing to judge: no test of this session is about a "
                    "competition (a test is if it takes mle_grade or mle_run)"
                )
                session.exitstatus = pytest.ExitCode.USAGE_ERROR
            elif session.exitstatus == pytest.ExitCode.OK and not session.testscollected:
                self.missed.append("nothing ran")
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
        elif all(result.status in {"skipped", "missing"} for _, result in self.found):
            skipped = sum(result.status == "skipped" for _, result in self.found)
            self.missed.append(f"nothing ran: {skipped} of {len(self.expected)} items were skipped")
        elif session.exitstatus in ended_well:
            left = self.expected.keys() - {key for key, _ in self.found}
            if left:
                self.missed.append(f"{len(left)} of {len(self.expected)} items were not run")

    def _asked(self, config: pytest.Config) -> str | None:
        """Return an option that is about results, if one was typed or the agent was."""
        if typed := options.on_command_line(config, *_ASKING):
            return typed[0]
        if not options.on_command_line(config, "agent"):
            return None  # all is in the ini file, which also plain tests are run with
        settings = self.session.settings
        set_ones = {
            "fail-under": settings.gates,
            "fail-over": settings.spending_gate,
            "baseline": settings.baseline,
            "fail-on": settings.fail_on,
            "report": settings.reports,
        }
        named = [name for name, value in set_ones.items() if value]
        return options.spelled(config, named[0]) if named else None

    def _whole_report(self) -> Report:
        """Return the report of the run: what is on disk, and what this session has found."""
        if self.run is None:
            raise ValueError("the run is not open")
        tries = read_tries(self.session.settings.run)
        results = settle(self.run.plan.expected, [*self.found, *tries.found])
        disclosure = replace(
            disclose(self.run.plan.disclosure, tries),
            finished=stamp(time.time()),
            extra=self._extra(),
        )
        self._write_plan(replace(self.run.plan, disclosure=disclosure))
        report = Report.of(results, registry=self.session.registry, disclosure=disclosure)
        return replace(report, audit=self._audit(report))

    def _extra(self) -> dict[str, Any]:
        """Return what hooks have to say, asked once."""
        config = self.session.config
        answers: Iterable[Mapping[str, Any]] = config.hook.pytest_mle_report(config=config)
        return {key: value for facts in answers for key, value in facts.items()}

    def _audit(self, report: Report) -> Audit | None:
        """Look for what is suspicious if that is asked for; else take what was found before."""
        settings = self.session.settings
        if not settings.audit:
            return read_audit(settings.run.audit)
        from pytest_mlebench.audit.audit_run import audit_run  # late on purpose: only if asked for

        audit = audit_run(settings.run_path, report.results, self.session.registry, settings.store)
        if settings.fail_on == "violation":
            self.missed += violations(audit)
        return audit

    def _write_plan(self, plan: Plan) -> None:
        """Write the plan; a disk that is full fails the session, which goes on as far as it can."""
        try:
            write_plan(self.session.settings.run, plan)
        except OSError as error:
            path, reason = short_path(self.session.settings.run.plan), error.strerror or error
            self._miss(f"cannot write {path}: {reason}: make room and resume the run")

    def _miss(self, sentence: str) -> None:
        if sentence not in self.missed:
            self.missed.append(sentence)

    def _write_reports(self, report: Report) -> None:
        run = self.session.settings.run
        for path in (run.report, run.page, *self.session.settings.reports):
            try:
                report.write(path)
                self.written.append(path)
            except MlebenchError as error:
                self.missed.append(str(error))

    def _judge_spending(self, report: Report) -> None:
        gate = self.session.settings.spending_gate
        if gate is not None and (sentence := gate.judge(report.results)) is not None:
            self.missed.append(sentence)

    def _append_job_summary(self, report: Report) -> None:
        """Add the report to the page of a GitHub job, which takes a megabyte."""
        summary = os.environ.get("GITHUB_STEP_SUMMARY")
        if not summary:
            return
        from pytest_mlebench.reports.formats import markdown  # late on purpose: only in such a job

        text = markdown.render(report)
        if len(text.encode()) > MAX_JOB_SUMMARY:
            text = text.encode()[:MAX_JOB_SUMMARY].decode(errors="ignore").rpartition("\n")[0]
        try:
            with Path(summary).open("a", encoding="utf-8") as file:
                file.write(f"\n{text}\n")
        except OSError as error:
            logger.warning("cannot write the job summary %s: %s", summary, error.strerror)

    def _compare(self, report: Report) -> None:
        """Compare with the baseline; a significant fall of the medal rate is a missed bar."""
        baseline = self.session.settings.baseline
        if baseline is None:
            return
        if len(report.blocks) > 1:
            report = report.of_agent(self.session.shown_agent)
        try:
            comparison = compare(Report.load([baseline], self.session.registry), report)
        except MlebenchError as error:
            self.missed.append(f"{error} (--mle-baseline={short_path(baseline)})")
            return
        head = Line(f"compared with {short_path(baseline)}:", {"bold": True})
        self.comparison = [Line(""), head, *comparison_lines(comparison)]
        if (regression := comparison.regression()) is not None:
            self.missed.append(regression)


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Let Python look for no cycles while thousands of results are made, none of which has any."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
