"""Hosts that xdist's own option names, as machines of a session."""

from __future__ import annotations

import pytest

from pytest_mlebench.machines.hosts_file import Machine
from pytest_mlebench.machines.tx_specs import machines_of


def test_specs_of_ssh_are_hosts_with_as_many_slots_as_they_have_workers() -> None:
    specs = ["2*ssh=-F my-config me@gpu1//python=/opt/py//chdir=work", "ssh=gpu2", "ssh=gpu2"]
    found = machines_of(specs)
    assert found is not None
    assert found.machines == (
        Machine("gpu1", ("-F", "my-config", "me@gpu1"), "/opt/py", folder="work", slots=2),
        Machine("gpu2", ("gpu2",), slots=2),
    )


@pytest.mark.parametrize(
    "specs", [[], ["popen"], ["ssh=gpu1", "2*popen"], ["socket=host:1"], ["ssh=gpu1//nice=5"]]
)
def test_whatever_else_a_spec_says_is_left_to_xdist(specs: list[str]) -> None:
    assert machines_of(specs) is None
