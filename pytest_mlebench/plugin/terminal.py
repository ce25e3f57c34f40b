"""What a session with an agent shows: header, progress, summary; and what it leaves: reports."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_mlebench import __version__
from pytest_mlebench.attempts.record import Run, read_run
from pytest_mlebench.errors import ConfigError, MlebenchError
from pytest_mlebench.limits import STANDARD, Limits, demo_limits
from pytest_mlebench.plugin.session import AT_HOME, MleSession
from pytest_mlebench.plugin.verdicts import key_of, result_of
from pytest_mlebench.reports.results import Result, complete
from pytest_mlebench.reports.summary import Line, check_gates, problem_lines, summary_lines

if TYPE_CHECKING:
    from filelock import BaseFileLock

    from pytest_mlebench.plugin.live_status import LiveStatus
    from pytest_mlebench.reports.disclosure import Disclosure
    from pytest_mlebench.reports.report import Report


class Terminal:
    """Everything the controlling process says and writes."""

    def __init__(self, session: MleSession) -> None:
        self.session = session
        self.results: dict[tuple[str, int], Result] = {}
        self.expected: dict[tuple[str, int], None] = {}
        self.notes: tuple[str, ...] = ()
        self.missed: list[str] = []
        self.written: list[Path] = []
        self.comparison: list[Line] = []
        self.report: Report | None = None
        self.progress: LiveStatus | None = None
        self._lock: BaseFileLock | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Refuse, before anything runs, what cannot work."""
        config = self.session.config
        if config.option.collectonly:
            return
        try:
            self._preflight()
        except ConfigError as error:
            raise pytest.UsageError(str(error)) from None

    @pytest.hookimpl
    def pytest_report_header(self) -> list[str]:
        """Return what a reader of a log must know before the first result."""
        session = self.session
        limits = self._limits()
        lines = [
            f"mle-bench: agent {session.shown_agent}, "
            f"{_count(len(session.ids), 'competition')} ({self._selection()}), "
            f"{_count(session.seeds, 'seed')}, require {session.require}"
        ]
        if limits is not None:
            lines += self._limit_lines(limits)
        lines += [
            *self.notes,
            f"data: {_short(session.store_folder)}",
            f"run: {_short(session.run_folder)}",
        ]
        return lines

    @pytest.hookimpl
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note what is going to run."""
        self._expect([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Note what the workers are going to run."""
        self._expect(ids)

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the result of an item; a lost worker leaves none, which is an error."""
        result = result_of(report)
        key = key_of(report.nodeid)
        lost = report.when not in ("setup", "call", "teardown")
        if result is None and lost and key in self.expected:
            result = Result(*key, outcome="error", error=str(report.longrepr))
        if report.skipped and key is not None:
            self.expected.pop(key, None)  # skipped on purpose, by an option
        elif result is not None and report.when != "teardown":
            self.results[result.key] = result

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write the reports and judge the gates."""
        if self.progress is not None:
            self.progress.stop()
        if not self.expected or session.config.option.collectonly:
            return
        from pytest_mlebench.reports.report import Report  # late on purpose: only at the end

        self.report = Report.of(
            self._all_results(),
            registry=self.session.registry,
            disclosure=self._disclosure(),
            expected=self.expected,
        )
        self._write_reports(self.report)
        gates = self.session.gates
        named = [gate.split for gate in gates if gate.split is not None]
        membership = self.report.membership.including(self.session.registry, named)
        self.missed += check_gates(gates, self.report.results, membership)
        self._compare(self.report)
        if self.missed and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print medal rates, every competition, what went wrong and what to do next."""
        if self.report is None:
            return
        terminal, report = terminalreporter, self.report
        ascii_only = "utf" not in (getattr(terminal._tw._file, "encoding", "") or "").lower()
        terminal.section("MLE-bench")
        for line in summary_lines(report.results, report.membership, ascii_only=ascii_only):
            terminal.write_line(line.text, **line.markup)
        for line in self.comparison:
            terminal.write_line(line.text, **line.markup)
        problems = problem_lines(report.results)
        if problems:
            terminal.write_line("")
        for line in problems:
            terminal.write_line(line.text, **line.markup)
        terminal.write_line("")
        for sentence in self.missed:
            terminal.write_line(f"missed: {sentence}", red=True, bold=True)
        for path in self.written:
            terminal.write_line(f"report: {_short(path)}")
        terminal.write_line(f"run: {_short(self.session.run_folder)}")
        terminal.write_line(f"next: {self._next()}")

    @pytest.hookimpl
    def pytest_unconfigure(self) -> None:
        """Let go of the run's folder."""
        if self._lock is not None:
            self._lock.release()

    def _preflight(self) -> None:
        session = self.session
        if not session.agent_is_overridden:
            agent = session.agent
            agent.environment()
            for limits in self._distinct_limits():
                notes = session.sandbox(agent).preflight(agent, limits, session.network(agent))
                self.notes = tuple(dict.fromkeys((*self.notes, *notes)))
        if session.missing == "fail":
            self._refuse_unprepared()
        self._open_run()

    def _refuse_unprepared(self) -> None:
        session = self.session
        if session.prepare != "never":
            from pytest_mlebench.store.bulk import preflight  # late on purpose: heavy

            preflight([session.registry.load(i) for i in session.ids], session.store)
            return
        lost = [i for i in session.ids if session.store.find(session.registry.load(i)) is None]
        if lost:
            raise ConfigError(
                f"{len(lost)} of {len(session.ids)} competitions are not prepared in "
                f"{session.store_folder}: {', '.join(lost[:5])}{', …' if len(lost) > 5 else ''}; "
                f"prepare them with --mle-prepare=auto, or pass over them with --mle-missing=skip"
            )

    def _open_run(self) -> None:
        """Make or resume the run's folder and hold it against other sessions."""
        from filelock import FileLock, Timeout  # late on purpose: only when agents run

        from pytest_mlebench.attempts.plan import PLAN, read_plan, write_plan

        folder = self.session.run_folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(folder / ".session.lock")
            lock.acquire(timeout=0)
            self._lock = lock
            if (folder / PLAN).exists():
                before = read_plan(folder)[1].agent
                if before not in (None, self.session.shown_agent):
                    raise ConfigError(
                        f"run {folder.name!r} belongs to agent {before!r}, not to "
                        f"{self.session.shown_agent!r}: choose another name with --mle-run"
                    )
            write_plan(folder, (), self._disclosure())
        except Timeout:
            raise ConfigError(
                f"run {folder.name!r} is in use by another session: wait for it, or choose "
                f"another name with --mle-run"
            ) from None
        except OSError as error:
            raise ConfigError(
                f"cannot write to {folder}: {error.strerror or error}: choose another folder "
                f"with --mle-runs-dir"
            ) from None

    def _expect(self, nodeids: Sequence[str]) -> None:
        keys = {key: None for nodeid in nodeids if (key := key_of(nodeid)) is not None}
        self.expected.update(keys)
        config = self.session.config
        if not keys or config.option.collectonly or self.progress is not None:
            return
        from pytest_mlebench.attempts.plan import write_plan
        from pytest_mlebench.plugin.live_status import LiveStatus

        write_plan(self.session.run_folder, self.expected, self._disclosure())
        reporter = config.pluginmanager.getplugin("terminalreporter")
        if reporter is not None and config.option.verbose >= 0:
            self.progress = LiveStatus(reporter, self.session.run_folder, tuple(self.expected))
            self.progress.start()

    def _all_results(self) -> tuple[Result, ...]:
        return complete(self.results.values(), self.expected)

    def _distinct_limits(self) -> list[Limits]:
        session = self.session
        competitions = [session.registry.load(i) for i in session.ids]
        return list(dict.fromkeys(session.limits(c, session.agent) for c in competitions))

    def _limits(self) -> Limits | None:
        if self.session.agent_is_overridden:
            return None
        limits = self._distinct_limits()
        return limits[0] if limits else None

    def _limit_lines(self, limits: Limits) -> list[str]:
        """Return the limits, and every deviation from the standard of the benchmark or the demo."""
        kinds = {self.session.registry.load(i).complexity for i in self.session.ids}
        at_home = kinds <= set(AT_HOME)
        own = " (not MLE-bench's standard)" if at_home else ""
        changed = limits.deviations(demo_limits() if at_home else STANDARD)
        text = ", ".join(f"{key} {mine} instead of {norm}" for key, (mine, norm) in changed.items())
        lines = [f"limits: {_limits_text(limits)}{own}"]
        return [*lines, f"not standard: {text}"] if changed else lines

    def _selection(self) -> str:
        singles = [
            i
            for i in self.session.ids
            if not any(i in self.session.registry.split(name) for name in self.session.splits)
        ]
        return ", ".join([*self.session.splits, *singles[:3], *(["…"] if len(singles) > 3 else [])])

    def _disclosure(self) -> Disclosure:
        from pytest_mlebench.reports.disclosure import Disclosure, host_hardware

        session = self.session
        agent = None if session.agent_is_overridden else session.agent
        limits = self._limits()
        runs = self._runs()
        extra: dict[str, object] = {}
        for facts in session.config.hook.pytest_mle_report(config=session.config):
            extra |= facts
        return Disclosure(
            agent=session.shown_agent,
            agent_version=None if agent is None else agent.version,
            sandbox=None if agent is None else session.sandbox(agent).name,
            network=None if agent is None else session.network(agent),
            limits={} if limits is None else limits.describe(),
            deviations={} if limits is None else limits.deviations(STANDARD),
            hardware=host_hardware(),
            splits=session.splits,
            competitions=tuple(session.config.option.mle_competition or ()),
            seeds=session.seeds,
            require=session.require,
            plugin_version=__version__,
            image=", ".join(sorted({i for r in runs if (i := r.outcome.get("image"))})) or None,
            data={run.competition: run.conditions.get("data", "unknown") for run in runs},
            started=_stamp(session.started),
            finished=_stamp(time.time()),
            notes=(*self.notes, *self._choices()),
            extra=extra,
        )

    def _runs(self) -> list[Run]:
        """Return the records behind the results so far."""
        folders = (Path(result.run) for result in self.results.values() if result.run)
        return [run for folder in folders if (run := read_run(folder)) is not None]

    def _choices(self) -> tuple[str, ...]:
        """Return what the options change about the data."""
        notes = () if self.session.verify else ("datasets were not verified",)
        return notes if self.session.description == "ours" else (*notes, "original descriptions")

    def _write_reports(self, report: Report) -> None:
        for path in (self.session.run_folder / "report.json", *self.session.reports):
            try:
                report.write(path)
                self.written.append(path)
            except MlebenchError as error:
                self.missed.append(str(error))

    def _compare(self, report: Report) -> None:
        """Compare with the baseline; a significant fall of the medal rate is a missed bar."""
        baseline = self.session.baseline
        if baseline is None:
            return
        from pytest_mlebench.reports.compare import compare, comparison_lines
        from pytest_mlebench.reports.report import Report

        try:
            comparison = compare(Report.load([baseline], self.session.registry), report)
        except MlebenchError as error:
            self.missed.append(f"{error} (--mle-baseline={_short(baseline)})")
            return
        head = Line(f"compared with {_short(baseline)}:", {"bold": True})
        self.comparison = [Line(""), head, *comparison_lines(comparison)]
        if (regression := comparison.regression()) is not None:
            self.missed.append(regression)

    def _next(self) -> str:
        folder, report = self.session.run_folder, self.report
        if report is not None and any(r.outcome in ("error", "missing") for r in report.results):
            agent = shlex.quote(self.session.agent_name)
            return f"pytest --mle-agent={agent} --mle-run={folder.name} (resumes)"
        return f"pytest-mlebench report {_short(folder)}"


def _limits_text(limits: Limits) -> str:
    shown = limits.describe()
    gpus = _count(limits.gpus, "GPU") if limits.gpus else "no GPU"
    return f"{shown['time']}, {shown['cpus']} CPUs, {shown['memory']} memory, {gpus}"


def _short(path: Path) -> str:
    """Return a path as one would type it: relative where it lies below, with ``~`` for home."""
    path = path.absolute()
    for start, name in ((Path.cwd(), ""), (Path.home(), "~/")):
        if path.is_relative_to(start) and path != start:
            return name + str(path.relative_to(start))
    return str(path)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _stamp(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")
