"""Whether an engine can give a container the GPUs of its host."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from pytest_mlebench.errors import ConfigError
from pytest_mlebench.sandbox.docker.engine import Engine
from pytest_mlebench.sandbox.docker.labels import this_process
from pytest_mlebench.sandbox.docker.prepared_image import HELPER, Prepared


def gpu_request(engine: Engine, gpus: Sequence[str]) -> list[Any]:
    """Return what asks the engine for GPUs by their ids."""
    return [engine.sdk.types.DeviceRequest(device_ids=list(gpus), capabilities=[["gpu"]])]


def require_gpus(engine: Engine, prepared: Prepared, gpus: Sequence[str]) -> None:
    """Start a container with GPUs for a moment: an engine refuses them then, and not before."""
    api = engine.api
    host = api.create_host_config(
        device_requests=gpu_request(engine, gpus),
        network_mode="none",
        cap_drop=["ALL"],
        log_config={"Type": "none"},
    )
    with engine.asked("cannot try the GPUs"):
        container = api.create_container(
            image=prepared.name,
            entrypoint=[HELPER],
            host_config=host,
            labels=this_process().labels(),
        )["Id"]
        try:
            api.start(container)
        except engine.sdk.errors.APIError as problem:
            raise ConfigError(
                f"the engine cannot give a container a GPU ({problem.explanation}): install "
                "nvidia-container-toolkit and restart it, or use --mle-gpus=0"
            ) from None
        finally:
            with suppress(engine.sdk.errors.NotFound):
                api.remove_container(container, force=True, v=True)
