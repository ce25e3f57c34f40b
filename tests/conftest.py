"""What all tests need: an interrupt that interrupts.

A shell starts what runs in its background with SIGINT ignored, and whatever the tests start would
inherit that; Ctrl-C is one of the things they try.
"""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Take interrupts, whoever started us."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
