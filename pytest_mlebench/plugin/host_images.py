"""Which image all hosts of a session are to have, and how they get it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from functools import partial

from pytest_mlebench.errors import ConfigError
from pytest_mlebench.machines.hosts_file import Machine
from pytest_mlebench.machines.image_transfer import ImageSpool
from pytest_mlebench.machines.ssh import run_there
from pytest_mlebench.plugin.session import MleSession
from pytest_mlebench.sandbox import ImageIdentity, Imaging

FILE = ".image.tar"  # in the run's folder, while hosts fetch it
ASK_SECONDS = 600.0  # for a host that has to pull the image first

# What is run on a host: it has our package in our version, that has been looked at.
_ASK = """
import json, sys
from pytest_mlebench.sandbox.docker.images import identify_image
print(json.dumps(identify_image(sys.argv[1])))
"""


class HostImages:
    """The image of a session's agent: that of the engine here, else that of the first host."""

    def __init__(self, session: MleSession, keepalive: float) -> None:
        self._session = session
        self._keepalive = keepalive
        self._is_here = False
        self._found: dict[str, str] = {}  # images, by machine

    def find(self, hosts: Iterable[Machine]) -> ImageIdentity | None:
        """Return the image that all hosts are to have; None where agents have none."""
        agent = self._session.agent
        sandbox = self._session.sandbox(agent)
        if not isinstance(sandbox, Imaging):
            return None
        try:
            found = sandbox.find_image(agent)
        except ConfigError as problem:
            if agent.build is not None or agent.image is None or sandbox.name != "docker":
                raise
            return self._ask(hosts, agent.image, problem)
        self._is_here = True
        return found

    def spool(self) -> ImageSpool:
        """Return what sends the image, if the engine here has it."""
        path = self._session.settings.run.path / FILE
        agent = self._session.agent
        sandbox = self._session.sandbox(agent)
        if not self._is_here or not isinstance(sandbox, Imaging):
            return ImageSpool(path, None)
        return ImageSpool(path, partial(sandbox.save_image, agent))

    def note(self, machine: str, image: str) -> None:
        """Take note which image a machine has found."""
        self._found[machine] = image

    def difference(self) -> str | None:
        """Return what is wrong if machines have found different images, and none was sent."""
        if len(set(self._found.values())) <= 1:
            return None
        found = "; ".join(f"{name} has {image}" for name, image in self._found.items())
        return (
            f"the hosts have different images of agent {self._session.shown_agent!r} "
            f"({found}): pull or load the same one everywhere"
        )

    def _ask(self, hosts: Iterable[Machine], image: str, problem: ConfigError) -> ImageIdentity:
        for host in hosts:
            if host.srun is not None:
                continue  # its nodes are not to be asked before a job runs there
            try:
                words = (host.python, "-c", _ASK, image)
                done = run_there(host, self._keepalive, *words, seconds=ASK_SECONDS)
                facts = json.loads(done.stdout.splitlines()[-1])
                return ImageIdentity(facts["id"], facts["digest"])
            except (OSError, ValueError, IndexError, KeyError, subprocess.TimeoutExpired):
                continue
        raise ConfigError(f"{problem}; no host has the image {image!r} either")
