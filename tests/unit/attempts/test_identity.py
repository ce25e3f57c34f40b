"""What makes two attempts the same, and what does not."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from pytest_mlebench.agent import Agent, AgentContext
from pytest_mlebench.attempts.identity import Identity, identify_agent


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    folder = tmp_path / "agent"
    (folder / "src").mkdir(parents=True)
    (folder / "main.py").write_text("print(1)\n")
    (folder / "src" / "model.py").write_text("depth = 3\n")
    command = (sys.executable, str(folder / "main.py"))
    return Agent("mine", version="1", command=command, folder=folder, env={"KEY": "${SECRET}"})


def differs(one: Agent, other: Agent) -> list[str]:
    first, second = identify_agent(one), identify_agent(other)
    names = [
        k for k in {**first.facts, **second.facts} if first.facts.get(k) != second.facts.get(k)
    ]
    assert (first.fingerprint == second.fingerprint) == (not names)
    return sorted(names)


def test_the_same_agent_in_another_place_is_the_same(agent: Agent, tmp_path: Path) -> None:
    assert agent.folder is not None
    moved = agent.folder.rename(tmp_path / "elsewhere")
    before = replace(agent, folder=moved, command=(sys.executable, str(moved / "main.py")))
    first = identify_agent(before)
    moved.rename(agent.folder)
    assert identify_agent(agent).facts == first.facts


def test_caches_runs_and_the_order_of_writing_do_not_matter(agent: Agent, tmp_path: Path) -> None:
    assert agent.folder is not None
    before = identify_agent(agent, hidden=[agent.folder / "mle-runs"])
    for name in ("__pycache__", ".git", "mle-runs"):
        (agent.folder / name).mkdir()
        (agent.folder / name / "file").write_text("changes all the time")
    (agent.folder / "main.py").write_text("print(1)\n")
    assert identify_agent(agent, hidden=[agent.folder / "mle-runs"]).facts == before.facts


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "src" / "model.py").write_text("depth = 4\n"),
        lambda folder: (folder / "src" / "more.py").write_text(""),
        lambda folder: (folder / "src" / "model.py").rename(folder / "src" / "other.py"),
        lambda folder: (folder / "main.py").chmod(0o755),
        lambda folder: (folder / "link").symlink_to("main.py"),
    ],
    ids=["content", "new file", "name", "mode", "link"],
)
def test_every_change_of_its_files_makes_another_agent(
    agent: Agent, change: Callable[[Path], object]
) -> None:
    before = identify_agent(agent)
    assert agent.folder is not None
    change(agent.folder)
    changes = before.differences(identify_agent(agent))
    assert len(changes) == 1
    assert changes[0].startswith("agent files was ")


def test_packages_of_a_virtual_environment_count_by_name_and_version(agent: Agent) -> None:
    assert agent.folder is not None
    packages = agent.folder / ".venv/lib/python3.11/site-packages"
    (packages / "numpy-2.0.dist-info").mkdir(parents=True)
    (agent.folder / ".venv/pyvenv.cfg").write_text("")
    before = identify_agent(agent)
    (packages / "compiled.pyc").write_text("changes all the time")
    assert identify_agent(agent).facts == before.facts
    (packages / "numpy-2.0.dist-info").rename(packages / "numpy-2.1.dist-info")
    assert identify_agent(agent).facts != before.facts


def test_what_the_definition_says_counts(agent: Agent) -> None:
    assert differs(agent, replace(agent, version="2")) == ["agent.version"]
    assert differs(agent, replace(agent, command=("./main.py",))) == ["agent.command"]
    assert differs(agent, replace(agent, env={"KEY": "fixed"})) == ["agent.env"]
    assert differs(agent, replace(agent, env={"OTHER": "${SECRET}"})) == ["agent.env"]
    assert differs(agent, replace(agent, privileged=True)) == ["agent.options"]
    first, second = (identify_agent(agent, image=f"sha256:{n}") for n in (1, 2))
    assert first.differences(second) == ["agent image was sha256:1, is sha256:2"]


def test_values_of_secrets_take_no_part(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "one-of-a-kind")
    before = identify_agent(agent)
    monkeypatch.setenv("SECRET", "another-one")
    assert identify_agent(agent).facts == before.facts
    assert "one-of-a-kind" not in str(before.facts)


def test_a_script_outside_the_folder_counts_by_its_content(tmp_path: Path) -> None:
    script = tmp_path / "solve.py"
    script.write_text("print(1)")
    agent = Agent("mine", command=("python", str(script)))
    before = identify_agent(agent)
    script.write_text("print(2)")
    assert identify_agent(agent).facts != before.facts


def test_modules_beside_a_script_count_and_tests_do_not(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "__init__.py").write_text("depth = 3")
    (tmp_path / "helper.py").write_text("import lib")
    (tmp_path / "solve.py").write_text("import helper")
    options = tmp_path / "options.json"
    options.write_text("{}")
    agent = Agent("mine", command=("python", str(tmp_path / "solve.py"), f"--options={options}"))
    known = [identify_agent(agent).fingerprint]
    for name in ("helper.py", "lib/__init__.py", "options.json"):
        (tmp_path / name).write_text("another one")
        known.append(identify_agent(agent).fingerprint)
    assert len(set(known)) == 4
    for name in ("conftest.py", "test_solve.py", "notes.txt"):
        (tmp_path / name).write_text("no part of the agent")
    assert identify_agent(agent).fingerprint == known[-1]


def test_a_function_counts_with_what_its_module_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_pack").mkdir()
    files = {
        "own_agent.py": "from own_pack import tree\ndef solve(context): import json, own_late",
        "own_late.py": "import no_such_module_at_all",
        "own_pack/__init__.py": "",
        "own_pack/tree.py": "from .depth import DEPTH",
        "own_pack/depth.py": "DEPTH = 3",
        "own_other.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    function = importlib.import_module("own_agent").solve
    before = function_fact(function)
    (tmp_path / "own_other.py").write_text("not imported")
    assert function_fact(function) == before
    for name in ("own_late.py", "own_pack/depth.py"):
        (tmp_path / name).write_text("DEPTH = 4")
        after = function_fact(function)
        assert after != before
        before = after


def solve(context: AgentContext, depth: int = 3) -> None:
    """An agent in Python."""


def of_depth(depth: object) -> Callable[[AgentContext], object]:
    def function(context: AgentContext) -> None:
        solve(context, depth)  # type: ignore[arg-type]  # whatever it is

    return function


def function_fact(function: Callable[..., object]) -> str:
    return identify_agent(Agent("mine", function=function)).facts["agent.function"]


def test_a_function_counts_with_the_values_it_holds() -> None:
    assert function_fact(solve) == function_fact(solve)
    assert function_fact(of_depth(3)) == function_fact(of_depth(3))
    assert function_fact(of_depth(3)) != function_fact(of_depth(4))
    assert function_fact(of_depth({"a": [1, (2, {3})]})) == function_fact(
        of_depth({"a": [1, (2, {3})]})
    )
    assert function_fact(partial(solve, depth=3)) != function_fact(partial(solve, depth=4))
    assert function_fact(of_depth(solve)) != function_fact(of_depth(of_depth(1)))


def test_a_function_that_holds_what_cannot_be_compared_is_like_no_other() -> None:
    assert function_fact(of_depth(object())) != function_fact(of_depth(object()))


def test_a_function_may_refer_to_itself() -> None:
    def again(context: AgentContext) -> object:
        return again

    assert function_fact(again) == function_fact(again)


def test_differences_are_phrases() -> None:
    one = Identity({"limits.time": "24h", "network": "none"})
    other = Identity({"limits.time": "1h", "agent.files": "c" * 64})
    assert one.differences(other) == [
        "limits time was 24h, is 1h",
        "network was none, is not known",
        "agent files was not known, is cccccccccccc",
    ]
