"""What goes wrong at an upstream reaches the agent as it would have, and nothing hangs."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from gateway_attempt import BROKEN, HELLO, GatewayAttempt, attempt, status_of
from model_server import KEY, ModelServer

from pytest_mlebench.errors import InfrastructureError
from pytest_mlebench.gateway import upstream_client
from pytest_mlebench.gateway.spending import Usage

Make = Callable[..., GatewayAttempt]

HELPERS = Path(__file__).parents[2] / "helpers"


def broken(gateway: GatewayAttempt, model: str = "gpt-5") -> openai.APIConnectionError:
    with pytest.raises(openai.APIConnectionError) as error:
        gateway.ask(model)
    return error.value


def test_a_refused_connection_is_a_connection_error(open_gateway: Make) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    server = ModelServer()
    server.url = f"http://127.0.0.1:{port}"  # nobody is there any more
    gateway = open_gateway(server=server)
    error = broken(gateway)
    assert not isinstance(error, openai.APITimeoutError)
    summary = gateway.summary(1)
    assert (summary.errors, summary.unmetered) == (1, 0)
    assert summary.problems == {f"cannot connect to 127.0.0.1:{port}: connection refused": 1}
    assert gateway.calls(1)[0].status is None


def test_a_host_that_does_not_exist_is_a_connection_error(open_gateway: Make) -> None:
    server = ModelServer()
    server.url = "http://no-such-host.invalid"
    gateway = open_gateway(server=server)
    broken(gateway)
    (problem,) = gateway.summary(1).problems
    assert problem.startswith("cannot connect to no-such-host.invalid: ")


def test_a_certificate_that_nobody_vouches_for_is_a_connection_error(
    open_gateway: Make, tmp_path: Path
) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subject = ["-subj", "/CN=localhost", "-days", "1", "-nodes"]
    files = ["-keyout", key, "-out", certificate]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", *subject, *files],
        check=True,
        capture_output=True,
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    with ModelServer(tls=context) as server:
        gateway = open_gateway(server=server)
        broken(gateway)
        (problem,) = gateway.summary(1).problems
        assert problem == (
            f"no TLS with {server.url.removeprefix('https://')}: self-signed certificate"
        )
        assert server.seen == []


def test_a_server_that_hangs_up_is_a_connection_error(open_gateway: Make) -> None:
    def hang_up(listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.recv(10)
            connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=hang_up, args=(listener,), daemon=True).start()
        server = ModelServer()
        server.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        gateway = open_gateway(server=server)
        broken(gateway)
        assert gateway.summary(1).unmetered == 1  # it may have done the work
        listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("model", ["stall", "stall-midway"])
def test_silence_ends_with_the_upstreams_time_out(open_gateway: Make, model: str) -> None:
    gateway = open_gateway(timeout_seconds=0.5)
    began = time.monotonic()
    with pytest.raises(BROKEN):
        gateway.stream(model)
    assert time.monotonic() - began < 60
    summary = gateway.summary(1)
    assert (summary.calls, summary.errors, summary.unmetered) == (1, 1, 1)
    (problem,) = summary.problems
    assert problem.endswith(" fell silent")


def test_an_agent_that_gives_up_first_does_not_leave_a_call_uncounted(open_gateway: Make) -> None:
    gateway = open_gateway(timeout_seconds=2)
    body = b'{"model": "stall"}'
    head = f"POST /openai/v1/x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {gateway.key}\r\n"
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=60) as connection:
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        assert gateway.server.begun.acquire(timeout=60)
    summary = gateway.summary(1)
    assert (summary.errors, summary.unmetered) == (1, 1)


def test_half_a_stream_is_half_a_stream(gateway: GatewayAttempt) -> None:
    with gateway.openai() as client:
        stream = client.chat.completions.create(model="half", messages=HELLO, stream=True)
        assert next(stream).choices[0].delta.content == "Hello "
        assert next(stream).choices[0].delta.content == "from t"
        with pytest.raises(BROKEN):
            next(stream)
    summary = gateway.summary(1)
    assert (summary.errors, summary.unmetered) == (1, 1)
    (problem,) = summary.problems
    assert problem.endswith(" broke its answer off")


def test_half_a_message_is_counted_as_far_as_it_came(gateway: GatewayAttempt) -> None:
    with (
        pytest.raises(BROKEN),
        gateway.anthropic().messages.stream(model="half", max_tokens=9, messages=HELLO) as stream,
    ):
        list(stream.text_stream)
    summary = gateway.summary(1)
    assert summary.usage == Usage(100, 40, 0, 1, 1)  # what its first event said
    assert (summary.errors, summary.unmetered) == (1, 1)


def test_a_server_error_is_tried_again_by_the_client_as_without_a_gateway(
    gateway: GatewayAttempt,
) -> None:
    with (
        gateway.anthropic(max_retries=1) as client,
        pytest.raises(anthropic.InternalServerError),
    ):
        client.messages.create(model="error-500", max_tokens=9, messages=HELLO)
    assert gateway.summary(2).errors == 2


def test_an_attempt_does_not_wait_for_ever_for_calls_that_hang(
    tmp_path: Path, server: ModelServer
) -> None:
    with attempt(tmp_path, server, closing_seconds=0.2) as gateway:
        threading.Thread(target=lambda: _ignore(gateway.ask, "stall"), daemon=True).start()
        assert server.begun.acquire(timeout=60)
    summary = gateway.gateway.summary()
    assert (summary.calls, summary.unmetered) == (1, 1)
    assert summary.problems == {"the attempt ended before the answer did": 1}
    assert server.gone.wait(60)
    assert gateway.calls(1)[0].error == "the attempt ended before the answer did"


def test_a_call_that_ends_soon_after_the_attempt_is_counted(
    tmp_path: Path, server: ModelServer
) -> None:
    with attempt(tmp_path, server, closing_seconds=60) as gateway:
        with gateway.openai() as client:
            stream = client.chat.completions.create(
                model="stall-midway", messages=HELLO, stream=True
            )
            next(iter(stream))
            stream.response.close()  # the agent has ended
        threading.Timer(0.3, server.release).start()
    summary = gateway.gateway.summary()
    assert (summary.usage.total_tokens, summary.unmetered) == (120, 0)


def test_at_the_end_nothing_listens_and_no_thread_is_left(
    tmp_path: Path, server: ModelServer
) -> None:
    with attempt(tmp_path, server) as gateway:
        gateway.ask()
        names = [thread.name for thread in threading.enumerate()]
        assert names.count("mlebench-gateway") == 1
    with pytest.raises(ConnectionRefusedError):
        gateway.raw(b"")
    assert "mlebench-gateway" not in [thread.name for thread in threading.enumerate()]


def test_figures_that_cannot_be_written_down_are_no_fault_of_the_agent(
    tmp_path: Path, server: ModelServer
) -> None:
    def work() -> None:
        with attempt(tmp_path, server) as gateway:
            broken(gateway)

    (tmp_path / "calls.jsonl").mkdir()
    with pytest.raises(InfrastructureError, match="cannot write down a call of the agent"):
        work()


def test_a_refusal_that_cannot_be_written_down_is_no_fault_of_the_agent(
    tmp_path: Path, server: ModelServer
) -> None:
    def work() -> None:
        with attempt(tmp_path, server) as gateway:
            assert gateway.request("/nowhere") == b""

    (tmp_path / "calls.jsonl").mkdir()
    with pytest.raises(InfrastructureError, match="cannot write down a call of the agent"):
        work()


def test_a_proxy_of_the_host_is_used_and_not_for_this_machine(
    monkeypatch: pytest.MonkeyPatch, open_gateway: Make
) -> None:
    asked: list[bytes] = []

    def answer(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            asked.append(connection.recv(65536))
            connection.sendall(b"HTTP/1.1 418 Teapot\r\nContent-Length: 0\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=answer, args=(listener,), daemon=True).start()
        proxy = f"http://127.0.0.1:{listener.getsockname()[1]}"
        for name in ("http_proxy", "HTTP_PROXY"):
            monkeypatch.setenv(name, proxy)
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        near, far = open_gateway(), ModelServer()
        far.url = "http://models.invalid"
        path = "/openai/v1/chat/completions"
        assert status_of(near.request(path, b'{"model": "gpt-5"}')) == 200
        assert status_of(open_gateway(server=far).request(path)) == 418
    assert asked[0].startswith(b"POST http://models.invalid/v1/chat/completions HTTP/1.1\r\n")


def test_a_fault_never_tells_a_key() -> None:
    with pytest.raises(upstream_client.UpstreamFault) as fault, upstream_client._faults("host"):
        raise ValueError(f"http://host/?key={KEY}")
    assert str(fault.value) == "the way to host broke: ValueError"


SESSION = """
import json, socket, sys, time
from pathlib import Path
from gateway_attempt import attempt
from model_server import ModelServer
server = ModelServer()
server.url = sys.argv[1]
with attempt(Path(sys.argv[2]), server) as gateway:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[2] + "/g.sock")
    listener.listen()
    gateway.gateway.serve(listener)
    print(json.dumps([gateway.port, gateway.key]), flush=True)
    time.sleep(600)
"""


def test_a_killed_session_takes_its_gateway_along(tmp_path: Path, server: ModelServer) -> None:
    session = subprocess.Popen(
        [sys.executable, "-c", SESSION, server.url, tmp_path],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(HELPERS)},
    )
    assert session.stdout is not None
    port, key = json.loads(session.stdout.readline())
    url = f"http://127.0.0.1:{port}/openai/v1"
    with openai.OpenAI(base_url=url, api_key=key, max_retries=0) as client:
        model: Any = "stall-midway"
        stream = iter(client.chat.completions.create(model=model, messages=HELLO, stream=True))
        next(stream)
        os.kill(session.pid, signal.SIGKILL)
        session.communicate()
        with pytest.raises(BROKEN):
            list(stream)
    assert server.gone.wait(60)  # the upstream has noticed, too
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)
    with socket.socket(socket.AF_UNIX) as left, pytest.raises(ConnectionRefusedError):
        left.connect(str(tmp_path / "g.sock"))


def _ignore(function: Callable[..., object], *arguments: object) -> None:
    try:
        function(*arguments)
    except Exception:
        return
