"""What the gateway adds to calls of models, against a direct connection, side by side in one run.

    python benchmarks/gateway.py [--rounds 200] [--check]

A local upstream and the gateway run in processes of their own. The same calls go to the upstream
directly and through the gateway, in turn, so that a busy machine slows both: whole answers (latency
of a call), streams whose pieces carry the time at which they were written (latency of a piece),
many streams at once (throughput), and the memory of the gateway's process before and after.
``--check`` fails beyond the targets: 5 ms more at the median per call and per piece.
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
from pytest_mlebench.gateway.gateway import open_gateway
folder, server = Path(sys.argv[1]), ModelServer()
server.url = sys.argv[2]
agent = agent_of(server, budget=Budget(usd=1e6, tokens=10**12))
with open_gateway(agent, folder, run_folder=folder) as gateway:
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    gateway.serve(listener)
    print(json.dumps(gateway.environment(f"http://127.0.0.1:{listener.getsockname()[1]}")))
    sys.stdout.flush()
    sys.stdin.read()
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
        verdicts = asyncio.run(measure(url, json.loads(variables), pid, arguments.rounds))
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
    print(f"  added at the median: {added * 1e3:.2f} ms (target: {TARGET_SECONDS * 1e3:.0f} ms)")
    return added <= TARGET_SECONDS


def resident(pid: int) -> int:
    """Return the memory of a process in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (size,) = (line.split()[1] for line in lines if line.startswith("VmRSS:"))
    return int(size) * 1024


if __name__ == "__main__":
    sys.exit(main())
