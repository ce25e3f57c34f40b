"""What an agent sees in its image: the image's files and the contract's folders."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from pytest_mlebench.sandbox import Job, contract_environment
from pytest_mlebench.sandbox.account import AGENT_DIR, HOME, Account, choose_account, passwd_with
from pytest_mlebench.sandbox.mounts import extra_mounts
from pytest_mlebench.sandbox.process.devices import gpu_devices
from pytest_mlebench.sandbox.process.namespaces import HOST_NAME
from pytest_mlebench.sandbox.process.order import Step, Surroundings
from pytest_mlebench.sandbox.process.process_sandbox import visible_gpus
from pytest_mlebench.sandbox.process.view import KERNEL, host_text, hosts_file, interpreter_view
from pytest_mlebench.sandbox.rootless.driver_libraries import DRIVER, driver_libraries
from pytest_mlebench.sandbox.rootless.image_cache import UnpackedImage
from pytest_mlebench.sandbox.rootless.mount_points import make_mount_point

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"  # Docker's own default


def surroundings(
    job: Job, home: Path, image: UnpackedImage, *, user: int | None, validate_url: str
) -> Surroundings:
    """Return what a job's agent finds in its image, with *home* laid out for it."""
    account = _account(image, user)
    _write_settings(home / "etc", image, account, is_open=job.network != "none")
    libraries = driver_libraries() if job.limits.gpus else []
    steps = [*_contract(job, home), *_kernel(), *_mounts(job, image)]
    steps += [Step("device", device, device) for device in _devices(job)]
    if libraries:
        make_mount_point(image.root, DRIVER, folder=True)
        steps.append(Step("empty", DRIVER, size=1 << 20))
        steps += [Step("show", f"{DRIVER}/{path.name}", str(path)) for path in libraries]
    return Surroundings(
        environment=_environment(job, image, account, validate_url, has_driver=bool(libraries)),
        steps=tuple(steps),
        root=str(image.root),
        outside=interpreter_view(),
    )


def _account(image: UnpackedImage, user: int | None) -> Account:
    """Return the agent's account: the name of the image's user, and a number and home of ours."""
    number = (os.getuid(), os.getgid()) if user is None else (user, user)
    found = choose_account(image.passwd, image.facts.user, number)
    return replace(found, home=AGENT_DIR)  # the image's own home cannot be written to


def _environment(
    job: Job, image: UnpackedImage, account: Account, url: str, *, has_driver: bool
) -> dict[str, str]:
    """Return all that the agent finds in its environment: the image's, nothing of this host's."""
    person = {"HOME": AGENT_DIR, "USER": account.name, "HOSTNAME": HOST_NAME}
    found = {"PATH": _PATH} | dict(image.facts.env) | person | visible_gpus(job)
    if has_driver:
        found["LD_LIBRARY_PATH"] = ":".join(filter(None, [found.get("LD_LIBRARY_PATH"), DRIVER]))
    contract = contract_environment(job, HOME, validate_url=url, agent_dir=AGENT_DIR)
    return found | job.agent.environment() | contract


def _write_settings(folder: Path, image: UnpackedImage, account: Account, *, is_open: bool) -> None:
    """Write the files of /etc that say who and where the agent is."""
    texts = {
        "passwd": passwd_with(image.passwd, account),
        "hostname": f"{HOST_NAME}\n",
        "hosts": hosts_file() if is_open else hosts_file(host=False),
        "resolv.conf": host_text("resolv.conf") if is_open else "",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def _contract(job: Job, home: Path) -> list[Step]:
    return [
        *(Step("lend", place, str(home / "tmp")) for place in ("/tmp", "/var/tmp")),
        *(
            Step("show", f"/etc/{name}", str(home / "etc" / name))
            for name in ("passwd", "hostname", "hosts", "resolv.conf")
        ),
        *(
            Step("lend", f"{HOME}/{name}", str(home / name))
            for name in ("submission", "logs", "code", "agent")
        ),
        *(
            Step("show", f"{HOME}/{name}", str(home / name))
            for name in ("instructions.txt", "validate_submission.sh")
        ),
        Step("show", f"{HOME}/data", str(job.data.resolve())),
    ]


def _kernel() -> list[Step]:
    """Return what the kernel tells about the hardware."""
    shown = [Path("/", name) for name in KERNEL]
    steps = [Step("show", str(path), str(path)) for path in shown if path.is_dir()]
    return [Step("empty", "/sys", size=1 << 20), *steps]


def _mounts(job: Job, image: UnpackedImage) -> list[Step]:
    steps = []
    for mount in extra_mounts(job):
        make_mount_point(image.root, mount.target, folder=mount.source.is_dir())
        kind = "show" if mount.read_only else "lend"
        steps.append(Step(kind, mount.target, str(mount.source)))  # type: ignore[arg-type]  # one of two
    return steps


def _devices(job: Job) -> list[str]:
    return gpu_devices(job.gpus) if job.limits.gpus else []
