"""Agents that are written for the reference implementation run as they are."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from sandbox_job import Place

from pytest_mlebench.agents.find import find_agent
from pytest_mlebench.agents.reference_config import read_agent
from pytest_mlebench.budget import Budget
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.sandbox import contract_environment

CONFIG = """
vars:
  steps: &steps 500

defaults: &defaults
  start: tree/start.sh
  dockerfile: tree/Dockerfile
  kwargs_type: omegaconf
  env_vars: &env_vars
    STEP_LIMIT: *steps

tree:
  <<: *defaults
  kwargs:
    agent.steps: *steps
    agent.model: some model
    copy_data: False
  env_vars:
    <<: *env_vars
    API_KEY: ${{ secrets.API_KEY }}

tree/dev:
  <<: *defaults
  kwargs_type: argparse
  kwargs:
    max-steps: 8
    api-key: ${{ secrets.API_KEY }}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "agents" / "tree"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(CONFIG)
    (folder / "start.sh").write_text('printf "%s\\n" "$@" STEP_LIMIT="$STEP_LIMIT"')
    (folder / "Dockerfile").touch()
    return tmp_path


def run(root: Path, name: str, **host: str) -> list[str]:
    agent = find_agent(name, rootdir=root)
    env = os.environ | agent.environment(host) | {"AGENT_DIR": str(agent.folder)}
    return subprocess.check_output(agent.command, env=env, text=True).splitlines()


def test_omegaconf_arguments_reach_the_start_script(root: Path) -> None:
    assert run(root, "tree", API_KEY="s3cr3t") == [
        "agent.steps=500",
        "agent.model=some model",
        "copy_data=False",
        "STEP_LIMIT=500",
    ]


def test_argparse_arguments_and_secrets_in_them_reach_the_start_script(root: Path) -> None:
    agent = find_agent("tree/dev", rootdir=root)
    assert run(root, "tree/dev", API_KEY="s3 cr3t") == [
        "--max-steps",
        "8",
        "--api-key",
        "s3 cr3t",
        "STEP_LIMIT=500",
    ]
    assert "s3 cr3t" in agent.secrets({"API_KEY": "s3 cr3t"})
    assert "API_KEY" in " ".join(agent.command)  # the variable, not its value


def test_secrets_become_references(root: Path) -> None:
    agent = find_agent("tree", rootdir=root)
    assert agent.env == {"STEP_LIMIT": "500", "API_KEY": "${API_KEY}"}
    with pytest.raises(ConfigError, match="needs the environment variable API_KEY"):
        agent.environment({})


def test_the_image_is_called_as_the_folder_and_built_from_it(root: Path) -> None:
    agent = find_agent("tree/dev", rootdir=root)
    assert (agent.name, agent.image) == ("tree/dev", "tree")
    assert agent.build == agent.folder == root / "agents" / "tree"


def test_an_image_of_ones_own_needs_no_dockerfile(root: Path) -> None:
    file = root / "agents" / "tree" / "config.yaml"
    file.write_text("tree:\n  start: tree/start.sh\n  image: registry.example/tree:2\n")
    agent = read_agent(file)
    assert (agent.image, agent.build) == ("registry.example/tree:2", None)


def test_a_variant_is_found_by_path_from_anywhere(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.chdir(elsewhere)
    assert find_agent(f"{root}/agents/tree", rootdir=elsewhere).name == "tree"
    assert find_agent(f"{root}/agents/tree/dev", rootdir=elsewhere).name == "tree/dev"
    assert find_agent(f"{root}/agents/tree/config.yaml", rootdir=elsewhere).name == "tree"


def test_an_unknown_variant_suggests_a_known_one(root: Path) -> None:
    with pytest.raises(ConfigError) as error:
        find_agent("tree/dew", rootdir=root)
    assert str(error.value) == "unknown agent 'tree/dew', did you mean 'tree/dev' or 'tree'?"


def test_the_only_agent_of_a_file_is_meant_by_its_folder(root: Path) -> None:
    file = root / "agents" / "tree" / "config.yaml"
    file.write_text("bush:\n  start: tree/start.sh\n  dockerfile: tree/Dockerfile\n")
    assert find_agent("tree", rootdir=root).name == "bush"
    assert find_agent("bush", rootdir=root).name == "bush"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a", "FILE: must map agent ids to tables, given: ['a']"),
        ("a: [", "FILE: not valid YAML: while parsing a flow node"),
        ("a: {start: x}\nb: {start: x}", "unknown agent in FILE: 'tree' (known: a, b)"),
        ("tree: {start: x}", "FILE: tree: start names a file that does not exist: AGENTS/x"),
        ("tree: {start: tree/start.sh}", "FILE: tree: dockerfile is missing"),
        (
            "tree: {start: tree/start.sh, dockerfile: tree/start.sh}",
            "FILE: tree: dockerfile must be called Dockerfile, given: AGENTS/tree/start.sh",
        ),
        (
            "tree: {start: tree/start.sh, image: x, kwargs: {a: 1}}",
            "FILE: tree: kwargs_type is missing: kwargs need argparse or omegaconf",
        ),
        (
            "tree: {start: tree/start.sh, image: x, kwargs_type: hydra}",
            "FILE: tree: kwargs_type must be argparse or omegaconf, given: 'hydra'",
        ),
        (
            "tree: {start: tree/start.sh, image: x, env_vars: {'A B': 1}}",
            "FILE: tree: env_vars: 'A B' is not a name of an environment variable",
        ),
    ],
)
def test_a_wrong_file_names_file_key_and_way_out(root: Path, text: str, message: str) -> None:
    file = root / "agents" / "tree" / "config.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as error:
        find_agent("tree", rootdir=root)
    said = str(error.value).replace(str(file), "FILE").replace(str(root / "agents"), "AGENTS")
    assert said.startswith(message)
    assert "\n" not in said


def test_models_may_be_added_and_their_keys_stay_outside(root: Path) -> None:
    file = root / "agents" / "tree" / "config.yaml"
    models = """
  models:
    openai:
      url: https://api.openai.com/v1
      key: ${{ secrets.OPENAI_API_KEY }}
  budget:
    usd: 20
"""
    file.write_text(CONFIG + models.lstrip("\n"))
    agent = read_agent(file, "tree/dev")
    assert agent.model_keys({"OPENAI_API_KEY": "sk-1"}) == {"openai": "sk-1"}
    assert agent.budget == Budget(usd=20)
    file.write_text(file.read_text() + "  env_vars:\n    KEY: ${{ secrets.OPENAI_API_KEY }}\n")
    with pytest.raises(ConfigError, match="stays outside the sandbox: remove it from env"):
        read_agent(file, "tree/dev")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("  budget: {usd: 20}", "budget needs a [models.NAME]"),
        ("  models: {a: 3}", "models: a must be a table, given: 3"),
        ("  models: {a: {url: 'https://h', key: 5}}", "models: a: key must refer to a variable"),
    ],
)
def test_broken_models_are_said(root: Path, more: str, message: str) -> None:
    file = root / "agents" / "tree" / "config.yaml"
    file.write_text(CONFIG + more)
    with pytest.raises(ConfigError) as error:
        read_agent(file, "tree/dev")
    assert message in str(error.value)


def test_null_is_the_same_as_absent(root: Path) -> None:
    file = root / "agents" / "tree" / "config.yaml"
    keys = "kwargs_type: null, kwargs: null, env_vars: null, privileged: null, dockerfile: null"
    file.write_text(f"tree: {{start: tree/start.sh, image: x, {keys}}}")
    agent = find_agent("tree", rootdir=root)
    assert (agent.image, agent.env, agent.privileged, agent.notes) == ("x", {}, False, ())


def test_a_key_of_a_fork_is_passed_over_with_a_note(root: Path) -> None:
    file = root / "agents" / "tree" / "config.yaml"
    file.write_text("tree: {start: tree/start.sh, image: x, env_var: {A: 1}, gpu_pool: [1, 2]}")
    assert find_agent("tree", rootdir=root).notes == (
        f"{file}: tree: env_var is passed over: not a known key, did you mean 'env_vars'?",
        f"{file}: tree: gpu_pool is passed over: not a known key (known: budget, dockerfile, "
        "env_vars, image, kwargs, kwargs_type, models, privileged, start)",
    )


def test_the_time_that_an_agent_plans_by_follows_the_time_limit(root: Path, tmp_path: Path) -> None:
    file = root / "agents" / "tree" / "config.yaml"
    file.write_text(
        "tree: {start: tree/start.sh, image: x, env_vars: {TIME_LIMIT_SECS: 86400}}\n"
        "own: {start: tree/start.sh, image: x, env_vars: {OTHER: 1}}\n"
    )
    job = Place(tmp_path / "place").job(time_seconds=7200)
    for name, expected in (("tree", "7200"), ("own", None)):
        with_agent = replace(job, agent=find_agent(name, rootdir=root))
        variables = contract_environment(with_agent, "/home", validate_url="", agent_dir="")
        assert variables.get("TIME_LIMIT_SECS") == expected
