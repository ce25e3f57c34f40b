"""What containers reach: nothing, everything, or the hosts on a list."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from docker_images import BUSYBOX, PYTHON
from docker_jobs import SMALL, JobMaker
from sandbox_job import wait_until

from pytest_mlebench.agent import Agent
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.sandbox import Job
from pytest_mlebench.sandbox.docker import DockerSandbox, Engine
from pytest_mlebench.sandbox.docker.labels import PREFIX, this_process

WORD = "the-answer-of-the-server"

# tries each address given, plainly and through a tunnel, with and without the proxy
PROBE = """
import http.client, json, os, socket, urllib.parse, urllib.request
proxy = urllib.parse.urlsplit(os.environ.get("HTTP_PROXY", "http://127.0.0.1:1"))
def plain(address):
    return urllib.request.urlopen(f"http://{address}/", timeout=5).read().decode()
def tunnel(address):
    connection = http.client.HTTPConnection(proxy.hostname, proxy.port, timeout=5)
    host, port = address.split(":")
    connection.set_tunnel(host, int(port))
    connection.request("GET", "/")
    return connection.getresponse().read().decode()
def direct(address):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    return opener.open(f"http://{address}/", timeout=5).read().decode()
def datagram(address):
    host, port = address.split(":")
    asking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    asking.settimeout(1)
    asking.sendto(b"hello", (host, int(port)))
    return asking.recv(100).decode()
found = {}
for address in os.environ["ADDRESSES"].split():
    for way in (plain, tunnel, direct, datagram):
        try:
            found[f"{way.__name__} {address}"] = way(address)
        except Exception as problem:
            found[f"{way.__name__} {address}"] = f"{type(problem).__name__}: {problem}"
try:
    socket.getaddrinfo("secret.tunnel.example", 80)
    found["name service"] = "answers"
except OSError as problem:
    found["name service"] = "none"
request = urllib.request.Request(os.environ["MLE_VALIDATE_URL"], data=b"id,target\\n1,0\\n")
found["format check"] = json.load(urllib.request.urlopen(request))["result"]
with open("/home/logs/found.json", "w") as file:
    json.dump(found, file)
"""


class Word(BaseHTTPRequestHandler):
    """Say the word."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(WORD.encode())

    def log_message(self, *_: object) -> None:
        """Be silent."""


@pytest.fixture
def service() -> Iterator[int]:
    """A service of the host, open to every interface, over TCP and UDP."""
    server = ThreadingHTTPServer(("0.0.0.0", 0), Word)
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind(("0.0.0.0", server.server_port))

    def answer() -> None:
        while True:
            try:
                _, sender = datagrams.recvfrom(100)
            except OSError:
                return
            datagrams.sendto(WORD.encode(), sender)

    for work in (server.serve_forever, answer):
        threading.Thread(target=work, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()
    datagrams.close()


@pytest.fixture
def bridge(engine: Engine) -> Iterator[dict[str, Any]]:
    """How a server in another container is attached to the default network."""
    api = engine.api
    script = f"mkdir /tmp/w; echo {WORD} > /tmp/w/index.html; exec httpd -f -p 8000 -h /tmp/w"
    made = api.create_container(
        BUSYBOX, ["sh", "-c", script], labels=this_process().labels(), host_config={}
    )
    try:
        api.start(made["Id"])
        found = api.inspect_container(made["Id"])["NetworkSettings"]["Networks"]["bridge"]
        for _ in range(100):
            try:
                socket.create_connection((found["IPAddress"], 8000), timeout=1).close()
                break
            except OSError:
                time.sleep(0.1)
        yield found
    finally:
        api.remove_container(made["Id"], force=True)


@pytest.fixture
def neighbour(bridge: dict[str, Any]) -> str:
    """The address of a server in another container."""
    return f"{bridge['IPAddress']}:8000"


@pytest.fixture
def gateway(bridge: dict[str, Any]) -> str:
    """The host's own address, seen from a container.

    A new engine lists it with its containers; with the network itself only after a restart.
    """
    return str(bridge["Gateway"])


def probe(make_job: JobMaker, network: str, *addresses: str) -> Job:
    return make_job(
        agent=Agent(
            name="probe",
            image=PYTHON,
            command=("python3", "-c", PROBE),
            env={"ADDRESSES": " ".join(addresses)},
        ),
        network=network,
    )


def found(job: Job) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((job.artefacts / "logs/found.json").read_text())
    return content


def test_a_listed_server_in_another_container_is_reached_and_nothing_else(
    sandbox: DockerSandbox, make_job: JobMaker, neighbour: str, gateway: str, service: int
) -> None:
    others = [f"{gateway}:{service}", f"host.docker.internal:{service}"]
    job = probe(make_job, f"allow:{neighbour}", neighbour, *others)
    outcome = sandbox.run(job)
    seen = found(job)
    assert {way for way, answer in seen.items() if WORD in answer} == {
        f"plain {neighbour}",
        f"tunnel {neighbour}",
    }
    assert seen["name service"] == "none"
    assert seen["format check"] == "Submission is valid."
    assert "Network is unreachable" in seen[f"direct {neighbour}"]
    egress = outcome.details["egress"]
    assert (egress["allowed"], egress["refused"]) == (2, 4)
    assert egress["refused_hosts"] == dict.fromkeys(others, 2)
    lines = [json.loads(line) for line in (job.folder / "egress.jsonl").read_text().splitlines()]
    assert len(lines) == 6
    assert {line["method"] for line in lines} == {"GET", "CONNECT"}


def test_a_service_of_the_host_is_reached_only_where_it_is_listed(
    sandbox: DockerSandbox, make_job: JobMaker, service: int
) -> None:
    here = f"host.docker.internal:{service}"
    job = probe(make_job, f"allow:{here}", here)
    sandbox.run(job)
    assert WORD in found(job)[f"plain {here}"]


def test_without_a_network_nothing_is_reached_and_there_is_no_proxy(
    sandbox: DockerSandbox, make_job: JobMaker, neighbour: str, gateway: str, service: int
) -> None:
    job = probe(make_job, "none", neighbour, f"{gateway}:{service}")
    outcome = sandbox.run(job)
    seen = found(job)
    assert not [way for way, answer in seen.items() if WORD in answer]
    assert seen["format check"] == "Submission is valid."
    assert "egress" not in outcome.details


def test_with_an_open_network_the_probe_does_reach_the_servers(
    sandbox: DockerSandbox, make_job: JobMaker, neighbour: str, gateway: str, service: int
) -> None:
    host = f"{gateway}:{service}"
    job = probe(make_job, "open", neighbour, host)
    sandbox.run(job)
    seen = found(job)
    reached = {way for way, answer in seen.items() if WORD in answer}
    assert {f"direct {host}", f"datagram {host}"} <= reached
    assert f"direct {neighbour}" not in reached, "containers of others are not the host's network"


# says its address, serves a word there, and tries another's until somebody says that it is enough
MEETING = """
import http.server, json, os, pathlib, socket, threading, time, urllib.request
logs = pathlib.Path("/home/logs")
class Word(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"WORD")
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(("0.0.0.0", 8000), Word)
threading.Thread(target=server.serve_forever, daemon=True).start()
(logs / "address.new").write_text(socket.gethostbyname(socket.gethostname()))
(logs / "address.new").rename(logs / "address")
while not (logs / "other").exists():
    time.sleep(0.1)
other = (logs / "other").read_text()
for host in (other, "127.0.0.1"):
    try:
        answer = urllib.request.urlopen(f"http://{host}:8000/", timeout=5).read().decode()
    except OSError as problem:
        answer = "refused"
    print(answer, flush=True)
(logs / "done").touch()
while not (logs / "end").exists():
    time.sleep(0.1)
""".replace("WORD", WORD)


def test_attempts_with_an_open_network_do_not_reach_each_other(
    sandbox: DockerSandbox, make_job: JobMaker
) -> None:
    agent = Agent(name="meeting", image=PYTHON, command=("python3", "-c", MEETING))
    jobs = [make_job(agent=agent, network="open") for _ in range(2)]
    attempts = [threading.Thread(target=sandbox.run, args=(job,)) for job in jobs]
    for attempt in attempts:
        attempt.start()
    logs = [job.folder / "home" / "logs" for job in jobs]
    assert wait_until(lambda: all((folder / "address").exists() for folder in logs), 60)
    addresses = [(folder / "address").read_text() for folder in logs]
    for folder, other in zip(logs, reversed(addresses), strict=True):
        (folder / "other.new").write_text(other)
        (folder / "other.new").rename(folder / "other")
    assert wait_until(lambda: all((folder / "done").exists() for folder in logs), 60)
    for folder in logs:
        (folder / "end").touch()
    for attempt in attempts:
        attempt.join()
    assert len(set(addresses)) == 2
    assert [job.log.read_text() for job in jobs] == [f"refused\n{WORD}\n"] * 2


def test_the_network_of_an_attempt_is_labelled_and_goes_with_it(
    sandbox: DockerSandbox, engine: Engine, make_job: JobMaker
) -> None:
    def ours() -> list[dict[str, Any]]:
        networks = engine.api.networks(filters={"label": f"{PREFIX}run=tests-network"})
        return [engine.api.inspect_network(network["Id"]) for network in networks]

    job = make_job("while [ ! -e /home/logs/end ]; do sleep 0.1; done", network="open")
    job = replace(job, labels={"run": "tests-network"})
    attempt = threading.Thread(target=sandbox.run, args=(job,))
    attempt.start()
    assert wait_until(lambda: [network for network in ours() if network["Containers"]], 60)
    (network,) = ours()
    (job.folder / "home" / "logs" / "end").touch()
    attempt.join()
    assert network["Options"] == {"com.docker.network.bridge.enable_icc": "false"}
    assert network["Labels"].items() >= this_process().labels().items()
    assert ours() == []


def test_a_list_of_hosts_needs_an_engine_of_this_machine(
    sandbox: DockerSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = replace(sandbox.engine.facts, local=False, host="far")
    monkeypatch.setattr(sandbox.engine, "facts", elsewhere)
    agent = Agent(name="shell", image=BUSYBOX, command=("true",))
    with pytest.raises(ConfigError) as problem:
        sandbox.preflight(agent, SMALL, "allow:a.example")
    assert str(problem.value) == (
        "--mle-network=allow:a.example needs an engine on this machine, and this one runs on far: "
        "run pytest there, or use --mle-network=none or open"
    )


def test_connections_that_stay_open_leave_room_for_others(
    sandbox: DockerSandbox, make_job: JobMaker, service: int
) -> None:
    holding = f"""
import os, socket, urllib.request
held = []
for _ in range(100):
    connection = socket.create_connection(("127.0.0.1", 3128))
    connection.sendall(b"CONNECT host.docker.internal:{service} HTTP/1.0\\r\\n\\r\\n")
    assert connection.recv(100).startswith(b"HTTP/1.1 200")
    held.append(connection)
print(urllib.request.urlopen("http://host.docker.internal:{service}/", timeout=10).read().decode())
"""
    job = make_job(
        agent=Agent(name="holding", image=PYTHON, command=("python3", "-c", holding)),
        network=f"allow:host.docker.internal:{service}",
    )
    outcome = sandbox.run(job)
    assert job.log.read_text() == f"{WORD}\n"
    assert outcome.details["egress"]["allowed"] == 101
