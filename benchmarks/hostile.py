"""Every hostile agent in every sandbox: contained or not.

    python benchmarks/hostile.py                 everything that this machine has
    python benchmarks/hostile.py --short         a few agents in each, in a minute or two
    python benchmarks/hostile.py ATTACK …        single agents

Prints a table and ends with 1 if anything got through, or could not be tried though it should
have been. As root it covers the process sandbox and the rootless one for root and for an ordinary
user, with our own walls and bubblewrap's (if it is installed), the process sandbox with a disk for
each attempt (if there are any), and containers with each network (if there is an engine).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HELPERS = Path(__file__).parents[1] / "tests" / "helpers"
sys.path.insert(0, str(HELPERS))

from hostile_agents import ATTACKS
from other_user import command_as_user

from pytest_mlebench.errors import ConfigError
from pytest_mlebench.limits import STANDARD
from pytest_mlebench.sandbox.process import bubblewrap, own_disk

SHORT = ("answers-behind-a-link", "engine-socket", "other-processes", "memory-in-memfd", "keyrings")
AT_A_TIME = 2
CONTAINED, HOLE, UNTRIED = "contained", "HOLE", "not tried"

Results = dict[str, list[str]]  # the holes, by attack


def columns() -> Iterator[tuple[str, list[str]]]:
    """Yield each sandbox that this machine has, and the command that tries attacks in it."""
    script = [sys.executable, str(HELPERS / "hostile_scene.py")]
    required = os.environ.get("MLEBENCH_REQUIRE_BUBBLEWRAP")
    builders = ["namespaces", *(["bubblewrap"] if bubblewrap.find() or required else [])]
    for builder in (*builders, *(f"rootless-{each}" for each in builders)):
        if os.geteuid() == 0:
            yield f"{builder} root", [*script, builder]
            yield f"{builder} user", command_as_user(*script, builder)
        else:
            yield f"{builder} user", [*script, builder]
    if own_disk.is_due(STANDARD) and not own_disk.find_problem():
        yield f"{builders[-1]} disk", [*script, f"{builders[-1]}-disk"]
    if _engine_answers() or os.environ.get("MLEBENCH_REQUIRE_ENGINE"):  # else it is not tried
        for network in ("none", "open", "allow"):
            yield f"docker {network}", [*script, f"docker-{network}"]


def try_out(command: list[str], attacks: list[str]) -> Results:
    """Return what came of attacks in one sandbox."""
    variables = os.environ | {"PYTHONPATH": str(HELPERS)}
    done = subprocess.run(
        [*command, *attacks], env=variables, stdout=subprocess.PIPE, text=True, check=False
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {line["attack"]: line["holes"] for line in lines}


def main(arguments: list[str]) -> int:
    """Print the table."""
    attacks = [*SHORT] if arguments == ["--short"] else arguments
    attacks = attacks or [attack.name for attack in ATTACKS]
    tried = dict(columns())
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        found = pool.map(lambda command: try_out(command, attacks), tried.values())
        results = dict(zip(tried, found, strict=True))
    table = [["", *results]]
    for name in attacks:
        table.append([name, *(_verdict(result, name) for result in results.values())])
    widths = [max(len(row[place]) for row in table) for place in range(len(table[0]))]
    for row in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))
    for column, result in results.items():
        for name, holes in result.items():
            for hole in holes:
                print(f"{column}: {name}: {hole}")
    failed = any(cell in {HOLE, UNTRIED} for row in table for cell in row)
    print(
        f"{len(attacks)} agents, {len(results)} sandboxes: {'HOLES' if failed else 'all contained'}"
    )
    return int(failed)


def _verdict(result: Results, name: str) -> str:
    if name not in result:
        return UNTRIED
    return HOLE if result[name] else CONTAINED


def _engine_answers() -> bool:
    try:
        from pytest_mlebench.sandbox.docker import Engine

        return Engine().facts.local
    except ConfigError as problem:
        print(f"no containers: {problem}", file=sys.stderr)
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
