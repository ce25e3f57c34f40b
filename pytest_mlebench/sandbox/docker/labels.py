"""Labels: what a container, an image, a network or a volume of ours is, and whose."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_mlebench.host.process_identity import OWNED, PREFIX, Owner, this_process

__all__ = ["COPIED", "OWNED", "PREFIX", "PREPARED", "Owner", "owner_of", "this_process"]

PREPARED = f"{PREFIX}prepared"  # an image that was made ready for attempts
COPIED = f"{PREFIX}data"  # a volume with a dataset


def owner_of(labels: Mapping[str, str]) -> Owner | None:
    """Return the owner that labels name, or None if they are not ours."""
    number = labels.get(f"{PREFIX}pid", "")
    if OWNED not in labels or not number.isdecimal():
        return None
    host, boot, started = (labels.get(PREFIX + key, "") for key in ("host", "boot", "started"))
    return Owner(host, boot, int(number), started)
