"""A hostile agent looks for the real key in a session whose environment has it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest
from gateway_attempt import REFERENCE, VARIABLE
from model_agents import COUNTING, OWN_MEMORY, SEEKER
from model_server import KEY, ModelServer
from plugin_session import Session

from pytest_mlebench.sandbox.process import landlock

pytestmark = pytest.mark.skipif(
    not landlock.version(), reason="without Landlock the sandbox has no walls"
)

OTHER = "exported-and-none-of-the-agents-business"  # of the session's environment
HALVES = [KEY[:9], KEY[9:]]
PROGRAMS = [COUNTING, OWN_MEMORY, SEEKER]  # the last one puts the halves together

FUNCTION = f"""
    import sys
    import pytest
    from pytest_mlebench import Agent
    from pytest_mlebench.upstream import Upstream

    def seek(context):
        sys.argv = ["seeker", *{HALVES}]
        for program in PROGRAMS:
            exec(compile(program, "program", "exec"), {{}})
        print("other", {OTHER!r}.encode() in open("/proc/self/environ", "rb").read())

    @pytest.fixture
    def mle_agent():
        upstream = Upstream("openai", URL + "/v1", key="{REFERENCE}")
        env = {{"CALLS": "2", "MODEL": "gpt-5"}}
        return Agent("seeker", function=seek, env=env, models=(upstream,))
"""


def run_session(session: Session, server: ModelServer, kind: str) -> str:
    """Run a session whose own environment has the key; return what its agent printed."""
    agent = session.path / "agent"
    agent.mkdir()
    if kind == "function":
        head = f"PROGRAMS, URL = {PROGRAMS!r}, {server.url!r}\n"
        (session.path / "conftest.py").write_text(head + textwrap.dedent(FUNCTION))
    else:
        words = json.dumps([sys.executable, "all.py", *HALVES])
        (agent / "all.py").write_text("\n".join(PROGRAMS))
        (agent / "agent.toml").write_text(
            f'name = "seeker"\ncommand = {words}\n[env]\nCALLS = "2"\nMODEL = "gpt-5"\n'
            f'[models.openai]\nurl = "{server.url}/v1"\nkey = "{REFERENCE}"\n'
        )
    name = "seeker" if kind == "function" else "agent"
    options = (f"--mle-agent={name}", "--mle-competition=demo-digits", "--mle-run=r")
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options],
        cwd=session.path,
        env=os.environ | {VARIABLE: KEY, "SOMETHING": OTHER},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    log = session.path / "mle-runs/r/demo-digits/seed0/attempt1/run.log"
    assert log.exists(), result.stdout + result.stderr
    assert result.returncode == 0, result.stdout + log.read_text()
    return log.read_text()


@pytest.mark.parametrize("kind", ["command", "function"])
def test_the_real_key_is_nowhere_that_an_agent_can_look(session: Session, kind: str) -> None:
    with ModelServer() as server:
        log = run_session(session, server, kind)
    assert "statuses [200, 200]" in log  # the session's own copy of the key is whole
    assert "\nfound []\n" in log
    assert "own memory []\n" in log
    read = next(line for line in log.splitlines() if line.startswith("read "))
    assert int(read.split()[1]) > 100
    looked = next(line for line in log.splitlines() if line.startswith("looked at "))
    assert int(looked.split()[2]) > 5
    if kind == "function":
        assert "other False" in log
