"""An attempt's own network on the engine, in which nobody else is.

The engine's default network joins all containers that ask for none of their own: agents could reach
each other there, and whatever else runs on the engine. In one of its own an agent reaches what
the host reaches, and the host.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping
from contextlib import suppress

from pytest_mlebench.errors import ConfigError, SandboxError
from pytest_mlebench.sandbox.docker.engine import Engine

# No traffic between containers, should another one ever be put into it:
# https://docs.docker.com/engine/network/drivers/bridge and podman-network-create(1).
_OPTIONS = {
    "docker": {"com.docker.network.bridge.enable_icc": "false"},
    "podman": {"isolate": "true"},
}
_NO_ADDRESSES = "address pool"  # how engines say that they have no subnet left

logger = logging.getLogger(__name__)


def check_network(policy: str) -> None:
    """Refuse a policy that containers cannot have."""
    if policy not in {"none", "open"} and not policy.startswith("allow:"):
        raise ConfigError(
            f"the docker sandbox knows the networks none, open and allow:HOST, given: {policy}"
        )


class OwnNetwork:
    """A network that one container is going to be in."""

    def __init__(self, engine: Engine, labels: Mapping[str, str]) -> None:
        self._engine = engine
        try:
            with engine.asked("cannot make a network"):
                made = engine.api.create_network(
                    f"mlebench-{uuid.uuid4().hex[:12]}",
                    driver="bridge",
                    options=_OPTIONS[engine.facts.name],
                    labels=dict(labels),
                )
        except SandboxError as problem:
            if _NO_ADDRESSES not in str(problem):
                raise
            raise SandboxError(
                "the engine has no addresses left for another network: run fewer attempts at a "
                "time (-n), or give it more (default-address-pools in its daemon.json)"
            ) from problem
        self.id = str(made["Id"])

    def remove(self) -> None:
        """Remove the network; if the engine is gone, whoever looks for orphans does it."""
        errors = self._engine.sdk.errors
        try:
            with self._engine.asked("cannot remove a network"), suppress(errors.NotFound):
                self._engine.api.remove_network(self.id)
        except SandboxError as problem:
            logger.warning("%s; it is removed with the next orphans", problem)
