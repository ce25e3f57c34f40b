"""The hosts that ``--mle-network=allow:…`` lists, and at which addresses they may be."""

from __future__ import annotations

import errno
import ipaddress
import socket
from dataclasses import dataclass

THIS_HOST = "host.docker.internal"
PORTS = (80, 443)

_NOT_OURS = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


@dataclass(frozen=True)
class Rule:
    """A host that may be reached, or all below a domain."""

    host: str
    port: int | None = None

    @property
    def is_wildcard(self) -> bool:
        """Tell whether the rule is for all names below a domain."""
        return self.host.startswith("*.")

    def admits(self, host: str, port: int) -> bool:
        """Tell whether a host and port are meant."""
        if port != self.port if self.port else port not in PORTS:
            return False
        return host.endswith(self.host[1:]) if self.is_wildcard else host == self.host

    def objection(self, address: str) -> str | None:
        """Return why the host must not be at an address, or None."""
        if self.host == THIS_HOST or is_address(self.host):
            return None
        found = ipaddress.ip_address(address.partition("%")[0])
        found = getattr(found, "ipv4_mapped", None) or found
        if (self.is_wildcard and not found.is_global) or (
            found.is_loopback
            or found.is_link_local
            or found.is_unspecified
            or found.is_multicast
            or found.is_reserved
        ):
            return "its name leads to an address that is not public"
        if _is_own(found):
            return f"its name leads to this machine, whose services are listed as {THIS_HOST}:PORT"
        return None


def parse_rules(policy: str) -> tuple[Rule, ...]:
    """Return the rules of a policy ``allow:HOST[:PORT],…``."""
    rules = []
    for text in policy.removeprefix("allow:").split(","):
        host, _, port = text.partition(":")
        rules.append(Rule(host.lower().rstrip("."), int(port) if port else None))
    return tuple(rules)


def is_address(host: str) -> bool:
    """Tell whether a host is an address rather than a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_own(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Ask the kernel: a socket can be bound to the addresses of this machine only (ip(7), bind(2)).

    With ``net.ipv4.ip_nonlocal_bind`` it can be bound to any, and every address counts as our own.
    """
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError as problem:
        if problem.errno in _NOT_OURS:
            return False
        raise
    return True
