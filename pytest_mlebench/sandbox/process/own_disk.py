"""A disk of an attempt's own: a file system in a sparse file, mounted as its workspace.

    disk = OwnDisk.mount(home, limits)      # as root, where there are loop devices and mke2fs
    disk.image                              # the file behind it, which has no name any more
    disk.close()                            # and nothing of it is left

The kernel itself then bounds what an agent writes, and counts what nobody else can see: files
without a name, in whoever's hands they are. It takes a fifth of a second, most of it waiting, so
only attempts have one that may take an hour.
"""

from __future__ import annotations

import errno
import os
import shutil
import struct
import subprocess
import tempfile
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from pytest_mlebench.errors import SandboxError
from pytest_mlebench.limits import Limits
from pytest_mlebench.sandbox.disk import (
    RESERVE,
    Amount,
    DiskGuard,
    Free,
    Kind,
    Trouble,
    exceeded_limit,
    free_on,
)
from pytest_mlebench.sandbox.process import kernel

MIN_SECONDS = 3600.0  # attempts with a shorter time limit have none

# linux/loop.h: ioctls, flags, struct loop_config with a struct loop_info64 in it
_LOOP_CONFIGURE, _LOOP_GET_FREE = 0x4C0A, 0x4C82
_AUTOCLEAR, _DIRECT_IO = 4, 16
_LOOP_CONFIG = struct.Struct("=II 5Q 4I 64s 64s 32s 2Q 64x")
_BLOCK = 4096
_TRIES = 50  # for a loop device that nobody else takes in the meantime

_INODE = 256  # bytes of a file system's table for each file
_SLACK = Amount(32 * 2**20, 1000)  # beyond the limits, so that reaching them can be seen
_METADATA = 64  # a part of so many is for maps of the file system itself
_TINY = Amount(2**20, 16)  # for trying it out
_FEATURES = (
    "none,filetype,ext_attr,dir_index,dir_nlink,extent,flex_bg,sparse_super,large_file,huge_file,"
    "64bit,uninit_bg"
)  # no journal: nobody mounts it twice
_SYSTEM_PATH = "/usr/sbin:/sbin:/usr/bin:/bin"


@dataclass(frozen=True)
class OwnDisk:
    """A disk that is mounted at a place."""

    place: Path
    descriptor: int  # of the file behind it

    @classmethod
    def mount(cls, place: Path, limits: Limits) -> OwnDisk:
        """Make a disk of the limits' size and mount it at a new folder; else SandboxError."""
        try:
            place.mkdir(parents=True)
            try:
                return cls(place, _mount(place, Amount(limits.disk_bytes, limits.files)))
            except OSError:
                place.rmdir()
                raise
        except OSError as problem:
            raise SandboxError(f"cannot give the attempt a disk of its own: {problem}") from None

    @property
    def image(self) -> str:
        """Return a path of the file behind it, for other processes of root."""
        return f"/proc/{os.getpid()}/fd/{self.descriptor}"

    def close(self) -> None:
        """Unmount it; with that all that is on it is gone."""
        release(self.place)
        os.close(self.descriptor)


class OwnDiskGuard(DiskGuard):
    """Watches an agent that has a disk of its own, and the disk below."""

    def __init__(self, place: Path, image: str, *, limit: Amount, reserve: Amount = RESERVE):
        self._place, self._image = place, image
        super().__init__(place.parent, limit=limit, reserve=reserve)

    @property
    def used(self) -> Amount:
        """Return what the agent has written, by the word of the file system."""
        found = os.statvfs(self._place)
        return Amount(
            (found.f_blocks - found.f_bfree) * found.f_frsize, found.f_files - found.f_ffree
        )

    def look(self) -> Trouble | None:
        """Tell whether the agent has to end; cheap enough for every second."""
        used = self.used
        self.peak = max(self.peak, used.bytes)
        return exceeded_limit(used, self._limit) or ("disk-full" if self.is_full() else None)

    def _measure_all(self) -> None:
        """Do nothing: the file system has counted."""

    def _is_mostly_ours(self, disk: Path, kind: Kind, full: Free, now: Free) -> bool:
        # to the disk below the agent's files are a single one
        return kind == "bytes" and super()._is_mostly_ours(disk, kind, full, now)

    def _free_now(self) -> Free:
        """Return what is left on the disk below, less what is in memory and on its way there."""
        written = 0
        with suppress(OSError):  # a session that is gone: the agent ends, too
            written = Path(self._image).stat().st_blocks * 512
        waiting = max(0, self.used.bytes - written)
        return {
            disk: replace(free, bytes=max(0, free.bytes - waiting))
            for disk, free in super()._free_now().items()
        }


def is_due(limits: Limits, *, min_seconds: float = MIN_SECONDS) -> bool:
    """Tell whether an attempt should have a disk of its own: nobody but root can mount one."""
    return limits.time_seconds >= min_seconds and kernel.LINUX and kernel.is_admin()


@lru_cache(maxsize=1)
def find_problem() -> str:
    """Return why attempts cannot have disks of their own here, by making one; or nothing."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            os.close(_mount(Path(folder), _TINY))
        except OSError as problem:
            return str(problem)
        release(Path(folder))
    return ""


def release(place: Path) -> None:
    """Unmount the disk at a workspace, if there is one."""
    if kernel.LINUX and not place.is_symlink() and place.is_mount():
        kernel.unmount(str(place))


def _mount(place: Path, size: Amount) -> int:
    """Return the descriptor of the file that is the disk at *place*."""
    mode = place.stat().st_mode & 0o777
    with ExitStack() as stack:
        file = stack.enter_context(tempfile.TemporaryFile(dir=place.parent))
        image = file.fileno()
        _format(image, _with_overhead(size, free_on(place.parent)))
        name, device = _attach(image)
        stack.callback(os.close, device)  # what is mounted holds it; else it is free again
        kernel.mount(
            name,
            str(place),
            kind="ext4",
            flags=kernel.NO_SUID | kernel.NO_DEVICES | kernel.NO_ATIME,
            options="noinit_itable,discard",
        )
        (place / "lost+found").rmdir()
        place.chmod(mode)
        return os.dup(image)


def _with_overhead(size: Amount, free: Amount) -> Amount:
    """Return how large a file system is on which so much can be written, as far as it can."""
    files = size.files + _SLACK.files
    content = min(size.bytes, free.bytes) + _SLACK.bytes + files * _INODE
    total = content + content // _METADATA
    return Amount(-(-total // _BLOCK) * _BLOCK, files)


def _format(image: int, size: Amount) -> None:
    program = shutil.which("mke2fs", path=_SYSTEM_PATH)
    if program is None:
        raise FileNotFoundError(errno.ENOENT, "mke2fs is not installed (apt install e2fsprogs)")
    os.ftruncate(image, size.bytes)
    command = (
        *(program, "-q", "-F", "-t", "ext4", "-m", "0", "-b", str(_BLOCK), "-I", str(_INODE)),
        *("-N", str(size.files), "-O", _FEATURES),
        *("-E", "lazy_itable_init=1,packed_meta_blocks=1,nodiscard,root_owner=0:0"),
        f"/proc/self/fd/{image}",
    )
    done = subprocess.run(
        command,
        env={"MKE2FS_CONFIG": os.devnull, "LC_ALL": "C"},  # the host's own taste is no matter
        capture_output=True,
        text=True,
        errors="replace",
        pass_fds=[image],
        check=False,
    )
    if done.returncode:
        raise OSError(errno.EIO, f"mke2fs: {' '.join(done.stderr.split()) or done.returncode}")


def _attach(image: int) -> tuple[str, int]:
    """Return the name and a descriptor of a loop device that is *image* until nobody uses it."""
    import fcntl  # late on purpose: not on every system

    config = _LOOP_CONFIG.pack(
        *(image, _BLOCK, *[0] * 5, *[0] * 3, _AUTOCLEAR | _DIRECT_IO, b"mlebench", b"", b"", 0, 0)
    )
    for _ in range(_TRIES):
        control = os.open("/dev/loop-control", os.O_RDWR | os.O_CLOEXEC)
        try:
            number = fcntl.ioctl(control, _LOOP_GET_FREE)
        finally:
            os.close(control)
        name = f"/dev/loop{number}"
        device = os.open(name, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.ioctl(device, _LOOP_CONFIGURE, config)
        except OSError as problem:
            os.close(device)
            if problem.errno != errno.EBUSY:
                raise
        else:
            return name, device
    raise OSError(errno.EBUSY, "no loop device is free")
