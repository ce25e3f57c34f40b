"""A session whose agents call models: figures, budgets, bars, and what is refused beforehand."""

from __future__ import annotations

import csv
import io
import json
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp  # noqa: F401  # loaded once: a session in this process forgets its imports
import pytest
from gateway_attempt import CALL_USD, REFERENCE, VARIABLE
from model_agents import COUNTING, SPENDER
from model_server import KEY, ModelServer
from plugin_session import Session
from pseudo_terminal import WAITING, Terminal

DIGITS = "--mle-competition=demo-digits"
TWO = (DIGITS, "--mle-competition=demo-wine-cultivars")
REPORTS = tuple(f"--mle-report=r.{suffix}" for suffix in ("json", "html", "md", "csv"))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A local upstream, whose real key is in our own environment."""
    monkeypatch.setenv(VARIABLE, KEY)
    with ModelServer() as server:
        yield server


class Declared:
    """An agent.toml of an agent that calls models."""

    def __init__(self, session: Session, server: ModelServer) -> None:
        self.session = session
        self.server = server

    def __call__(
        self,
        *,
        code: str = COUNTING,
        calls: int = 3,
        model: str = "gpt-5",
        usage: str | None = None,
        budget: str = "",
        prices: bool = True,
        more: str = "",
    ) -> str:
        self.session.agent("counting", code)
        env = {"CALLS": str(calls), "MODEL": model} | ({} if usage is None else {"USAGE": usage})
        lines = [
            'name = "counting"\ncommand = "python counting.py"',
            more,
            "[env]",
            *(f"{name} = {json.dumps(value)}" for name, value in env.items()),
            f'[models.openai]\nurl = "{self.server.url}/v1"\nkey = "{REFERENCE}"',
        ]
        if prices:
            lines.append('[models.openai.prices."gpt*"]\ninput = 1\noutput = 10\ncached = 0.1')
        lines.append(f"[budget]\n{budget}" if budget else "")
        (self.session.path / "agent.toml").write_text("\n".join(lines) + "\n")
        return "--mle-agent=agent.toml"


@pytest.fixture
def declare(session: Session, server: ModelServer) -> Declared:
    """Write an agent that calls models, and return the option that names it."""
    return Declared(session, server)


def only_record(session: Session) -> tuple[Path, dict[str, Any]]:
    (path,) = session.path.glob("mle-runs/*/*/*/*/record.json")
    return path.parent, json.loads(path.read_text())


def test_tokens_and_dollars_are_in_every_report(
    session: Session, declare: Declared, workers: tuple[str, ...]
) -> None:
    session.pytester.makeini("[pytest]\nmle_gpu_hour_usd = 2.5\n")
    result = session.run(declare(), *TWO, *REPORTS, "--junitxml=junit.xml", "-rA", *workers)
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines(["models: 720 tokens, $0.0016, $* per *", "report: *"])
    report = session.report("r.json")
    for found in report["results"]:
        use = found["model_use"]
        assert (use["source"], use["tokens"], use["metered"]["calls"]) == ("gateway", 360, 3)
        assert use["usd"] == pytest.approx(3 * CALL_USD)
    total = report["costs"]["total"]
    assert (total["attempts"], total["without_figures"], total["tokens"]) == (2, 0, 720)
    assert total["usd"] == pytest.approx(6 * CALL_USD)
    assert report["rates"][0]["costs"]["usd"] == pytest.approx(6 * CALL_USD)
    assert [row["calls"] for row in report["costs"]["competitions"]] == [3, 3]
    assert report["disclosure"]["models"].startswith("openai at 127.0.0.1:")
    assert (report["disclosure"]["gpu_hour_usd"], total["gpu_usd"]) == (2.5, 0.0)
    cells = next(csv.DictReader(io.StringIO((session.path / "r.csv").read_text())))
    assert (cells["input_tokens"], cells["model_calls"], cells["usd_source"]) == (
        "300",
        "3",
        "gateway",
    )
    junit = (session.path / "junit.xml").read_text()
    assert '<property name="mle_output_tokens" value="60"' in junit
    suite = junit.partition("<testcase")[0]  # of the whole session
    for name, value in {"tokens": "720", "cached_tokens[demo]": "240"}.items():
        assert f'<property name="mle_{name}" value="{value}"' in suite
    assert '<property name="mle_usd" value="0.0015' in suite
    for name in ("r.html", "r.md"):
        text = (session.path / name).read_text()
        assert "$0.0016" in text, name
        assert "720 tokens" in text, name
    written = [path.read_bytes() for path in session.path.rglob("*") if path.is_file()]
    assert not [text for text in written if KEY.encode() in text]
    assert KEY not in result.stdout.str() + result.stderr.str()


def test_spending_is_shown_while_an_agent_runs(session: Session, declare: Declared) -> None:
    option = declare(code=COUNTING + textwrap.dedent(WAITING))
    terminal = Terminal(session.path, option, DIGITS, "--mle-run=r", columns=160)
    terminal.until(lambda: "$0.00079" in terminal.text)  # 3 calls, and the agent goes on
    assert "1 running, 0 of 1 over" in terminal.text
    terminal.release("demo-digits")
    assert terminal.finish() == 0


def test_lines_of_a_log_have_what_was_spent(session: Session, declare: Declared) -> None:
    result = session.alone(declare(), DIGITS)
    result.stdout.re_match_lines([r"1/1  demo-digits seed0  .*  in .*  \$0\.00079"])


def test_a_budget_of_the_command_line_wins_and_the_attempt_goes_on(
    session: Session, declare: Declared
) -> None:
    agent = declare(code=SPENDER, budget="tokens = 5_000\ncalls = 900")
    result = session.run(agent, DIGITS, "--mle-budget=1ktok", "--mle-transcripts=on", "--mle-run=r")
    result.stdout.fnmatch_lines(["budget: 1ktok, 900calls", "*1 attempt out*"])
    folder, record = only_record(session)
    assert "its 1000 tokens are used up" in (folder / "run.log").read_text()
    assert (folder / "submission.csv").read_text() == "id,label,target\n1,9,9\n"
    assert record["phase"] == "graded"
    spent = record["model_use"]["metered"]
    assert (spent["calls"], spent["exhausted"]) == (9, ["tokens"])
    assert record["conditions"]["budget"] == "1ktok, 900calls"
    assert record["identity"]["budget"] == "1ktok, 900calls"
    assert (folder / "transcripts.jsonl.gz").stat().st_size > 0
    plan = json.loads((session.path / "mle-runs/r/run.json").read_text())
    assert (plan["budget"], plan["transcripts"]) == ({"tokens": 1000}, True)

    again = session.run(agent, "--mle-run=r")  # with the budget of its plan
    again.stdout.fnmatch_lines(["budget: 1ktok, 900calls", "resumes: 1 of 1 done already"])
    other = session.run(agent, "--mle-run=r", "--mle-budget=2ktok")
    assert other.ret == pytest.ExitCode.USAGE_ERROR
    other.stderr.fnmatch_lines(["*(budget was 1ktok, 900calls, is 2ktok, 900calls)*"])


@pytest.mark.parametrize(
    ("bar", "settings", "sentence"),
    [
        ("1usd", {}, None),
        (
            "0.0005usd",
            {},
            "missed: the models cost $0.00079, over the bar of $0.00050 "
            "(--mle-fail-over=0.0005usd)",
        ),
        (
            "1usd",
            {"prices": False},
            "missed: what the models cost cannot be judged by the bar of $1.00: $0.00 are known, "
            "and there are 1 attempt with calls of unknown cost (--mle-fail-over=1usd)",
        ),
        (
            "1usd",
            {"model": "no-usage"},
            "missed: what the models cost cannot be judged by the bar of $1.00: $0.00 are known, "
            "and there are 1 attempt with calls of unknown cost (--mle-fail-over=1usd)",
        ),
    ],
)
def test_a_bar_for_dollars_is_missed_above_it_and_where_nobody_knows(
    session: Session, declare: Declared, bar: str, settings: dict[str, Any], sentence: str | None
) -> None:
    result = session.run(declare(**settings), DIGITS, f"--mle-fail-over={bar}")
    assert result.ret == (0 if sentence is None else pytest.ExitCode.TESTS_FAILED)
    lines = result.stdout.str().splitlines()
    assert [line for line in lines if line.startswith("missed:")] == [sentence][: bool(sentence)]


def test_an_agent_without_figures_misses_a_bar_for_dollars(session: Session) -> None:
    result = session.run("--mle-agent=dummy", DIGITS, "--mle-fail-over=1usd")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["missed: *there are 1 attempt without figures*"])
    result.stdout.no_fnmatch_line("models:*")


def test_workers_share_the_dollars_of_the_run(session: Session, declare: Declared) -> None:
    agent = declare(calls=20, budget=f"session_usd = {CALL_USD * 9.5}")
    result = session.run(agent, *TWO, "--mle-seeds=2", "-n2", "--mle-report=r.json")
    assert result.ret == 0, result.stdout.str()
    report = session.report("r.json")
    uses = [found["model_use"]["metered"] for found in report["results"]]
    assert sum(use["calls"] for use in uses) == 10  # the last one goes beyond, and no other
    assert {tuple(use["exhausted"]) for use in uses} == {("session_usd",)}


def test_what_the_agent_says_itself_is_compared_with_what_was_counted(
    session: Session, declare: Declared
) -> None:
    agent = declare(usage='{"input_tokens": 7, "output_tokens": 60, "steps": 3}')
    session.run(agent, DIGITS, "--mle-report=r.md").assert_outcomes(passed=1)
    use = only_record(session)[1]["model_use"]
    assert (use["source"], use["input_tokens"], use["reported"]["steps"]) == ("gateway", 300, 3)
    sentence = "the agent reports 7 input tokens where the gateway counted 300"
    assert use["notes"] == [sentence]
    assert sentence in (session.path / "r.md").read_text()


def test_an_agent_without_a_gateway_counts_for_itself(session: Session) -> None:
    usage = {"input_tokens": 1_000_000, "output_tokens": 500_000, "usd": 2.5}
    program = COUNTING.replace('os.environ["CALLS"]', "0")
    program = f"import os\nos.environ['USAGE'] = '''{json.dumps(usage)}'''\n" + program
    command = session.agent("own", program)
    result = session.run(f"--mle-agent={command}", DIGITS, "--mle-fail-over=2usd")
    result.stdout.fnmatch_lines(
        [
            "models: 1.5 M tokens, $2.50, $2.50 per valid submission (1 attempt by the",
            "  agent's own count)",
            "missed: the models cost $2.50, over the bar of $2.00 *",
        ]
    )


def test_figures_of_an_agents_own_that_are_nonsense_are_said_and_not_used(session: Session) -> None:
    program = "import os\nos.environ['USAGE'] = '{\"usd\": -1}'\n" + COUNTING.replace(
        'os.environ["CALLS"]', "0"
    )
    command = session.agent("own", program)
    session.run(f"--mle-agent={command}", DIGITS).assert_outcomes(passed=1)
    use = only_record(session)[1]["model_use"]
    assert (use["source"], use["usd"]) == (None, None)
    assert use["notes"] == ["usage.json: usd must be a number of dollars from 0 to 1000000000"]


FLAKY = """
    import json
    import shutil
    import socket
    import urllib.error
    import urllib.request

    from pytest_mlebench.errors import SandboxError
    from pytest_mlebench.sandbox import Ending

    class Flaky:
        name = "flaky"
        runs = 0

        def preflight(self, agent, limits, network):
            return ()

        def run(self, job):
            (gateway,) = job.services
            listener = socket.create_server(("127.0.0.1", 0))
            gateway.serve(listener)
            found = gateway.environment("http://127.0.0.1:%s" % listener.getsockname()[1])
            key = {"Authorization": "Bearer " + found["OPENAI_API_KEY"]}
            url = found["OPENAI_BASE_URL"] + "/chat/completions"
            for _ in range(3):
                request = urllib.request.Request(url, b'{"model": "gpt-5"}', key)
                try:
                    urllib.request.urlopen(request).read()
                except urllib.error.HTTPError as refusal:
                    assert refusal.code == 429
            Flaky.runs += 1
            if Flaky.runs == 1:
                raise SandboxError("the engine is gone")
            shutil.copy(job.data / "sample_submission.csv", job.submission)
            return Ending("exited", 0, 1.0)

    def pytest_mle_sandbox(name):
        return Flaky()
"""


def test_a_try_that_the_benchmark_spoils_has_a_budget_of_its_own_and_is_not_the_agents_cost(
    session: Session, declare: Declared
) -> None:
    session.pytester.makeconftest(FLAKY)
    arguments = (DIGITS, "--mle-budget=2calls", "--mle-report=r.json", "--mle-fail-over=0.001usd")
    result = session.run(declare(), *arguments)
    result.assert_outcomes(passed=1)
    (found,) = session.report("r.json")["results"]
    assert found["model_use"]["metered"]["calls"] == 2  # once more, after two of the first try
    assert found["model_use"]["usd"] == pytest.approx(2 * CALL_USD)
    assert found["lost_usd"] == pytest.approx(2 * CALL_USD)
    result.stdout.fnmatch_lines(
        [
            "models: 240 tokens, $0.00053, $0.00053 per valid submission (1 attempt out of",
            "  budget, $0.00053 more in discarded tries)",
            "missed: the models cost $0.0011, over the bar of $0.0010 *",
        ]
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--mle-budget=much"], "*--mle-budget must be 20usd, 5Mtok, 2000calls *given: much*"),
        (["--mle-fail-over=5Mtok"], "*--mle-fail-over must be dollars such as 250usd*"),
        (["--mle-gpu-hour-usd=x"], "*--mle-gpu-hour-usd must be a price in dollars, given: x*"),
        (["--mle-transcripts=yes"], "*--mle-transcripts must be one of on, off, given: yes*"),
        (["--mle-fail-over=5usd", "--mle-prepare=only"], "*--mle-fail-over=5usd has nothing to*"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_runs(
    session: Session, declare: Declared, arguments: list[str], message: str
) -> None:
    result = session.run(declare(), DIGITS, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])
    assert not list(session.path.glob("mle-runs/*/*"))


def test_dollars_of_a_whole_run_cannot_be_held_over_hosts_of_tx(
    session: Session, declare: Declared
) -> None:
    elsewhere = ("--dist=load", "--tx=2*popen", "--tx=ssh=elsewhere.invalid")
    result = session.run(declare(budget="session_usd = 5"), DIGITS, *elsewhere)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*session_usd of agent 'counting' bounds *or run on one host*"])


def test_a_key_that_is_not_exported_is_said_before_anything_runs(
    session: Session, declare: Declared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE)
    result = session.run(declare(), DIGITS)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*models.openai has key = '{REFERENCE}'*{VARIABLE}*"])


def test_a_gateway_that_is_not_installed_is_said_before_anything_runs(
    session: Session, declare: Declared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    result = session.run(declare(), DIGITS)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*need the package genai-prices*: pip install genai-prices"])


def test_dollars_of_models_without_a_price_cannot_be_bounded(
    session: Session, declare: Declared
) -> None:
    result = session.run(declare(prices=False), DIGITS, "--mle-budget=1usd")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*nobody knows the prices of models.openai (http://127.0.0.1:*or bound tokens or calls*"]
    )


def test_an_agent_made_in_python_is_metered_too(session: Session, server: ModelServer) -> None:
    session.agent("counting", COUNTING)
    session.pytester.makeconftest(
        f"""
        import sys
        import pytest
        from pytest_mlebench import Agent
        from pytest_mlebench.upstream import Upstream

        @pytest.fixture
        def mle_agent():
            upstream = Upstream("openai", "{server.url}/v1", key="{REFERENCE}")
            env = {{"CALLS": "4", "MODEL": "gpt-5"}}
            command = (sys.executable, "{session.path / "counting.py"}")
            return Agent("made", command=command, env=env, models=(upstream,))

        def pytest_mle_after_run(run, extra):
            extra["calls"] = run.record.model_use.calls
            extra["word"] = "mentioned-by-a-hook"
        """
    )
    result = session.run(
        "--mle-agent=made", DIGITS, "--mle-budget=3calls", *REPORTS, "--junitxml=junit.xml"
    )
    result.assert_outcomes(passed=1)
    for name in ("r.html", "r.md", "r.csv"):
        assert "mentioned-by-a-hook" in (session.path / name).read_text(), name
    assert (
        'name="mle_extra_word" value="mentioned-by-a-hook"'
        in (session.path / "junit.xml").read_text()
    )
    (found,) = session.report("r.json")["results"]
    assert found["model_use"]["metered"]["exhausted"] == ["calls"]
    assert found["extra"] == {"calls": 3, "word": "mentioned-by-a-hook"}


def test_a_key_that_the_agent_gets_itself_is_noted(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-exported")
    (session.path / "agent.toml").write_text(
        'name = "own"\ncommand = "true"\n[env]\nOPENAI_API_KEY = "${OPENAI_API_KEY}"\n'
    )
    result = session.run("--mle-agent=agent.toml", DIGITS)
    result.stdout.fnmatch_lines(
        [
            "agent 'own' gets OPENAI_API_KEY itself, so that nobody counts or bounds what it "
            "spends: *models.NAME* keeps the key outside"
        ]
    )


def test_a_budget_needs_models(session: Session) -> None:
    result = session.run("--mle-agent=dummy", DIGITS, "--mle-budget=1usd")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--mle-budget bounds what agent 'dummy' spends on models, and*"])
