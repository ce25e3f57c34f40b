"""Real clients find their upstream behind the gateway as they would find it without."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from gateway_attempt import CALL_USD, HELLO, GatewayAttempt, attempt, json_of, status_of
from model_server import KEY, ModelServer

from pytest_mlebench.gateway.calls import read_spending
from pytest_mlebench.gateway.spending import Usage
from pytest_mlebench.gateway.transcripts import read_transcripts

USED = Usage(100, 40, 0, 20, 5)
TEXT = "Hello from the model."
Make = Callable[..., GatewayAttempt]


def direct(server: ModelServer) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key=KEY, max_retries=0)


def test_a_completion_is_passed_on_and_counted(gateway: GatewayAttempt) -> None:
    assert gateway.ask().choices[0].message.content == TEXT
    (spent,) = gateway.summary(1).models
    assert (spent.upstream, spent.model, spent.calls) == ("openai", "gpt-5", 1)
    assert (spent.usage, spent.usd, spent.is_complete) == (USED, CALL_USD, True)
    (call,) = gateway.calls(1)
    assert (call.status, call.model, call.usage, call.usd) == (200, "gpt-5", USED, CALL_USD)
    assert (call.path, call.stream, call.error) == ("/chat/completions", False, None)


def test_the_upstream_sees_the_real_key_and_the_agent_never_does(gateway: GatewayAttempt) -> None:
    gateway.ask()
    gateway.anthropic().messages.create(model="claude", max_tokens=9, messages=HELLO)
    first, second = gateway.server.seen
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert KEY in " ".join(second.headers.values())  # older clients use x-api-key
    for seen in (first, second):
        assert gateway.key not in json.dumps(seen.headers) + seen.path
        assert seen.headers["host"] in gateway.server.url
    assert KEY.encode() not in gateway.everything_written()


def test_a_stream_is_the_same_as_without_a_gateway(
    gateway: GatewayAttempt, server: ModelServer
) -> None:
    with direct(server) as client:
        plain = list(client.chat.completions.create(model="gpt-5", messages=HELLO, stream=True))
    ours = gateway.stream()
    assert [chunk.model_dump(exclude_unset=True) for chunk in ours] == [
        chunk.model_dump(exclude_unset=True) for chunk in plain
    ]
    assert gateway.server.seen[-1].json["stream_options"] == {"include_usage": True}
    assert gateway.summary(1).usage == USED


def test_a_stream_whose_usage_the_agent_wants_has_it(gateway: GatewayAttempt) -> None:
    chunks = gateway.stream(stream_options={"include_usage": True})
    assert chunks[-1].choices == []
    assert chunks[-1].usage.prompt_tokens == 100
    assert gateway.summary(1).usage == USED


def test_tools_are_passed_on(gateway: GatewayAttempt) -> None:
    function = {"name": "look", "parameters": {"type": "object", "properties": {}}}
    answer = gateway.ask(tools=[{"type": "function", "function": function}])
    assert answer.choices[0].message.tool_calls[0].function.name == "look"
    tool = {"name": "look", "input_schema": {"type": "object"}}
    message = gateway.anthropic().messages.create(
        model="claude", max_tokens=9, messages=HELLO, tools=[tool]
    )
    assert message.content[1].name == "look"


def test_responses_and_embeddings_are_counted(gateway: GatewayAttempt) -> None:
    with gateway.openai() as client:
        assert client.responses.create(model="gpt-5", input="x").output_text == TEXT
        events = list(client.responses.create(model="gpt-5", input="x", stream=True))
        assert events[-1].type == "response.completed"
        assert client.embeddings.create(model="gpt-e", input="x").data[0].embedding == [0.25, -0.5]
    chat, numbers = gateway.summary(3).models
    assert (chat.calls, chat.usage) == (2, USED + USED)
    assert (numbers.calls, numbers.usage) == (1, Usage(100))


def test_messages_are_counted_whole_and_streamed(gateway: GatewayAttempt) -> None:
    client = gateway.anthropic()
    whole = client.messages.create(model="claude", max_tokens=9, messages=HELLO)
    assert whole.content[0].text == TEXT
    with client.messages.stream(model="claude", max_tokens=9, messages=HELLO) as stream:
        assert "".join(stream.text_stream) == TEXT
    client.messages.count_tokens(model="claude", messages=HELLO)
    (spent,) = gateway.summary(3).models
    assert (spent.calls, spent.usage, spent.unmetered) == (3, USED + USED, 0)


@pytest.mark.parametrize("way", ["header", "query"])
def test_gemini_is_counted_whole_and_streamed(gateway: GatewayAttempt, way: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=30)
    headers = {"x-goog-api-key": gateway.key} if way == "header" else {}
    for method, query in (("generateContent", ""), ("streamGenerateContent", "alt=sse")):
        target = f"/google/v1beta/models/gemini-x:{method}?{query}"
        target += f"&key={gateway.key}" if way == "query" else ""
        connection.request("POST", target, b'{"contents": []}', headers)
        answer = connection.getresponse()
        assert answer.status == 200
        assert b"candidates" in answer.read()
    connection.close()
    (spent,) = gateway.summary(2).models
    assert (spent.model, spent.calls, spent.usage) == ("gemini-x", 2, USED + USED)
    assert KEY in json.dumps(gateway.server.seen[0].headers) + gateway.server.seen[0].path
    assert gateway.key not in gateway.everything_written().decode()


def test_anything_else_below_the_upstream_passes(gateway: GatewayAttempt) -> None:
    with gateway.openai() as client:
        assert client.models.list().data == []
        client.files.create(file=b"some text", purpose="assistants")
    listing, upload = gateway.server.seen
    assert (listing.method, listing.path) == ("GET", "/v1/models")
    assert b"some text" in upload.body
    spending = gateway.summary(2)
    assert (spending.calls, spending.unmetered, spending.usd) == (2, 0, 0)


@pytest.mark.parametrize("status", [400, 404, 429, 500, 529])
def test_errors_of_the_upstream_reach_the_agent_unchanged(
    gateway: GatewayAttempt, status: int
) -> None:
    with pytest.raises(openai.APIStatusError) as error:
        gateway.ask(f"error-{status}")
    assert error.value.status_code == status
    assert error.value.body == {"message": "as you wish", "type": "test", "code": status}
    assert error.value.response.headers["x-ratelimit-remaining-requests"] == "0"
    spending = gateway.summary(1)
    assert (spending.calls, spending.errors, spending.unmetered, spending.usd) == (1, 1, 0, 0)


def test_a_client_that_tries_again_is_counted_each_time(gateway: GatewayAttempt) -> None:
    with gateway.openai(max_retries=2) as client, pytest.raises(openai.RateLimitError):
        client.chat.completions.create(model="error-429", messages=HELLO)
    assert gateway.summary(3).calls == 3


def test_an_upstream_that_takes_no_stream_options_is_asked_without(gateway: GatewayAttempt) -> None:
    for _ in range(2):
        assert (
            "".join(chunk.choices[0].delta.content or "" for chunk in gateway.stream("picky"))
            == TEXT
        )
    options = ["stream_options" in seen.json for seen in gateway.server.seen]
    assert options == [True, False, False]
    spending = gateway.summary(2)
    assert (spending.calls, spending.errors, spending.unmetered) == (2, 0, 2)


def test_another_error_of_a_stream_is_not_tried_again(gateway: GatewayAttempt) -> None:
    with pytest.raises(openai.BadRequestError, match="as you wish"):
        gateway.stream("error-400")
    assert len(gateway.server.seen) == 1


def test_a_call_without_usage_is_counted_as_unmetered(gateway: GatewayAttempt) -> None:
    gateway.ask("no-usage")
    gateway.stream("no-usage")
    spending = gateway.summary(2)
    assert (spending.calls, spending.unmetered, spending.is_complete) == (2, 2, False)
    assert [call.unmetered for call in gateway.calls(2)] == [True, True]
    assert replace(read_spending(gateway.folder), budget=spending.budget) == spending


def test_a_price_that_nobody_knows_leaves_the_cost_unknown(gateway: GatewayAttempt) -> None:
    gateway.ask("mystery")
    gateway.ask("gpt-5")
    spending = gateway.summary(2)
    assert (spending.usd, spending.known_usd) == (None, CALL_USD)
    assert spending.usage == USED + USED
    assert gateway.calls(2)[0].usd is None


def test_an_upstream_that_echoes_the_real_key_does_not_give_it_away(
    gateway: GatewayAttempt,
) -> None:
    answer = gateway.request("/openai/v1/chat/completions", b'{"model": "echo"}')
    assert status_of(answer) == 200
    assert KEY.encode() not in answer
    masked = "*" * len(KEY)
    assert f"x-echo: {masked}".encode() in answer
    assert json_of(answer)["headers"]["authorization"] == f"Bearer {masked}"


def test_an_upstream_that_compresses_all_the_same_is_read(open_gateway: Make) -> None:
    content = gzip.compress(json.dumps({"usage": {"prompt_tokens": 7}, "said": TEXT}).encode())

    def answer(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n"
                b"Content-Length: %d\r\n\r\n" % len(content) + content
            )

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=answer, args=(listener,), daemon=True).start()
        server = ModelServer()
        server.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        gateway = open_gateway(server=server)
        with gateway.openai() as client:
            told = client.chat.completions.with_raw_response.create(model="gpt-5", messages=HELLO)
    assert json.loads(told.content)["said"] == TEXT
    assert "content-encoding" not in told.headers
    assert gateway.summary(1).usage == Usage(7)


def test_keep_alive_works_and_connections_are_few(gateway: GatewayAttempt) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=30)
    ports = set()
    for _ in range(20):
        headers = {"Authorization": f"Bearer {gateway.key}"}
        connection.request("POST", "/openai/v1/chat/completions", b'{"model": "gpt-5"}', headers)
        ports.add(connection.sock.getsockname()[1])
        assert connection.getresponse().read()
    connection.close()
    assert len(ports) == 1
    assert gateway.summary(20).calls == 20


def test_a_body_that_waits_to_be_asked_for_is_asked_for(gateway: GatewayAttempt) -> None:
    body = b'{"model": "gpt-5"}'
    answer = gateway.request("/openai/v1/chat/completions", body, "Expect: 100-continue")
    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK")


def test_the_gateway_serves_unix_sockets_and_several_at_once(
    gateway: GatewayAttempt, tmp_path: Path
) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "g.sock"))
    listener.listen()
    gateway.gateway.serve(listener)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(tmp_path / "g.sock"))
        head = f"GET /openai/v1/models HTTP/1.0\r\nAuthorization: Bearer {gateway.key}\r\n\r\n"
        connection.sendall(head.encode())
        assert connection.makefile("rb").read().endswith(b'"path": "/v1/models"}')
    assert gateway.ask()


def test_names_of_variables_can_be_chosen(open_gateway: Make) -> None:
    variables = open_gateway().variables
    base = variables["OPENAI_BASE_URL"].removesuffix("/openai/v1")
    key = variables["OPENAI_API_KEY"]
    assert key.startswith("sk-mle-")
    assert variables == {
        "OPENAI_BASE_URL": f"{base}/openai/v1",
        "OPENAI_API_BASE": f"{base}/openai/v1",
        "OPENAI_API_KEY": key,
        "ANTHROPIC_BASE_URL": f"{base}/anthropic",
        "ANTHROPIC_API_BASE": f"{base}/anthropic",
        "ANTHROPIC_API_KEY": key,
        "GOOGLE_GEMINI_BASE_URL": f"{base}/google",
        "GEMINI_API_BASE": f"{base}/google",
        "GEMINI_API_KEY": key,
        "GOOGLE_API_KEY": key,
    }
    assert open_gateway().key != key


def test_transcripts_hold_what_was_said_and_no_key(tmp_path: Path, server: ModelServer) -> None:
    with attempt(tmp_path, server, transcripts=True) as kept:
        kept.ask()
        kept.stream()
        echo = b'{"model": "echo", "x": "%s"}' % kept.key.encode()
        kept.request("/openai/v1/chat/completions", echo)
    whole, stream, echoed = read_transcripts(kept.folder)
    assert json.loads(whole.request)["messages"] == HELLO
    assert json.loads(whole.response)["choices"][0]["message"]["content"] == TEXT
    assert "stream_options" not in stream.request
    assert "prompt_tokens" not in stream.response
    assert kept.key not in echoed.request
    assert KEY not in echoed.response


def test_without_being_asked_nothing_that_was_said_is_kept(gateway: GatewayAttempt) -> None:
    gateway.ask()
    assert [path.name for path in gateway.folder.iterdir()] == ["calls.jsonl"]
    assert b"hello" not in gateway.everything_written()


def test_a_hundred_streams_at_once_arrive_whole_and_are_counted(tmp_path: Path) -> None:
    together = threading.Barrier(100, timeout=300)
    with ModelServer(pieces=30, pause=0.01) as server, attempt(tmp_path, server) as many:
        client = many.openai(timeout=600)

        def stream(number: int) -> str:
            together.wait()
            messages: Any = [{"role": "user", "content": str(number)}]
            chunks = client.chat.completions.create(model="gpt-5", messages=messages, stream=True)
            return "".join(chunk.choices[0].delta.content or "" for chunk in chunks)

        with ThreadPoolExecutor(100) as pool:
            assert set(pool.map(stream, range(100))) == {TEXT}
        spending = many.summary(100)
        assert (spending.calls, spending.errors, spending.unmetered) == (100, 0, 0)
        assert spending.usage.input_tokens == 100 * 100


def test_the_real_clients_understand_every_refusal(gateway: GatewayAttempt) -> None:
    url = gateway.variables["OPENAI_BASE_URL"]
    with (
        openai.OpenAI(base_url=url, api_key="sk-wrong", max_retries=0) as client,
        pytest.raises(openai.AuthenticationError, match="the key is not the one of this attempt"),
    ):
        client.models.list()
    stranger = anthropic.Anthropic(
        base_url=gateway.variables["ANTHROPIC_BASE_URL"], api_key="sk-wrong", max_retries=0
    )
    with pytest.raises(anthropic.AuthenticationError, match="the key is not the one"):
        stranger.models.list()
    assert gateway.server.seen == []
    assert gateway.summary(0).refused == {"authentication": 2}
