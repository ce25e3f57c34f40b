"""A copy of the session does not keep what it must not know."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pytest_mlebench.sandbox.process.kernel import LINUX

pytestmark = pytest.mark.skipif(not LINUX, reason="what is in memory is in /proc on Linux only")

PROGRAM = """
import os
from pytest_mlebench.sandbox.process.memory_erasure import erase_environment, erase_texts
key = os.environ["SECRET"]
held = {"plain": "Bearer " + key, "wide": key + "\\u4e2d",
        "wider": key + "\\U0001f600", "part": key[:9]}
data = bytearray(b"x" * 9_000_000) + key.encode()  # beyond one window
erase_texts([key])
assert held == {"plain": "Bearer " + "*" * 28, "wide": "*" * 28 + "\\u4e2d",
                "wider": "*" * 28 + "\\U0001f600", "part": "sk-real-0"}, held
assert data.endswith(b"x" + b"*" * 28)
assert os.environ["SECRET"] == "*" * 28
erase_environment()
assert not os.environ and not open("/proc/self/environ", "rb").read().strip(b"\\0")
os.environ["AFTER"] = "wards"
assert os.popen("echo $AFTER").read() == "wards\\n"
print("erased")
"""


def test_a_key_is_overwritten_wherever_it_is_and_in_whatever_form() -> None:
    environment = os.environ | {"SECRET": "sk-real-0123456789abcdefghij"}
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.stdout, result.stderr) == ("erased\n", "")
