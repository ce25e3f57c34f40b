"""A hostile agent reaches its upstream's path and nothing else, and harms nobody but itself."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from gateway_attempt import GatewayAttempt, json_of, status_of
from model_server import KEY

from pytest_mlebench.gateway import agent_connection, proxy
from pytest_mlebench.gateway import gateway as gateway_module

Make = Callable[..., GatewayAttempt]

CHAT = "/openai/v1/chat/completions"


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1:1/openai/v1/models",
        "http://169.254.169.254/latest/meta-data",
        "/openai/v1/../../admin",
        "/openai/v1/%2e%2e/%2e%2e/admin",
        "/openai/v1/..%2f..%2fadmin",
        "/openai/v1/..;/admin",
        "/openai/v1@127.0.0.1:1/",
        "//127.0.0.1:1/x",
        "/unknown/v1/models",
        "/",
    ],
)
def test_tricks_with_the_path_reach_nothing(gateway: GatewayAttempt, target: str) -> None:
    answer = gateway.request(target, b"", method="GET")
    assert status_of(answer) in {400, 404}
    assert gateway.server.seen == []
    assert KEY.encode() not in answer


@pytest.mark.parametrize(
    "head",
    [
        "CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: 127.0.0.1:1",
        "TRACE /openai/v1/models HTTP/1.1\r\nHost: x",
        "GET /openai/v1/models HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: upgrade",
        "GET /openai/v1/models HTTP/1.1\r\nHost: x\r\nX-A: b\x00c",
        "GET /openai/v1/models HTTP/1.1\r\nHost: x\r\n folded: 1",
        "POST /openai/v1/x HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6",
        "POST /openai/v1/x HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked",
        "POST /openai/v1/x HTTP/1.1\r\nHost: x\r\nContent-Length: -5",
        "GET /openai/v1/models\rX: 1 HTTP/1.1\r\nHost: x",
        "nonsense",
    ],
)
def test_requests_that_mean_two_things_are_refused(gateway: GatewayAttempt, head: str) -> None:
    auth = f"\r\nAuthorization: Bearer {gateway.key}\r\nConnection: close\r\n\r\nhello"
    answer = gateway.raw((head + auth).encode("latin-1"))
    assert answer == b"" or status_of(answer) == 400
    assert gateway.server.seen == []


def test_headers_cannot_be_smuggled_to_the_upstream(gateway: GatewayAttempt) -> None:
    gateway.request(
        CHAT,
        b'{"model": "gpt-5"}',
        "X-Forwarded-Host: evil.example",
        "Cookie: session=1",
        "x-api-key: my-own",
        "Proxy-Authorization: Basic x",
        "Connection: X-Secret-Hop",
        "X-Secret-Hop: 1",
    )
    (seen,) = gateway.server.seen
    assert seen.headers["host"] == gateway.server.url.removeprefix("http://")
    assert not seen.headers.keys() & {"cookie", "x-api-key", "proxy-authorization", "x-secret-hop"}
    assert seen.headers["authorization"] == f"Bearer {KEY}"


def test_without_the_key_nothing_is_passed_on_and_nothing_is_told(gateway: GatewayAttempt) -> None:
    for lines in ("", "Authorization: Bearer x\r\n", f"x-api-key: {KEY}\r\n"):
        answer = gateway.raw(f"GET /openai/v1/models HTTP/1.0\r\n{lines}\r\n".encode())
        assert status_of(answer) == 401
        assert KEY.encode() not in answer
        assert gateway.key.encode() not in answer
    assert gateway.server.seen == []


def test_one_attempts_key_is_no_key_of_another(open_gateway: Make) -> None:
    first, second = open_gateway(), open_gateway()
    answer = second.raw(
        f"GET /openai/v1/models HTTP/1.0\r\nAuthorization: Bearer {first.key}\r\n\r\n".encode()
    )
    assert status_of(answer) == 401


def test_a_second_model_cannot_hide_in_a_body(open_gateway: Make) -> None:
    attempt = open_gateway(allow=("cheap",))
    for body in (
        b'{"model": "cheap", "model": "dear"}',
        b'{"model": "cheap", "models": ["dear"]}',
        b'\xef\xbb\xbf{"model": "dear"}',
        b'{"model": "dear"',
        b'"cheap"',
        b"",
    ):
        answer = attempt.request(CHAT, body)
        assert status_of(answer) in {400, 403}, body
    assert attempt.server.seen == []


def test_a_compressed_body_is_refused_unread(gateway: GatewayAttempt) -> None:
    answer = gateway.request(CHAT, b"\x1f\x8b\x08\x00", "Content-Encoding: gzip")
    assert status_of(answer) == 400
    assert json_of(answer)["error"]["message"] == "the body must not be compressed"


def test_a_body_without_end_is_cut_off(
    gateway: GatewayAttempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_connection, "MAX_REQUEST_BYTES", 1 << 20)
    answer = gateway.request(CHAT, b"{" + b" " * (2 << 20))
    assert status_of(answer) == 413
    assert gateway.server.seen == []


def test_many_large_bodies_at_once_do_not_fill_the_memory(
    gateway: GatewayAttempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_connection, "MAX_BUFFERED_BYTES", 1 << 20)
    body = json.dumps({"model": "stall", "x": "x" * 700_000}).encode()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(gateway.request, CHAT, body)
        assert gateway.server.begun.acquire(timeout=60)
        answer = gateway.request(CHAT, body)
        assert status_of(answer) == 429
        assert "wait for some to end" in json_of(answer)["error"]["message"]
        gateway.server.release()
        assert status_of(first.result()) == 200
    assert status_of(gateway.request(CHAT, body.replace(b"stall", b"gpt-5"))) == 200


def test_too_many_calls_at_once_are_told_to_wait(
    gateway: GatewayAttempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy, "MAX_IN_FLIGHT", 2)
    with ThreadPoolExecutor(2) as pool:
        stalled = [pool.submit(gateway.request, CHAT, b'{"model": "stall"}') for _ in range(2)]
        for _ in stalled:
            assert gateway.server.begun.acquire(timeout=60)
        answer = gateway.request(CHAT, b'{"model": "gpt-5"}')
        assert status_of(answer) == 429
        assert b"x-should-retry" not in answer
        gateway.server.release()
        assert all(status_of(one.result()) == 200 for one in stalled)


def test_too_many_connections_are_closed(
    gateway: GatewayAttempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway_module, "MAX_CONNECTIONS", 5)
    held = [socket.create_connection(("127.0.0.1", gateway.port), timeout=30) for _ in range(5)]
    deadline = time.monotonic() + 30
    while gateway.raw(b"") != b"":  # the sixth gets nothing, as soon as the five are accepted
        assert time.monotonic() < deadline
    for connection in held:
        connection.close()
    while True:
        try:
            assert gateway.ask()
            break
        except Exception:
            assert time.monotonic() < deadline


def test_an_agent_that_does_not_read_does_not_hold_others_up(gateway: GatewayAttempt) -> None:
    gateway.server.reply = lambda body: "x" * 5_000_000
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=30) as deaf:
        head = f"POST {CHAT} HTTP/1.1\r\nAuthorization: Bearer {gateway.key}\r\nHost: x\r\n"
        body = b'{"model": "gpt-5"}'
        deaf.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        gateway.summary(0)
        for _ in range(3):
            assert gateway.openai().models.list().data == []
    assert gateway.summary(4).unmetered == 0


def test_calls_of_the_agents_own_invention_are_cut_in_the_evidence(gateway: GatewayAttempt) -> None:
    gateway.request("/openai/v1/" + "a" * 5_000, b'{"model": "\\u001b[2J\\n"}')
    (call,) = gateway.calls(1)
    assert len(call.path) == 200
    assert "\n" not in (gateway.folder / "calls.jsonl").read_text().removesuffix("\n")
