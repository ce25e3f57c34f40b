"""``[models.NAME]`` and ``[budget]`` are read strictly, and no real key can reach an agent."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_mlebench.agent import Agent
from pytest_mlebench.agents.agent_toml import read_agent
from pytest_mlebench.agents.find import find_agent
from pytest_mlebench.budget import Budget
from pytest_mlebench.errors import AgentFileError, ConfigError
from pytest_mlebench.upstream import Price, Upstream, Variables

OPENAI = """
[models.openai]
url = "https://api.openai.com/v1"
key = "${OPENAI_API_KEY}"
"""


def read(folder: Path, tables: str, first: str = 'command = "true"') -> Agent:
    file = folder / "agent.toml"
    file.write_text(f"{first}\n{tables}")
    return read_agent(file)


def problem(folder: Path, tables: str) -> str:
    with pytest.raises(AgentFileError) as error:
        read(folder, tables)
    message = str(error.value)
    assert not message.endswith(".")
    return message.replace(str(folder / "agent.toml"), "FILE")


def test_a_model_table_with_every_key(tmp_path: Path) -> None:
    agent = read(
        tmp_path,
        """
        [models.mine]
        url = "http://localhost:8000/v1/"
        protocol = "anthropic"
        key = "${MY_KEY}"
        allow = ["claude-*", "tiny"]
        timeout = "2m"
        variables = { url = ["MY_URL"], key = ["MY_TOKEN", "OTHER_TOKEN"] }
        [models.mine.prices."claude-*"]
        input = 3
        output = 15.0
        cached = 0.3
        cache_written = 3.75
        [budget]
        usd = 20.0
        tokens = 5_000_000
        calls = 2_000
        session_usd = 250
        """,
    )
    assert agent.models == (
        Upstream(
            name="mine",
            url="http://localhost:8000/v1",
            protocol="anthropic",
            key="${MY_KEY}",
            allow=("claude-*", "tiny"),
            variables=Variables(("MY_URL",), ("MY_TOKEN", "OTHER_TOKEN")),
            prices={"claude-*": Price(3, 15.0, 0.3, 3.75)},
            timeout_seconds=120,
        ),
    )
    assert agent.budget == Budget(usd=20.0, tokens=5_000_000, calls=2_000, session_usd=250)
    assert agent.model_keys({"MY_KEY": "sk-1"}) == {"mine": "sk-1"}


def test_the_smallest_table_speaks_as_openai_does_and_allows_every_model(tmp_path: Path) -> None:
    (upstream,) = read(tmp_path, OPENAI).models
    assert upstream.protocol == "openai"
    assert not upstream.is_restricted
    assert upstream.environment.url == ("OPENAI_BASE_URL", "OPENAI_API_BASE")
    assert upstream.environment.key == ("OPENAI_API_KEY",)


def test_a_project_may_have_the_same_tables(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        """
        [tool.mlebench.agents.mine]
        command = "true"
        [tool.mlebench.agents.mine.models.google]
        url = "https://generativelanguage.googleapis.com"
        protocol = "gemini"
        key = "${GEMINI_API_KEY}"
        [tool.mlebench.agents.mine.budget]
        calls = 10
        """
    )
    agent = find_agent("mine", rootdir=tmp_path)
    assert agent.models[0].environment.names == (
        *("GOOGLE_GEMINI_BASE_URL", "GEMINI_API_BASE"),
        *("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    )
    assert agent.budget == Budget(calls=10)


def test_a_key_stays_outside_and_is_masked_wherever_it_would_be_written(tmp_path: Path) -> None:
    agent = read(tmp_path, OPENAI)
    host = {"OPENAI_API_KEY": "sk-proj-0123456789abcdef"}
    assert agent.environment(host) == {}
    assert agent.secrets(host) == {"sk-proj-0123456789abcdef"}
    assert agent.secrets({"OPENAI_API_KEY": "EMPTY"}) == frozenset()


def test_a_key_that_is_not_exported_is_an_error(tmp_path: Path) -> None:
    agent = read(tmp_path, OPENAI)
    with pytest.raises(ConfigError) as error:
        agent.model_keys({})
    assert str(error.value) == (
        f"agent {tmp_path.name!r} needs the environment variable OPENAI_API_KEY "
        "(its models.openai has key = '${OPENAI_API_KEY}'): export OPENAI_API_KEY and try again"
    )


@pytest.mark.parametrize("value", ["", "  ", "sk-1\nX-Evil: 1", "sk 1", "schlüssel"])
def test_a_key_that_cannot_be_one_is_an_error(tmp_path: Path, value: str) -> None:
    agent = read(tmp_path, OPENAI)
    with pytest.raises(
        ConfigError, match=r"the key of models.openai .* is empty or has characters"
    ):
        agent.model_keys({"OPENAI_API_KEY": value})


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ("[models.a]\nkey = '${K}'", "FILE: models: a: url is missing"),
        (
            "[models.a]\nurl = 'api.openai.com'",
            "FILE: models: a: url must be https://HOST[:PORT][/PATH], given: 'api.openai.com'",
        ),
        (
            "[models.a]\nurl = 'https://h/v1?x=1'",
            "FILE: models: a: url must be https://HOST[:PORT][/PATH], given: 'https://h/v1?x=1'",
        ),
        (
            "[models.a]\nurl = 'https://h/../v1'",
            "FILE: models: a: url must be https://HOST[:PORT][/PATH], given: 'https://h/../v1'",
        ),
        (
            "[models.a]\nurl = 'https://h:99999'",
            "FILE: models: a: url is not understood, given: 'https://h:99999'",
        ),
        (
            "[models.a]\nurl = 'https://me:pw@h'",
            "FILE: models: a: url must not hold a password, the agent can read this file: use key",
        ),
        (
            "[models.a]\nurl = 'https://h'\nkey = 'sk-123'",
            "FILE: models: a: key must refer to a variable, as in ${OPENAI_API_KEY}: "
            "the agent can read this file",
        ),
        (
            "[models.a]\nurl = 'https://h'\nkey = '${A B}'",
            "FILE: models: a: key has a reference that is not ${NAME}, given: '${A B}'",
        ),
        (
            "[models.a]\nurl = 'https://h'\nprotocol = 'cohere'",
            "FILE: models: a: protocol must be one of openai, anthropic, gemini, given: 'cohere'",
        ),
        (
            "[models.a]\nurl = 'https://h'\nallow = []",
            "FILE: models: a: allow is empty, so that no model could be called: leave it out",
        ),
        (
            "[models.a]\nurl = 'https://h'\nprotocl = 'openai'",
            "FILE: models: a: protocl is not a known key, did you mean 'protocol'?",
        ),
        (
            "[models.a]\nurl = 'https://h'\ntimeout = 'soon'",
            "FILE: models: a: timeout must be a duration such as 24h, 90m or 30s, given: soon",
        ),
        (
            "[models.a]\nurl = 'https://h'\nvariables = { url = ['MY URL'] }",
            "FILE: models: a: variables: 'MY URL' is no name of an environment variable",
        ),
        (
            "[models.a]\nurl = 'https://h'\nvariables = { url = [] }",
            "FILE: models: a: variables: url is empty, so that the agent could not find the model",
        ),
        (
            "[models.a]\nurl = 'https://h'\n[models.a.prices.x]\ninput = -1\noutput = 1",
            "FILE: models: a: prices: x: input must be dollars per million tokens, given: -1",
        ),
        (
            "[models.'A/B']\nurl = 'https://h'",
            "FILE: models: A/B: the name of a model table must be lower-case letters, digits "
            "and _-, given: 'A/B'",
        ),
        ("models = 3", "FILE: models must be a table, given: 3"),
        (
            "[budget]\nusd = 20",
            "FILE: budget needs a [models.NAME]: only calls through it can be counted",
        ),
        (
            OPENAI + "[budget]\nusd = 0",
            "FILE: budget: usd must be a positive number of dollars, given: 0",
        ),
        (
            OPENAI + "[budget]\ntokens = 1.5",
            "FILE: budget: tokens must be a positive whole number, given: 1.5",
        ),
        (
            OPENAI + "[budget]\ncall = 3",
            "FILE: budget: call is not a known key, did you mean 'calls'?",
        ),
        (
            OPENAI + "[env]\nOPENAI_BASE_URL = 'https://api.openai.com/v1'",
            "FILE: env sets OPENAI_BASE_URL, and so does models.openai with the address or key of "
            "the gateway: remove one, or give the model other variables",
        ),
        (
            OPENAI + "[models.b]\nurl = 'https://h'",
            "FILE: models.openai sets OPENAI_BASE_URL, and so does models.b with the address or "
            "key of the gateway: remove one, or give the model other variables",
        ),
        (
            OPENAI + "[env]\nKEY = 'x${OPENAI_API_KEY}'",
            "FILE: env gives the agent OPENAI_API_KEY as KEY, which is the key of models.openai "
            "and stays outside the sandbox: remove it from env",
        ),
    ],
)
def test_what_is_wrong_is_said_with_file_and_key(tmp_path: Path, tables: str, message: str) -> None:
    assert problem(tmp_path, tables) == message
