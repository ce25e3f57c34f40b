"""The rootless sandbox: an agent runs in its image, without an engine and without root.

    sandbox = RootlessSandbox(cache=store / ".images")
    lines = sandbox.preflight(agent, limits, network)   # ConfigError before anything runs
    outcome = sandbox.run(job)                          # SandboxError: not the agent's fault

An image is unpacked once (``image_archive``, ``layer_tree``, ``image_cache``) and is then the
read-only root of processes behind the walls of the process sandbox.
"""

from __future__ import annotations

from pytest_mlebench.sandbox.rootless.rootless_sandbox import RootlessSandbox

__all__ = ["RootlessSandbox"]
