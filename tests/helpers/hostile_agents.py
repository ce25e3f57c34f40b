"""Agents that are out to cheat or to do harm, by name: what each does, and how it has to end.

What an agent gets hold of it says itself; what cannot be seen from inside is looked for by
``hostile_scene`` afterwards. One that says nothing has been contained.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hostile_programs import (
    ABSTRACT_SOCKET,
    DEVICES,
    ENGINE_SOCKET,
    FILL_MEMFD,
    FILL_MEMORY,
    FILL_SEGMENTS,
    FILL_SHM,
    FLOOD,
    FORK_BOMB,
    FORK_CHAIN,
    KERNEL_CALLS,
    KERNEL_FILES,
    KEYRINGS,
    LEASES,
    LINKED_SUBMISSION,
    MANY_FILES,
    METADATA,
    NETWORK,
    OTHER_ATTEMPT,
    OTHER_PROCESSES,
    PRELUDE,
    PRIVILEGES,
    READ_ANSWERS,
    READ_OTHERS,
    SHARED_MEMORY,
    TERMINALS,
    TRACE,
    UNLINKED,
    UNLINKED_MAPPED,
)

SMALL = {"memory_bytes": 300_000_000, "shm_bytes": 2 * 10**9}


@dataclass(frozen=True)
class Attack:
    """One hostile agent."""

    name: str
    program: str
    network: str = ""  # what it is about; nothing: whatever the sandbox is tried with
    limits: Mapping[str, float] = field(default_factory=dict)
    ends: tuple[str, ...] = ()  # what must be the reason of its end, if it must be ended
    linked_store: bool = False

    @property
    def text(self) -> str:
        """Return the whole program."""
        return PRELUDE + self.program


OUT_OF_MEMORY = ("memory-limit", "exited")  # it is refused the memory, or ended for it

ATTACKS = (
    Attack("answers", READ_ANSWERS),
    Attack("answers-behind-a-link", READ_ANSWERS, linked_store=True),
    Attack("other-stores-and-homes", READ_OTHERS),
    Attack("engine-socket", ENGINE_SOCKET),
    Attack("other-processes", OTHER_PROCESSES),
    Attack("ptrace", TRACE),
    Attack("modes-and-times", METADATA),
    Attack("terminals", TERMINALS),
    Attack("shared-memory", SHARED_MEMORY),
    Attack("memory", FILL_MEMORY, limits=SMALL, ends=OUT_OF_MEMORY),
    Attack("memory-in-shm", FILL_SHM, limits=SMALL, ends=OUT_OF_MEMORY),
    Attack("memory-in-memfd", FILL_MEMFD, limits=SMALL, ends=OUT_OF_MEMORY),
    Attack("memory-in-segments", FILL_SEGMENTS, limits=SMALL, ends=OUT_OF_MEMORY),
    Attack("leases", LEASES),
    Attack("fork-chain", FORK_CHAIN),
    Attack("fork-bomb", FORK_BOMB, limits={"pids": 100}),
    Attack("abstract-sockets", ABSTRACT_SOCKET),
    Attack("keyrings", KEYRINGS),
    Attack("kernel-calls", KERNEL_CALLS),
    Attack("devices", DEVICES),
    Attack("kernel-files", KERNEL_FILES),
    Attack("privileges", PRIVILEGES),
    Attack("network-none", NETWORK, network="none"),
    Attack("other-attempts", OTHER_ATTEMPT),
    Attack("unlinked-files", UNLINKED, limits={"disk_bytes": 100_000_000}, ends=("disk-limit",)),
    Attack(
        "unlinked-mapped", UNLINKED_MAPPED, limits={"disk_bytes": 100_000_000}, ends=("disk-limit",)
    ),
    Attack("many-files", MANY_FILES, limits={"files": 5_000}, ends=("files-limit",)),
    Attack("linked-submission", LINKED_SUBMISSION),
    Attack("flood-of-output", FLOOD, limits={"log_bytes": 1_000_000}),
)
