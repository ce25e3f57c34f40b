"""The way of one call: checked, admitted, passed on, read as it passes back, booked.

An upstream's answer reaches the agent as it is, error or not. Where there is none, or only half of
one, the agent's connection breaks, as its own would have; what happened is in ``calls.jsonl``. An
agent that goes away does not end a call: it is read to its end, for only there it says its usage.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from aiohttp import web

from pytest_mlebench.errors import InfrastructureError
from pytest_mlebench.gateway.accounting import Accounting, CallState
from pytest_mlebench.gateway.agent_connection import AgentConnection, Buffers
from pytest_mlebench.gateway.calls import Call
from pytest_mlebench.gateway.dialects import DIALECTS
from pytest_mlebench.gateway.model_request import METHODS, ModelRequest, read_model_request
from pytest_mlebench.gateway.refusal import CallRefusal
from pytest_mlebench.gateway.routes import (
    Route,
    find_route,
    headers_to_agent,
    headers_to_upstream,
    swap_keys,
)
from pytest_mlebench.gateway.upstream_client import Answer, UpstreamClient, UpstreamFault
from pytest_mlebench.gateway.usage_readers import StreamUsageReader, UsageReader
from pytest_mlebench.sandbox.redact import Mask
from pytest_mlebench.upstream import MIN_SECRET_LENGTH, Upstream

MAX_IN_FLIGHT = 256
CUT_OFF = "the attempt ended before the answer did"

logger = logging.getLogger(__name__)


class Proxy:
    """Answers the calls of one attempt; to be made in the event loop."""

    def __init__(
        self,
        upstreams: Sequence[Upstream],
        keys: Mapping[str, str],  # the real ones, by the upstream's name
        attempt_key: str,
        accounting: Accounting,
    ) -> None:
        self.failure: InfrastructureError | None = None  # ours: the figures cannot be trusted
        self._upstreams = upstreams
        self._keys = keys
        self._secrets = [key for key in keys.values() if len(key) >= MIN_SECRET_LENGTH]
        self._attempt_key = attempt_key
        self._accounting = accounting
        self._buffers = Buffers()
        self._client = UpstreamClient()
        self._in_flight: set[asyncio.Task[Any]] = set()

    async def close(self, patience: float) -> None:
        """Wait for calls under way to tell their usage, cut the rest off, close what is open."""
        if self._in_flight:
            _, late = await asyncio.wait(self._in_flight, timeout=patience)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await self._client.close()
        try:
            await self._accounting.close()
        except InfrastructureError as problem:
            self.failure = problem

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one call, whatever it is; never with a traceback."""
        agent = AgentConnection(request)
        state = self._accounting.open_call()
        route: Route | None = None
        task: asyncio.Task[Any] | None = asyncio.current_task()
        if task is not None:
            self._in_flight.add(task)
        try:
            try:
                route = find_route(request.raw_path, self._upstreams)
                return await self._answer(request, route, agent, state)
            except CallRefusal as refusal:
                return self._refuse(request, route, refusal, state)
        except InfrastructureError as problem:
            self.failure = problem
        except (ConnectionError, TimeoutError):
            logger.debug("an agent went away in the middle of a call", exc_info=True)
        except Exception:
            logger.exception("a call of an agent failed in the gateway")
        finally:
            if task is not None:
                self._in_flight.discard(task)
        return agent.hang_up()

    async def _answer(
        self, request: web.BaseRequest, route: Route, agent: AgentConnection, state: CallState
    ) -> web.StreamResponse:
        real = self._keys[route.upstream.name]
        headers, query = swap_keys(
            request.headers.items(), route.query, ours=self._attempt_key, real=real
        )
        if len(self._in_flight) > MAX_IN_FLIGHT:
            raise CallRefusal("busy", f"{MAX_IN_FLIGHT} calls are under way: wait for some to end")
        if request.method not in METHODS or "Upgrade" in request.headers:
            raise CallRefusal("bad_request", "the gateway knows plain HTTP requests only")
        if len(request.headers.getall("Content-Type", [])) > 1:
            raise CallRefusal("bad_request", "the call says twice what its body is")
        async with self._buffers.body_of(request) as body:
            content_type = request.headers.get("Content-Type", "")
            model_request = read_model_request(route, request.method, content_type, body)
            if not await self._accounting.admit(model_request, state, lambda: not agent.is_gone):
                return agent.hang_up()
            headers += headers_to_upstream(request.headers.items())
            call: Call | None = None
            try:
                try:
                    last = await self._exchange(model_request, headers, query, agent, state)
                finally:
                    # before the agent has the end of the answer: its next call finds it booked
                    call = await self._accounting.settle(model_request, state)
                if last is None:
                    return agent.hang_up()
                await agent.write(last)
                return await agent.end()
            finally:
                if call is not None:
                    await self._accounting.keep_transcript(call, model_request, state.answer)

    async def _exchange(
        self,
        model_request: ModelRequest,
        headers: list[tuple[str, str]],
        query: str,
        agent: AgentConnection,
        state: CallState,
    ) -> bytes | None:
        """Pass a call on and its answer back, but for the last piece; None if it broke off."""
        try:
            async with self._client.ask(model_request, headers, query) as (asked, answer):
                state.status = answer.status
                reader = _reader(asked, answer)
                await agent.begin(
                    answer.status,
                    answer.reason,
                    self._without_keys(headers_to_agent(answer.headers)),
                    None if asked.asks_for_usage else answer.length,
                )
                try:
                    return await self._pass_back(model_request, answer, reader, agent, state)
                finally:
                    state.reading = reader.reading
        except UpstreamFault as fault:
            state.fault, state.may_have_cost = str(fault), fault.was_sent
            return None
        except asyncio.CancelledError:
            state.fault = CUT_OFF
            raise

    async def _pass_back(
        self,
        model_request: ModelRequest,
        answer: Answer,
        reader: UsageReader,
        agent: AgentConnection,
        state: CallState,
    ) -> bytes:
        mask = Mask(self._secrets, keep_length=True)  # an upstream may echo what it was sent
        async for piece in answer.pieces():
            state.note_first_byte()
            shown = mask.feed(reader.feed(piece))
            if reader.has_news:
                self._accounting.note_usage(model_request, state, reader.reading)
                reader.has_news = False
            state.keep(shown)
            await agent.write(shown)
        last = mask.feed(reader.finish()) + mask.finish()
        state.keep(last)
        return last

    def _without_keys(self, headers: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        for name, value in headers:
            shown = value
            for secret in self._secrets:
                shown = shown.replace(secret, "*" * len(secret))
            yield name, shown

    def _refuse(
        self, request: web.BaseRequest, route: Route | None, refusal: CallRefusal, state: CallState
    ) -> web.StreamResponse:
        upstream = route.upstream if route else None
        dialect = DIALECTS[upstream.protocol if upstream else "openai"]
        self._accounting.note_refusal(
            upstream.name if upstream else "",
            request.method,
            route.decoded if route else request.raw_path,
            refusal,
            state,
        )
        # OpenAI's and Anthropic's clients would ask again, which is of no use
        retry = {} if refusal.kind == "busy" else {"x-should-retry": "false"}
        return web.json_response(dialect.wording(refusal), status=refusal.status, headers=retry)


def _reader(asked: ModelRequest, answer: Answer) -> UsageReader:
    """Return what reads the usage of an answer."""
    if answer.content_type == "text/event-stream":
        return StreamUsageReader(asked.dialect, take_out=asked.asks_for_usage)
    return UsageReader(
        asked.dialect,
        holds_last=answer.content_type == "application/json" and not asked.is_stream,
        is_embedding=asked.is_embedding,
    )
