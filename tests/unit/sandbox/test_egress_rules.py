"""A list of hosts: what is on it and what is not."""

from __future__ import annotations

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
