"""A gateway between real clients and a local upstream, without a sandbox around it."""

from __future__ import annotations

import contextlib
import json
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anthropic
import openai
from model_server import ModelServer
from sandbox_job import wait_until

from pytest_mlebench.agent import Agent
from pytest_mlebench.budget import Budget
from pytest_mlebench.gateway.calls import Call, read_calls
from pytest_mlebench.gateway.gateway import Gateway
from pytest_mlebench.gateway.run_account import RunAccount
from pytest_mlebench.gateway.spending import Spending
from pytest_mlebench.upstream import Price, Upstream

# What clients raise for a connection that breaks, by their version and by how far an answer came.
BROKEN = (
    openai.APIConnectionError,
    anthropic.APIConnectionError,
    *(sys.modules[name].TransportError for name in ("httpx", "httpx2") if name in sys.modules),
)

VARIABLE = "MLEBENCH_TESTS_REAL_KEY"
REFERENCE = f"${{{VARIABLE}}}"
HELLO: Any = [{"role": "user", "content": "hello"}]
PRICES = {"gpt*": Price(input=1, output=10, cached=0.1), "claude*": Price(input=3, output=15)}
CALL_USD = 0.000264  # 60 fresh, 40 cached and 20 put out, by the first of these prices


def agent_of(server: ModelServer, *, budget: Budget | None = None, **more: Any) -> Agent:
    """Return an agent whose models are those of a local server, in all three protocols."""
    settings = {"key": REFERENCE, "prices": PRICES} | more
    models = (
        Upstream("openai", f"{server.url}/v1", **settings),
        Upstream("anthropic", server.url, protocol="anthropic", **settings),
        Upstream("google", server.url, protocol="gemini", **settings),
    )
    return Agent("tester", command=("true",), models=models, budget=budget or Budget())


@dataclass
class GatewayAttempt:
    """A gateway that serves, and clients of it."""

    server: ModelServer
    gateway: Gateway
    folder: Path
    port: int
    variables: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.variables = self.gateway.environment(self.address)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def key(self) -> str:
        return self.variables["OPENAI_API_KEY"]

    def openai(self, **settings: Any) -> openai.OpenAI:
        """Return OpenAI's own client, which tries once."""
        url = self.variables["OPENAI_BASE_URL"]
        return openai.OpenAI(base_url=url, api_key=self.key, **({"max_retries": 0} | settings))

    def anthropic(self, **settings: Any) -> anthropic.Anthropic:
        """Return Anthropic's own client, which tries once."""
        url = self.variables["ANTHROPIC_BASE_URL"]
        options = {"max_retries": 0} | settings
        return anthropic.Anthropic(base_url=url, api_key=self.key, **options)

    def ask(self, model: str = "gpt-5", **more: Any) -> Any:
        """Make one call of OpenAI's chat completions."""
        with self.openai() as client:
            return client.chat.completions.create(model=model, messages=HELLO, **more)

    def stream(self, model: str = "gpt-5", **more: Any) -> list[Any]:
        """Make one streamed call and return its chunks."""
        with self.openai() as client:
            return list(
                client.chat.completions.create(model=model, messages=HELLO, stream=True, **more)
            )

    def raw(self, text: bytes) -> bytes:
        """Say something to the gateway as no client would, and return all that it answers."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            connection.sendall(text)
            answer = b""
            with contextlib.suppress(ConnectionResetError):
                while piece := connection.recv(65536):
                    answer += piece
        return answer

    def request(
        self, target: str, body: bytes = b"{}", *headers: str, method: str = "POST"
    ) -> bytes:
        """Send one request with the attempt's key, written by hand, and return the answer."""
        lines = [
            f"{method} {target} HTTP/1.1",
            "Host: x",
            f"Authorization: Bearer {self.key}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
            "Connection: close",
            *headers,
        ]
        return self.raw("\r\n".join([*lines, "", ""]).encode("latin-1") + body)

    def calls(self, number: int) -> list[Call]:
        """Return what is written down, as soon as it is so many calls."""
        wait_until(lambda: len(list(read_calls(self.folder))) >= number, 60)
        return list(read_calls(self.folder))

    def summary(self, calls: int) -> Spending:
        """Return what has been spent, as soon as so many calls are booked.

        A client takes a stream for ended at its last event, which is a moment before its end.
        """
        wait_until(lambda: self.gateway.summary().calls >= calls, 60)
        return self.gateway.summary()

    def everything_written(self) -> bytes:
        """Return all files of the attempt, one behind the other."""
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        return b"\n".join(path.read_bytes() for path in files)


@contextmanager
def attempt(
    folder: Path,
    server: ModelServer,
    *,
    budget: Budget | None = None,
    run: RunAccount | None = None,
    transcripts: bool = False,
    closing_seconds: float = 30,
    **settings: Any,
) -> Iterator[GatewayAttempt]:
    """Yield a gateway at a port of this machine; the environment must have the real key."""
    agent = agent_of(server, budget=budget, **settings)
    gateway = Gateway(
        agent,
        folder,
        budget=agent.budget,
        run=run,
        transcripts=transcripts,
        closing_seconds=closing_seconds,
    )
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    with gateway:
        gateway.serve(listener)
        yield GatewayAttempt(server, gateway, folder, listener.getsockname()[1])


def status_of(answer: bytes) -> int:
    """Return the status of an answer."""
    return int(answer.split(b" ", 2)[1])


def json_of(answer: bytes) -> dict[str, Any]:
    """Return the body of an answer."""
    content: dict[str, Any] = json.loads(answer.partition(b"\r\n\r\n")[2])
    return content
