"""What a session with an agent shows: header, progress, summary."""

from __future__ import annotations

import shlex
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from pytest_mlebench._files import short_path
from pytest_mlebench.host.demo_limits import demo_limits
from pytest_mlebench.limits import STANDARD, Limits
from pytest_mlebench.plugin import options
from pytest_mlebench.plugin.checks import distinct_limits
from pytest_mlebench.plugin.results_log import ResultsLog
from pytest_mlebench.plugin.session import AT_HOME, MleSession
from pytest_mlebench.plugin.verdicts import is_final, reason_of
from pytest_mlebench.reports.comparability import planned_sentence
from pytest_mlebench.reports.findings import audit_lines
from pytest_mlebench.reports.results import NOT_RUN
from pytest_mlebench.reports.summary import WIDTH, Line, problem_lines, summary_lines

if TYPE_CHECKING:
    from pytest_mlebench.plugin.progress_display import Display


MAX_LOG_COLUMNS = 400  # of a sentence in a log, which nothing else bounds


class Terminal:
    """Everything the controlling process prints."""

    def __init__(self, session: MleSession, log: ResultsLog) -> None:
        self.session = session
        self.log = log
        self.display: Display | None = None

    @pytest.hookimpl
    def pytest_report_header(self) -> list[str]:
        """Return what a reader of a log must know before the first result."""
        session, settings = self.session, self.session.settings
        chosen = "tests of your own"
        if not settings.tests:
            competitions = _count(len(settings.ids), "competition")
            chosen = f"{competitions} ({settings.selection}), {_count(settings.seeds, 'seed')}"
        lines = [f"mle-bench: agent {session.shown_agent}, {chosen}, require {settings.require}"]
        if not session.agent_is_overridden and settings.ids:
            lines += self._limit_lines(distinct_limits(session)[0])
            lines += self._model_lines()
        run = self.log.run
        lines += [*(() if run is None else run.notes), f"data: {short_path(settings.store)}"]
        lines.append(f"run: {short_path(settings.run_path)}")
        if run is not None and run.plan.expected:
            planned = 0 if settings.tests else len(settings.ids) * settings.seeds
            total = max(len(run.plan.expected), planned)
            lines.append(f"resumes: {len(run.done)} of {total} done already")
        return lines

    @pytest.hookimpl
    def pytest_report_collectionfinish(self) -> str | None:
        """Return what tests of the user's own have chosen, which nobody knows before."""
        keys = self.log.expected
        if not self.session.settings.tests or not keys:
            return None
        agents = ", ".join(dict.fromkeys(key.agent for key in keys))
        competitions = _count(len({key.competition for key in keys}), "competition")
        seeds = _count(len({key.seed for key in keys}), "seed")
        return f"mle-bench: agent {agents} on {competitions}, {seeds}"

    @pytest.hookimpl(tryfirst=True)  # before xdist's loop, which is the last that is asked
    def pytest_runtestloop(self) -> None:
        """Begin to show progress."""
        config = self.session.config
        reporter = config.pluginmanager.getplugin("terminalreporter")
        if reporter is None or config.option.verbose < 0 or config.option.collectonly:
            return
        # late on purpose: only when agents run
        from pytest_mlebench.plugin.progress_display import display_for

        self.display = display_for(reporter, self.session.settings.run, self.log.expected)
        if self.display is not None:
            self.display.start()

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write the line of an attempt that is over, where a log is written."""
        found = self.log.result_of(report)
        if self.display is not None and found is not None and is_final(report):
            self.display.finished(*found, reason_of(report) if report.failed else None)

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(
        self, report: pytest.TestReport
    ) -> Generator[None, tuple[str, str, Any], tuple[str, str, Any]]:
        """Write no letter of an attempt that has a line of its own."""
        category, letter, word = yield
        lines = self.display is not None and self.display.writes_lines
        return category, "" if lines and self.log.result_of(report) else letter, word

    @pytest.hookimpl
    def pytest_enter_pdb(self) -> None:
        """Leave the terminal to the debugger."""
        if self.display is not None:
            self.display.pause()

    @pytest.hookimpl
    def pytest_leave_pdb(self) -> None:
        """Take it back."""
        if self.display is not None:
            self.display.resume()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Stop showing progress."""
        if self.display is not None:
            self.display.stop()

    @pytest.hookimpl
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print medal rates, every competition, what went wrong and what to do next."""
        log, terminal = self.log, terminalreporter
        if log.report is None and not log.missed:
            return
        terminal.section("MLE-bench")
        if log.report is not None:
            self._print_report(terminal)
        for sentence in log.missed:
            terminal.write_line(f"missed: {sentence}", red=True, bold=True)
        for path in log.written:
            terminal.write_line(f"report: {short_path(path)}")
        terminal.write_line(f"run: {short_path(self.session.settings.run_path)}")
        terminal.write_line(f"next: {self._next()}")

    def _print_report(self, terminal: pytest.TerminalReporter) -> None:
        report = self.log.report
        if report is None:
            return
        encoding = getattr(terminal._tw._file, "encoding", "") or ""
        ascii_only = "utf" not in encoding.lower()
        lines = summary_lines(
            report.results,
            report.membership,
            ascii_only=ascii_only,
            gpu_hour_usd=report.disclosure.gpu_hour_usd,
        )
        lines += [Line(""), *map(Line, report.comparability.lines())]
        lines += map(Line, audit_lines(report.audit) if report.audit else ())
        lines += [
            Line(f"any medal without flagged attempts, {name}: {rate.text(ascii_only=ascii_only)}")
            for name, rate in report.without_flagged.items()
        ]
        width = terminal._tw.fullwidth if terminal.isatty else MAX_LOG_COLUMNS
        problems = problem_lines(report.results, max(width, WIDTH))
        for line in (*lines, *self.log.comparison):
            terminal.write_line(line.text, **line.markup)
        if problems:
            terminal.write_line("")
        for line in problems:
            terminal.write_line(line.text, **line.markup)
        terminal.write_line("")

    def _model_lines(self) -> list[str]:
        """Return which models the agent reaches through the gateway, and what it may spend."""
        agent = self.session.agent
        if not agent.models:
            return []
        budget = self.session.budget(agent).describe()
        return [f"models: {agent.describe_models()}", f"budget: {budget}"]

    def _limit_lines(self, limits: Limits) -> list[str]:
        """Return the limits, and every deviation from the standard of the benchmark or the demo."""
        ids, registry = self.session.settings.ids, self.session.registry
        at_home = {registry.load(i).complexity for i in ids} <= set(AT_HOME)
        own = " (not MLE-bench's standard)" if at_home else ""
        changed = limits.deviations(demo_limits() if at_home else STANDARD)
        text = ", ".join(f"{key} {mine} instead of {norm}" for key, (mine, norm) in changed.items())
        lines = [f"limits: {_limits_text(limits)}{own}"]
        if not at_home and self.log.run is not None:
            return [*lines, planned_sentence(self.log.run.plan.disclosure)]
        return [*lines, f"not standard: {text}"] if changed else lines

    def _next(self) -> str:
        """Return the command that does what is left to do, as it can be typed."""
        settings, report = self.session.settings, self.log.report
        if report is not None and not any(r.status in NOT_RUN for r in report.results):
            return f"pytest-mlebench report {short_path(settings.run_path)}"
        words = [f"--mle-agent={settings.agent}"]
        for name in ("data-dir", "runs-dir", "hosts"):
            if options.on_command_line(self.session.config, name):
                words.append(f"--mle-{name}={options.given(self.session.config, name)}")
        words.append(f"--mle-run={settings.run_path.name}")
        return f"{shlex.join(('pytest', *words))} (resumes)"


def _limits_text(limits: Limits) -> str:
    shown = limits.describe()
    gpus = _count(limits.gpus, "GPU") if limits.gpus else "no GPU"
    return f"{shown['time']}, {shown['cpus']} CPUs, {shown['memory']} memory, {gpus}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
