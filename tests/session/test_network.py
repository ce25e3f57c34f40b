"""`--mle-network`: what an agent may reach."""

from __future__ import annotations

import socket

import pytest
from plugin_session import Session

CALLING = """
import socket
try:
    with socket.create_connection(("127.0.0.1", {port}), timeout=20) as connection:
        print("heard:", connection.recv(20).decode())
except OSError as error:
    print("refused:", error)
"""


def test_without_a_network_an_agent_reaches_nobody(session: Session) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        agent = session.agent("calling", CALLING.format(port=listening.getsockname()[1]))
        result = session.run(
            f"--mle-agent={agent}", "--mle-competition=demo-digits", "--mle-network=none"
        )
        result.assert_outcomes(failed=1)  # it hands nothing in
        result.stdout.fnmatch_lines(["*refused: *"])
        listening.setblocking(False)
        with pytest.raises(BlockingIOError):  # nobody has called
            listening.accept()


def test_a_policy_that_does_not_exist_is_refused_before_anything_runs(session: Session) -> None:
    result = session.run("--mle-agent=dummy", "--mle-network=closed")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*--mle-network*closed*"])
