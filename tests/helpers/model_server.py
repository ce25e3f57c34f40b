"""A local upstream that speaks as OpenAI, Anthropic and Gemini do, faults included.

    with ModelServer() as server:
        server.url                  # http://127.0.0.1:PORT
        server.seen                 # what arrived: method, path, headers, body
    python model_server.py          # on its own: prints its URL, ends with its stdin

Which answer comes is decided by the name of the model: ``echo`` tells the request's headers,
``error-429`` is an error, ``stall`` says nothing until ``release`` is set, ``stall-after-3`` does
so at the fourth request, ``stall-midway`` stops after the first piece, ``half`` breaks off,
``no-usage`` keeps its usage to itself, ``picky`` does not take ``stream_options``. Anything else
answers with ``reply``, piece by piece in a stream.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

KEY = "sk-real-0123456789abcdefghij"  # the one that no agent may ever see

Json = dict[str, Any]


@dataclass
class Seen:
    """A request as it arrived."""

    method: str
    path: str  # with its query
    headers: dict[str, str]  # by their names in lower case
    body: bytes

    @property
    def json(self) -> Json:
        content: Json = json.loads(self.body)
        return content


@dataclass
class Tokens:
    """What every answer says that it used."""

    input: int = 100
    cached: int = 40
    output: int = 20
    reasoning: int = 5


@dataclass
class ModelServer:
    """Serves until the block ends, in a thread of its own."""

    reply: Callable[[Json], str] = lambda body: "Hello from the model."
    pieces: int = 4
    pause: float = 0.0  # seconds between two pieces
    tls: ssl.SSLContext | None = None
    address: str = "127.0.0.1"  # one of this machine
    tokens: Tokens = field(default_factory=Tokens)
    key: str = KEY
    seen: list[Seen] = field(default_factory=list)
    failures: list[int] = field(default_factory=list)  # statuses of the calls that come first
    tool_arguments: Callable[[Json], str] = lambda body: '{"place": "here"}'

    def __post_init__(self) -> None:
        self.url = ""
        self.gone = threading.Event()  # a client left in the middle of an answer
        self.begun = threading.Semaphore(0)  # one for each stream whose first piece is out

    def __enter__(self) -> ModelServer:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(30)
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()

    def release(self) -> None:
        """Let whatever stalls go on."""
        self._loop.call_soon_threadsafe(self._released.set)

    async def _start(self) -> None:
        self._released = asyncio.Event()
        self._runner = web.ServerRunner(
            web.Server(self._handle, access_log=None, handler_cancellation=True),
            shutdown_timeout=0.1,
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, self.address, 0, ssl_context=self.tls, backlog=1024)
        await site.start()
        port = self._runner.addresses[0][1]
        self.url = f"{'https' if self.tls else 'http'}://{self.address}:{port}"

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        seen = Seen(request.method, request.raw_path, headers, await request.read())
        self.seen.append(seen)
        if self.key not in " ".join([*seen.headers.values(), seen.path]):
            return web.json_response({"error": {"message": "wrong key"}}, status=401)
        path = seen.path.partition("?")[0]
        if request.method == "GET":
            return web.json_response({"object": "list", "data": [], "path": path})
        try:
            body = json.loads(seen.body) if seen.body else {}
        except ValueError:
            return web.json_response({"object": "file", "id": "file-1", "bytes": len(seen.body)})
        model = str(body.get("model") or path.rpartition("/")[2].partition(":")[0])
        if (fault := await self._fault(request, model, seen)) is not None:
            return fault
        return await self._answer(request, path, body, model)

    async def _fault(
        self, request: web.BaseRequest, model: str, seen: Seen
    ) -> web.StreamResponse | None:
        if model.startswith("error-") or self.failures:
            status = self.failures.pop(0) if self.failures else int(model.removeprefix("error-"))
            headers = {"retry-after": "0", "x-ratelimit-remaining-requests": "0"}
            content = {"error": {"message": "as you wish", "type": "test", "code": status}}
            return web.json_response(content, status=status, headers=headers)
        if model == "echo":
            return web.json_response(
                {"headers": seen.headers, "path": seen.path}, headers={"x-echo": self.key}
            )
        if model == "picky" and "stream_options" in seen.json:
            content = {"error": {"message": "unknown field: stream_options"}}
            return web.json_response(content, status=422)
        if model == "stall" or model == f"stall-after-{len(self.seen) - 1}":
            self.begun.release()
            await self._wait()
        return None

    async def _wait(self) -> None:
        try:
            await self._released.wait()
        except asyncio.CancelledError:
            self.gone.set()
            raise

    async def _answer(
        self, request: web.BaseRequest, path: str, body: Json, model: str
    ) -> web.StreamResponse:
        answers: dict[str, tuple[Callable[..., Any], Callable[..., Any] | None]] = {
            "/chat/completions": (self._completion, self._completion_events),
            "/responses": (self._response, self._response_events),
            "/embeddings": (self._embedding, None),
            "/messages": (self._message, self._message_events),
            "/count_tokens": (lambda *_: {"input_tokens": self.tokens.input}, None),
            ":generateContent": (self._content, None),
            ":streamGenerateContent": (self._content, self._content_events),
        }
        for ending, (whole, events) in answers.items():
            if path.endswith(ending):
                wants_stream = body.get("stream") is True or "alt=sse" in request.raw_path
                if events is not None and wants_stream:
                    return await self._stream(request, model, events(body, model))
                return web.json_response(whole(body, model))
        return web.json_response({"object": "thing", "path": path})

    async def _stream(
        self, request: web.BaseRequest, model: str, events: AsyncIterator[bytes]
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        number = 0
        try:
            async for event in events:
                await response.write(event)
                number += 1
                if number == 1:
                    self.begun.release()
                    if model == "stall-midway":
                        await self._released.wait()
                elif number == 2 and model == "half":
                    assert request.transport is not None
                    request.transport.abort()
                    return response
                if self.pause:
                    await asyncio.sleep(self.pause)
        except (asyncio.CancelledError, ConnectionError):
            self.gone.set()
            raise
        return response

    def _parts(self, body: Json) -> list[str]:
        text = self.reply(body)
        size = max(1, -(-len(text) // self.pieces))
        return [text[start : start + size] for start in range(0, len(text), size)]

    def _usage(self, prompt: str, completion: str) -> Json:
        tokens = self.tokens
        return {
            f"{prompt}_tokens": tokens.input,
            f"{completion}_tokens": tokens.output,
            "total_tokens": tokens.input + tokens.output,
            f"{prompt}_tokens_details": {"cached_tokens": tokens.cached, "cache_write_tokens": 0},
            f"{completion}_tokens_details": {"reasoning_tokens": tokens.reasoning},
        }

    def _completion(self, body: Json, model: str) -> Json:
        message: Json = {"role": "assistant", "content": self.reply(body)}
        if tools := body.get("tools"):
            call = {"name": tools[0]["function"]["name"], "arguments": self.tool_arguments(body)}
            message["tool_calls"] = [{"id": "call_1", "type": "function", "function": call}]
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        content = {"id": "c1", "object": "chat.completion", "created": 1, "model": model}
        content |= {"choices": [choice]}
        return (
            content
            if model == "no-usage"
            else content | {"usage": self._usage("prompt", "completion")}
        )

    async def _completion_events(self, body: Json, model: str) -> AsyncIterator[bytes]:
        asked = (body.get("stream_options") or {}).get("include_usage") is True
        asked = asked and model != "no-usage"
        head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": model}
        more = {"usage": None} if asked else {}
        for part in self._parts(body):
            delta = {"role": "assistant", "content": part}
            choice = {"index": 0, "delta": delta, "finish_reason": None}
            yield _event(head | {"choices": [choice]} | more)
        last = {"index": 0, "delta": {}, "finish_reason": "stop"}
        yield _event(head | {"choices": [last]} | more)
        if asked:
            yield _event(head | {"choices": [], "usage": self._usage("prompt", "completion")})
        yield b"data: [DONE]\n\n"

    def _response(self, body: Json, model: str) -> Json:
        text = {"type": "output_text", "text": self.reply(body), "annotations": []}
        message = {"type": "message", "id": "m1", "role": "assistant", "status": "completed"}
        return {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "status": "completed",
            "model": model,
            "output": [message | {"content": [text]}],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": body.get("tools", []),
            "usage": self._usage("input", "output"),
        }

    async def _response_events(self, body: Json, model: str) -> AsyncIterator[bytes]:
        whole = self._response(body, model)
        began = whole | {"status": "in_progress", "output": [], "usage": None}
        number = 0
        yield _event({"type": "response.created", "sequence_number": number, "response": began})
        for part in self._parts(body):
            number += 1
            delta = {"type": "response.output_text.delta", "delta": part, "item_id": "m1"}
            place = {"output_index": 0, "content_index": 0, "sequence_number": number}
            yield _event(delta | place | {"logprobs": []})
        end = {"type": "response.completed", "sequence_number": number + 1, "response": whole}
        yield _event(end)

    def _embedding(self, body: Json, model: str) -> Json:
        numbers = {"object": "embedding", "index": 0, "embedding": [0.25, -0.5]}
        usage = {"prompt_tokens": self.tokens.input, "total_tokens": self.tokens.input}
        return {"object": "list", "data": [numbers], "model": model, "usage": usage}

    def _anthropic_usage(self) -> Json:
        tokens = self.tokens
        return {
            "input_tokens": tokens.input - tokens.cached,
            "cache_read_input_tokens": tokens.cached,
            "cache_creation_input_tokens": 0,
            "output_tokens": tokens.output,
            "output_tokens_details": {"thinking_tokens": tokens.reasoning},
        }

    def _message(self, body: Json, model: str) -> Json:
        content: list[Json] = [{"type": "text", "text": self.reply(body)}]
        if tools := body.get("tools"):
            use = {"type": "tool_use", "id": "toolu_1", "name": tools[0]["name"], "input": {}}
            content.append(use)
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": content,
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": self._anthropic_usage(),
        }

    async def _message_events(self, body: Json, model: str) -> AsyncIterator[bytes]:
        usage = self._anthropic_usage()
        begun = usage | {"output_tokens": 1}
        message = self._message(body, model) | {"content": [], "stop_reason": None, "usage": begun}
        yield _named({"type": "message_start", "message": message})
        block = {"type": "text", "text": ""}
        yield _named({"type": "content_block_start", "index": 0, "content_block": block})
        for part in self._parts(body):
            delta = {"type": "text_delta", "text": part}
            yield _named({"type": "content_block_delta", "index": 0, "delta": delta})
        yield _named({"type": "content_block_stop", "index": 0})
        last = {"output_tokens": usage["output_tokens"]}
        last |= {"output_tokens_details": usage["output_tokens_details"]}
        stop = {"stop_reason": "end_turn", "stop_sequence": None}
        yield _named({"type": "message_delta", "delta": stop, "usage": last})
        yield _named({"type": "message_stop"})

    def _content(self, body: Json, model: str, text: str | None = None) -> Json:
        tokens = self.tokens
        said = self.reply(body) if text is None else text
        usage = {
            "promptTokenCount": tokens.input,
            "cachedContentTokenCount": tokens.cached,
            "candidatesTokenCount": tokens.output - tokens.reasoning,
            "thoughtsTokenCount": tokens.reasoning,
            "totalTokenCount": tokens.input + tokens.output,
        }
        candidate = {"content": {"role": "model", "parts": [{"text": said}]}, "index": 0}
        return {"candidates": [candidate], "modelVersion": model, "usageMetadata": usage}

    async def _content_events(self, body: Json, model: str) -> AsyncIterator[bytes]:
        for part in self._parts(body):
            yield _event(self._content(body, model, part))


def _event(content: Json) -> bytes:
    return f"data: {json.dumps(content, separators=(',', ':'))}\n\n".encode()


def _named(content: Json) -> bytes:
    return f"event: {content['type']}\n".encode() + _event(content)


def main() -> None:
    """Serve on a port of our own until stdin ends."""
    pieces, pause = int(sys.argv[1]), float(sys.argv[2])
    with ModelServer(pieces=pieces, pause=pause, reply=lambda body: "word " * pieces) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
