"""The devices of the GPUs that an attempt has leased: those, and no other attempt's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

# What every CUDA program opens beside the GPU itself, and the devices of other makers.
_SHARED = (
    *("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset", "nvidia-caps/*"),
    *("kfd", "dri/*", "dxg", "accel*", "accel/*", "hl*", "neuron*", "infiniband/*"),
)
_FACTS = "driver/nvidia/gpus/*/information"  # of the driver, one file for each GPU
_UUID = re.compile(r"^GPU UUID:\s*(\S+)", re.MULTILINE)
_MINOR = re.compile(r"^Device Minor:\s*(\d+)", re.MULTILINE)


def gpu_devices(leased: Iterable[str], *, root: Path = Path("/")) -> list[str]:
    """Return the devices that programs need to use the leased GPUs, by their UUIDs."""
    devices = root / "dev"
    shared = [path for name in _SHARED for path in sorted(devices.glob(name))]
    return [str(path) for path in (*_leased(set(leased), root), *shared) if path.is_char_device()]


def _leased(uuids: set[str], root: Path) -> Iterator[Path]:
    numbers = {}
    for file in (root / "proc").glob(_FACTS):
        text = file.read_text(encoding="utf-8", errors="replace")
        if (uuid := _UUID.search(text)) and (minor := _MINOR.search(text)):
            numbers[uuid[1]] = minor[1]
    if not uuids <= numbers.keys():  # parts of a GPU have names of their own: all that there is
        yield from sorted((root / "dev").glob("nvidia[0-9]*"))
        return
    for name in sorted(uuids):
        yield root / "dev" / f"nvidia{numbers[name]}"
