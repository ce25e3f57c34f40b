"""A list of hosts: what is on it and what is not."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pytest_mlebench.sandbox.egress_rules import Rule, parse_rules


@pytest.mark.parametrize(
    ("rule", "host", "port", "admitted"),
    [
        ("example.com", "example.com", 443, True),
        ("example.com", "example.com", 80, True),
        ("example.com", "example.com", 22, False),
        ("example.com:22", "example.com", 22, True),
        ("example.com:22", "example.com", 443, False),
        ("example.com", "www.example.com", 443, False),
        ("*.example.com", "www.example.com", 443, True),
        ("*.example.com", "example.com", 443, False),
        ("*.example.com", "evilexample.com", 443, False),
        ("Example.COM", "example.com", 443, True),
    ],
)
def test_rules(rule: str, host: str, port: int, admitted: bool) -> None:
    (parsed,) = parse_rules(f"allow:{rule}")
    assert parsed.admits(host, port) is admitted


def test_a_policy_is_a_list_of_rules() -> None:
    assert parse_rules("allow:a.b,*.c:8") == (Rule("a.b"), Rule("*.c", 8))


# SIOCSIFADDR of linux/sockios.h: in a network of its own, give the loopback a public address
IN_A_NETWORK_OF_ITS_OWN = """
import fcntl, socket, struct
from pytest_mlebench.sandbox.egress_rules import Rule
address = struct.pack("=HH4s8x", socket.AF_INET, 0, socket.inet_aton("8.8.4.4"))
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
    fcntl.ioctl(control, 0x8916, struct.pack("16s16s8x", b"lo:1", address))
for host in ("model.example", "*.example"):
    print([Rule(host).objection(address) is None for address in ("8.8.4.4", "8.8.8.8")])
"""


def test_a_public_address_of_this_machine_is_this_machine() -> None:
    command = ["unshare", "--user", "--map-root-user", "--net", sys.executable, "-c"]
    if subprocess.run([*command, ""], capture_output=True, check=False).returncode:
        pytest.skip("the kernel gives us no network of our own")
    command += [IN_A_NETWORK_OF_ITS_OWN]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "[False, True]\n" * 2, done.stderr
