"""What ``--mle-agent`` may say, and what is said when it is wrong."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pytest_mlebench.agent import Agent
from pytest_mlebench.agents.find import find_agent, known_agents
from pytest_mlebench.errors import ConfigError, UnknownName


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    monkeypatch.chdir(root)
    return root


def add_toml(folder: Path, text: str = 'command = "python main.py"') -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "agent.toml").write_text(text)
    return folder / "agent.toml"


def add_distribution(folder: Path, value: str, module: str, *, name: str = "plugged") -> None:
    info = folder / "plugged-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[pytest_mlebench.agents]\n{name} = {value}\n")
    (folder / "plugged_module.py").write_text(module)


def message(name: str, root: Path, *registered: Agent) -> str:
    with pytest.raises(ConfigError) as error:
        find_agent(name, rootdir=root, registered=registered)
    return str(error.value).replace(str(root), "ROOT")


def test_the_hooks_answer_counts_whatever_it_calls_itself(root: Path) -> None:
    mine = Agent(name="mine-2", command=("true",))
    assert find_agent("mine", rootdir=root, registered=[mine]) is mine


@pytest.mark.parametrize("name", ["{root}/x", "./x", "x", "x/agent.toml", "../project/x"])
def test_a_path_is_a_folder_or_its_file(root: Path, name: str) -> None:
    add_toml(root / "x")
    agent = find_agent(name.format(root=root), rootdir=root)
    assert (agent.name, agent.folder) == ("x", root / "x")


def test_a_relative_path_also_counts_from_the_rootdir(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_toml(root / "x")
    (root / "sub").mkdir()
    monkeypatch.chdir(root / "sub")
    assert find_agent("./x", rootdir=root).folder == root / "x"


def test_a_folder_below_agents_is_found_by_its_name(root: Path) -> None:
    add_toml(root / "agents" / "x", 'name = "y"\ncommand = "true"')
    assert find_agent("x", rootdir=root).name == "y"


def test_inside_agents_a_name_and_a_path_are_the_same_place(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_toml(root / "agents" / "x")
    monkeypatch.chdir(root / "agents")
    assert find_agent("x", rootdir=root).name == "x"


def test_somebody_elses_config_yaml_defines_nothing(root: Path) -> None:
    (root / "agents" / "x").mkdir(parents=True)
    (root / "agents" / "x" / "config.yaml").write_text("model: big\n")
    (root / "config.yaml").write_text("[broken")
    (root / "pyproject.toml").write_text('[tool.mlebench.agents.x]\ncommand = "true"\n')
    assert find_agent("x", rootdir=root).command == ("true",)
    assert message("z", root).startswith("unknown agent 'z' (known: baseline, dummy, x); make one")


@pytest.mark.parametrize("name", ["dummy", "baseline"])
def test_the_built_in_agents_need_no_image(root: Path, name: str) -> None:
    agent = find_agent(name, rootdir=root)
    assert agent.command == (sys.executable, str(agent.folder))
    assert (agent.folder / "__main__.py").is_file() if agent.folder else False
    assert (agent.image, agent.build) == (None, None)


@pytest.mark.parametrize(
    ("value", "module"),
    [
        (
            "plugged_module:agent",
            "from pytest_mlebench import Agent\nagent = Agent(name='plugged', command=('true',))",
        ),
        (
            "plugged_module:make",
            "from pytest_mlebench import Agent\n"
            "def make():\n    return Agent(name='plugged', command=('true',))",
        ),
        ("plugged_module:path", "path = __file__.replace('plugged_module.py', 'agent.toml')"),
    ],
)
def test_an_entry_point_gives_an_agent(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, module: str
) -> None:
    add_distribution(tmp_path / "site", value, module)
    add_toml(tmp_path / "site", 'name = "plugged"\ncommand = "true"')
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.delitem(sys.modules, "plugged_module", raising=False)
    agent = find_agent("plugged", rootdir=root)
    assert (agent.name, agent.command) == ("plugged", ("true",))


@pytest.mark.parametrize(
    ("module", "problem"),
    [
        ("1 / 0", "failed: ZeroDivisionError: division by zero"),
        ("agent = 3", "must give an Agent or the path of an agent.toml, given: 3"),
    ],
)
def test_a_broken_entry_point_is_named(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, problem: str
) -> None:
    add_distribution(tmp_path / "site", "plugged_module:agent", module)
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.delitem(sys.modules, "plugged_module", raising=False)
    where = "the entry point plugged = plugged_module:agent of plugged"
    assert message("plugged", root) == f"{where} {problem}"


def test_a_command_line_is_called_as_its_script(root: Path) -> None:
    (root / "my_agent.py").touch()
    (root / "fast.cfg").touch()
    agent = find_agent(f"{sys.executable} my_agent.py --config fast.cfg -v", rootdir=root)
    assert agent.name == "my_agent"
    assert agent.command == (
        sys.executable,
        str(root / "my_agent.py"),
        "--config",
        str(root / "fast.cfg"),
        "-v",
    )


def test_a_command_line_is_called_as_its_module_or_program(root: Path) -> None:
    assert find_agent("env python -m my_agent", rootdir=root).name == "my_agent"
    assert find_agent("env FAST=1", rootdir=root).name == "env"


def test_an_executable_is_an_agent(root: Path) -> None:
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    agent = find_agent("./run.sh", rootdir=root)
    assert (agent.name, agent.command) == ("run", (str(root / "run.sh"),))


def test_a_long_command_line_is_not_taken_for_a_path(root: Path) -> None:
    agent = find_agent("env " + "x" * 5000, rootdir=root)
    assert agent.command == ("env", "x" * 5000)


def test_an_unknown_name_suggests_known_ones(root: Path) -> None:
    with pytest.raises(UnknownName) as error:
        find_agent("basline", rootdir=root)
    assert str(error.value) == "unknown agent 'basline', did you mean 'baseline'?"


def test_all_names_are_known(root: Path) -> None:
    add_toml(root / "agents" / "x")
    (root / "pyproject.toml").write_text("[tool.mlebench.agents.y]\n[tool.mlebench.agents.z]\n")
    assert known_agents(root) == ("y", "z", "x", "dummy", "baseline")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("./x", "--mle-agent names a path that does not exist: ./x"),
        ("no/agent.toml", "--mle-agent names a path that does not exist: no/agent.toml"),
        ("./empty", "--mle-agent names a folder without agent.toml or config.yaml: ROOT/empty"),
        (
            "empty",
            "unknown agent 'empty' (known: baseline, dummy); make one with pytest-mlebench init, "
            "or give --mle-agent a folder with an agent.toml or a command such as "
            "'python agent.py'",
        ),
        (
            "plain.py",
            "--mle-agent names a file that is not executable: ROOT/plain.py; "
            "give the whole command, such as --mle-agent='python plain.py'",
        ),
        (
            "no-such-program x",
            "--mle-agent is no known agent, and no program is called 'no-such-program'",
        ),
        ("echo 'x", "--mle-agent cannot be split into words (No closing quotation): echo 'x"),
        ("", "--mle-agent is empty: give a name, a path or a command"),
    ],
)
def test_a_wrong_value_shows_the_way_out(root: Path, name: str, problem: str) -> None:
    (root / "empty").mkdir()
    (root / "plain.py").touch()
    assert message(name, root) == problem


def test_a_name_that_is_defined_twice_names_both_places(root: Path) -> None:
    add_toml(root / "agents" / "x")
    (root / "pyproject.toml").write_text('[tool.mlebench.agents.x]\ncommand = "true"\n')
    assert message("x", root) == (
        "several agents are called 'x': ROOT/pyproject.toml: tool: mlebench: agents: x and "
        "ROOT/agents/x/agent.toml; rename all but one, or give --mle-agent a path"
    )
    assert find_agent("./agents/x", rootdir=root).name == "x"


def test_a_built_in_name_is_not_silently_replaced(root: Path) -> None:
    mine = Agent(name="dummy", command=("true",))
    assert message("dummy", root, mine) == (
        "several agents are called 'dummy': the hook's answer 1 and the built-in agents; "
        "rename all but one, or give --mle-agent a path"
    )
