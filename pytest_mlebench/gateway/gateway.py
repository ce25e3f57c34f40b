"""The gateway of one attempt: a reverse proxy in a thread of the session.

    with open_gateway(agent, job.folder, run_account=keeping.run_account) as gateway:
        ending = sandbox.run(replace(job, services=(gateway,)))
    gateway.summary()

The sandbox gives it listening sockets (``serve``) and the agent what leads there (``environment``):
addresses, and a key that is good for this attempt only. The real keys stay in this process.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from aiohttp import web

from pytest_mlebench.agent import Agent, check_models
from pytest_mlebench.budget import Budget
from pytest_mlebench.gateway.accounting import Accounting
from pytest_mlebench.gateway.ledger import SharedAccount
from pytest_mlebench.gateway.prices import load_table
from pytest_mlebench.gateway.proxy import Proxy
from pytest_mlebench.gateway.routes import prefix
from pytest_mlebench.gateway.spending import Spending

PORT = 5001  # where the agent has a loopback of its own; beside the format check's
MAX_CONNECTIONS = 512
CLOSING_SECONDS = 30.0  # for calls that are under way when the attempt ends

_START_SECONDS = 30.0
_SHUTDOWN_SECONDS = 0.1  # nothing is under way any more

T = TypeVar("T")


class Gateway:
    """Models for one attempt, until the block ends."""

    name = "gateway"
    port = PORT

    def __init__(
        self,
        agent: Agent,
        folder: Path,
        *,
        budget: Budget,
        run: SharedAccount | None = None,
        transcripts: bool = False,
        closing_seconds: float = CLOSING_SECONDS,
    ) -> None:
        self._upstreams = agent.models
        self._keys = agent.model_keys()
        self._key = f"sk-mle-{secrets.token_hex(24)}"  # some tools look at how a key begins
        self._closing_seconds = closing_seconds
        self._accounting = Accounting(
            agent.models,
            budget,
            folder,
            shared=run,
            transcripts=transcripts,
            secrets=agent.secrets() | {self._key},
        )
        self._servers: list[asyncio.Server] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="mlebench-gateway", daemon=True
        )

    def __enter__(self) -> Gateway:
        load_table()
        self._thread.start()
        self._run(self._start())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._run(self._end(), self._closing_seconds + _START_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_START_SECONDS)
        self._loop.close()
        if problem is None and self._proxy.failure is not None:
            raise self._proxy.failure

    def serve(self, listener: socket.socket) -> None:
        """Serve on a socket that listens already; it is closed at the end."""

        async def start() -> None:
            listener.setblocking(False)
            server = await self._loop.create_server(self._http, sock=listener)
            self._servers.append(server)

        self._run(start())

    def environment(self, address: str) -> dict[str, str]:
        """Return the variables that lead an agent here from ``http://HOST:PORT``."""
        variables: dict[str, str] = {}
        for upstream in self._upstreams:
            names = upstream.environment
            variables |= dict.fromkeys(names.url, address + prefix(upstream))
            variables |= dict.fromkeys(names.key, self._key)
        return variables

    def summary(self) -> Spending:
        """Return what has been spent so far; from any thread, while calls are under way too."""
        return self._accounting.summary()

    async def _start(self) -> None:
        self._proxy = Proxy(self._upstreams, self._keys, self._key, self._accounting)
        self._http = _BoundedServer(self._proxy.handle, access_log=None)

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        self._http.pre_shutdown()  # connections that nobody uses
        await self._proxy.close(self._closing_seconds)
        await self._http.shutdown(_SHUTDOWN_SECONDS)

    def _run(self, work: Coroutine[Any, Any, T], seconds: float = _START_SECONDS) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)


class _BoundedServer(web.Server):
    """A server that closes one connection too many as soon as it is made."""

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        if len(self.connections) > MAX_CONNECTIONS:
            transport.close()


def open_gateway(
    agent: Agent,
    folder: Path,
    *,
    run_account: Callable[[Path, float], SharedAccount],
    budget: Budget | None = None,
    transcripts: bool = False,
) -> Gateway:
    """Return the gateway of an attempt; *run_account* gives its share in the run's dollars."""
    check_models(agent, f"agent {agent.name!r}")
    bounds = agent.budget if budget is None else budget
    run = None if bounds.session_usd is None else run_account(folder, bounds.session_usd)
    return Gateway(agent, folder, budget=bounds, run=run, transcripts=transcripts)
