"""Hosts that xdist's own option names: ``--tx 2*ssh=gpu1//python=/opt/mle/bin/python``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pytest_mlebench.machines.hosts_file import FOLDER, Machine, Machines

_KNOWN = ("ssh", "python", "chdir")  # all that we understand of a spec, as execnet writes it


def machines_of(specs: Sequence[str]) -> Machines | None:
    """Return the hosts of some specs; None unless each of them is one, in words we understand."""
    found: dict[str, Machine] = {}
    for spec in specs:
        machine = _machine(spec)
        if machine is None:
            return None
        known = found.get(machine.name)
        slots = (machine.slots or 1) + (0 if known is None else known.slots or 1)
        found[machine.name] = replace(machine, slots=slots)
    return Machines(Path("--tx"), tuple(found.values())) if found else None


def _machine(spec: str) -> Machine | None:
    number, star, rest = spec.partition("*")
    if not star or not number.isdecimal():
        number, rest = "1", spec
    words = dict(part.partition("=")[::2] for part in rest.split("//"))
    address = words.get("ssh", "").split()
    if not address or not words.keys() <= set(_KNOWN):
        return None
    name = address[-1].rpartition("@")[2]
    return Machine(
        name,
        tuple(address),
        python=words.get("python") or "python3",
        folder=words.get("chdir") or FOLDER,
        slots=int(number),
    )
