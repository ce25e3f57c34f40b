"""What the gateway adds to calls of models, against a direct connection, side by side in one run.

    python benchmarks/gateway.py [--rounds 200] [--check]

A local upstream and the gateway run in processes of their own. The same calls go to the upstream
directly and through the gateway, in turn, so that a busy machine slows both: whole answers (latency
of a call), streams whose pieces carry the time at which they were written (latency of a piece),
many streams at once (throughput), and the memory of the gateway's process before and after. Then
one client as a process of its own makes the same calls in three places: at the upstream, at the
gateway, and inside the process sandbox without a network, from where only the gateway is reached.
Its latency and its memory are told as ratios to the first.
``--check`` fails beyond the targets: 5 ms more at the median per call and per piece, the sandbox
included.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HELPERS = Path(__file__).parents[1] / "tests" / "helpers"
sys.path.insert(0, str(HELPERS))

import aiohttp
from gateway_attempt import VARIABLE
from model_server import KEY

TARGET_SECONDS = 0.005
AT_ONCE = 100
PIECES = 50
PAUSE = 0.01

# every piece of a stream is the time at which it was made
UPSTREAM = """
import sys, time
from model_server import ModelServer
pieces, pause = int(sys.argv[1]), float(sys.argv[2])
class Clock(ModelServer):
    def _parts(self, body):
        return (f"{time.monotonic():.6f}" for _ in range(pieces))
with Clock(pause=pause) as server:
    print(server.url, flush=True)
    sys.stdin.read()
"""

GATEWAY = """
import json, socket, sys
from pathlib import Path
from gateway_attempt import agent_of
from model_server import ModelServer
from pytest_mlebench.budget import Budget
from pytest_mlebench.gateway.gateway import Gateway
folder, server = Path(sys.argv[1]), ModelServer()
server.url = sys.argv[2]
agent = agent_of(server, budget=Budget(usd=1e6, tokens=10**12))
with Gateway(agent, folder, budget=agent.budget) as gateway:
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    gateway.serve(listener)
    print(json.dumps(gateway.environment(f"http://127.0.0.1:{listener.getsockname()[1]}")))
    sys.stdout.flush()
    sys.stdin.read()
"""

# the client of the second part, on nothing but the standard library
CLIENT = """
import http.client, json, os, sys, threading, time, urllib.parse
url = urllib.parse.urlsplit(os.environ["OPENAI_BASE_URL"])
headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"],
           "Content-Type": "application/json"}
def ask(connection, **more):
    body = json.dumps({"model": "gpt-5", "messages": [], "max_tokens": 20} | more)
    connection.request("POST", url.path + "/chat/completions", body, headers)
    return connection.getresponse().read()
def stream():
    assert ask(http.client.HTTPConnection(url.hostname, url.port), stream=True)
connection = http.client.HTTPConnection(url.hostname, url.port)
ask(connection)
seconds = []
for _ in range(int(sys.argv[1])):
    began = time.monotonic()
    ask(connection)
    seconds.append(time.monotonic() - began)
threads = [threading.Thread(target=stream) for _ in range(100)]
for thread in threads: thread.start()
for thread in threads: thread.join()
status = open("/proc/self/status").read()  # getrusage(2) would tell the peak of who started us
peak = int(status.partition("VmHWM:")[2].split()[0]) * 1024
print(json.dumps({"seconds": seconds, "bytes": peak}), flush=True)
"""

SANDBOXED = """
import sys
from dataclasses import replace
from pathlib import Path
from gateway_attempt import agent_of
from model_server import ModelServer
from sandbox_job import Place
from pytest_mlebench.budget import Budget
from pytest_mlebench.gateway.gateway import Gateway
from pytest_mlebench.sandbox.process.process_sandbox import ProcessSandbox
folder, server = Path(sys.argv[1]), ModelServer()
server.url = sys.argv[2]
command = (sys.executable, "-c", sys.argv[3], sys.argv[4])
agent = replace(agent_of(server, budget=Budget(usd=1e6, tokens=10**12)), command=command)
job = Place(folder).job(agent, network="none", time_seconds=600)
with Gateway(agent, job.folder, budget=agent.budget) as gateway:
    ProcessSandbox().run(replace(job, services=(gateway,)))
print(job.log.read_text().splitlines()[-1], flush=True)
"""


def main() -> int:
    """Measure, print, and judge if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--check", action="store_true", help="fail beyond the targets")
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        program(UPSTREAM, str(PIECES), str(PAUSE)) as (_, url),
        program(GATEWAY, folder, url) as (pid, variables),
    ):
        found = json.loads(variables)
        verdicts = asyncio.run(measure(url, found, pid, arguments.rounds))
        verdicts.append(places(Path(folder), url, found, arguments.rounds))
    return int(arguments.check and not all(verdicts))


@contextmanager
def program(text: str, *arguments: str) -> Iterator[tuple[int, str]]:
    """Yield the id of a process and the line that it prints; it ends with its stdin."""
    process = subprocess.Popen(
        [sys.executable, "-c", text, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(HELPERS), VARIABLE: KEY},
    )
    assert process.stdout is not None
    try:
        yield process.pid, process.stdout.readline().strip()
    finally:
        process.communicate()


async def measure(url: str, variables: dict[str, str], gateway: int, rounds: int) -> list[bool]:
    """Run all measurements with one gateway."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        direct = Client(session, f"{url}/v1", KEY)
        ours = Client(session, variables["OPENAI_BASE_URL"], variables["OPENAI_API_KEY"])
        return [
            await calls(direct, ours, rounds),
            await pieces(direct, ours, max(1, rounds // 20)),
            await throughput(direct, ours, gateway),
        ]


def places(folder: Path, url: str, variables: dict[str, str], rounds: int) -> bool:
    """Compare one client at the upstream, at the gateway, and without a network."""
    direct = {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": KEY}
    found = {"direct": client(str(rounds), **direct), "gateway": client(str(rounds), **variables)}
    from pytest_mlebench.sandbox.process.walls import strongest  # late on purpose: tries walls

    if "net" in strongest(offline=True).kinds:
        with program(SANDBOXED, str(folder), url, CLIENT, str(rounds)) as (_, line):
            found["sandbox, network none"] = json.loads(line)
    else:
        print("sandbox without a network: not measured, the kernel gives no namespaces")
    base = found["direct"]
    usual = statistics.median(base["seconds"])
    print("one client in a process of its own, and 100 streams at once in it:")
    verdicts = []
    for name, one in found.items():
        median = statistics.median(one["seconds"])
        verdicts.append(median - usual <= TARGET_SECONDS)
        print(
            f"  {name:22} median {median * 1e3:7.2f} ms (x{median / usual:.2f})"
            f"   memory {one['bytes'] / 1e6:5.1f} MB (x{one['bytes'] / base['bytes']:.2f})"
        )
    return all(verdicts)


def client(rounds: str, **variables: str) -> dict[str, Any]:
    """Return what the client says of itself at one place."""
    result = subprocess.run(
        [sys.executable, "-c", CLIENT, rounds],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=True,
    )
    content: dict[str, Any] = json.loads(result.stdout)
    return content


class Client:
    """Asks one place."""

    def __init__(self, session: aiohttp.ClientSession, url: str, key: str) -> None:
        self._session = session
        self._url = f"{url}/chat/completions"
        self._headers = {"Authorization": f"Bearer {key}"}

    async def call(self) -> float:
        """Return the seconds that a whole answer takes."""
        began = time.monotonic()
        body = {"model": "gpt-5", "messages": [], "max_tokens": 20}
        async with self._session.post(self._url, json=body, headers=self._headers) as answer:
            await answer.json()
        return time.monotonic() - began

    async def stream(self) -> list[float]:
        """Return how many seconds old each piece of a stream is when it arrives."""
        ages = []
        body = {"model": "gpt-5", "messages": [], "stream": True}
        async with self._session.post(self._url, json=body, headers=self._headers) as answer:
            async for line in answer.content:
                if b'"content":"' in line:
                    made = float(line.partition(b'"content":"')[2].partition(b'"')[0])
                    ages.append(time.monotonic() - made)
        return ages


async def calls(direct: Client, ours: Client, rounds: int) -> bool:
    """Compare whole answers, one after the other."""
    await direct.call()
    await ours.call()
    pairs = [(await direct.call(), await ours.call()) for _ in range(rounds)]
    return judge("a call", [one for one, _ in pairs], [two for _, two in pairs])


async def pieces(direct: Client, ours: Client, rounds: int) -> bool:
    """Compare the ages of pieces, one stream after the other."""
    before, after = [], []
    for _ in range(rounds):
        before += await direct.stream()
        after += await ours.stream()
    return judge("a piece of a stream", before, after)


async def throughput(direct: Client, ours: Client, gateway: int) -> bool:
    """Compare many streams at once, and see what the gateway's memory does."""
    seconds, memory = [], [resident(gateway)]
    for client in (direct, ours, direct, ours):
        began = time.monotonic()
        ages = await asyncio.gather(*(client.stream() for _ in range(AT_ONCE)))
        seconds.append(time.monotonic() - began)
        memory.append(resident(gateway))
        if not all(len(one) == PIECES for one in ages):
            print(f"{AT_ONCE} streams at once: pieces were lost")
            return False
    alone, together = min(seconds[0], seconds[2]), min(seconds[1], seconds[3])
    number = AT_ONCE * PIECES
    print(
        f"{AT_ONCE} streams at once: {number / alone:.0f} pieces/s direct, "
        f"{number / together:.0f} through the gateway (x{together / alone:.2f} the time)"
    )
    print(
        f"memory of the gateway: {memory[0] / 1e6:.0f} MB at first, "
        f"{(memory[2] - memory[0]) / 1e6:+.1f} MB after {AT_ONCE} streams, "
        f"{(memory[4] - memory[2]) / 1e6:+.1f} MB after {AT_ONCE} more"
    )
    return True


def judge(what: str, before: list[float], after: list[float]) -> bool:
    """Print two distributions and tell whether their medians are near enough."""
    added = statistics.median(after) - statistics.median(before)
    rows = (("direct", before), ("through the gateway", after))
    print(f"latency of {what} ({len(before)} each):")
    for name, values in rows:
        ordered = sorted(values)
        print(
            f"  {name:20} median {statistics.median(values) * 1e3:7.2f} ms"
            f"   95 % {ordered[int(len(ordered) * 0.95)] * 1e3:7.2f} ms"
        )
    ratio = statistics.median(after) / statistics.median(before)
    print(
        f"  added at the median: {added * 1e3:.2f} ms, x{ratio:.2f} "
        f"(target: {TARGET_SECONDS * 1e3:.0f} ms)"
    )
    return added <= TARGET_SECONDS


def resident(pid: int) -> int:
    """Return the memory of a process in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (size,) = (line.split()[1] for line in lines if line.startswith("VmRSS:"))
    return int(size) * 1024


if __name__ == "__main__":
    sys.exit(main())
