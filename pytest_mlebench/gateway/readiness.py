"""Whether an agent's models could be reached and bounded, asked before anything runs."""

from __future__ import annotations

from importlib.util import find_spec

from pytest_mlebench.agent import Agent, check_models
from pytest_mlebench.budget import Budget
from pytest_mlebench.errors import ConfigError

PACKAGES = {"aiohttp": "aiohttp", "genai_prices": "genai-prices"}  # module: what to install


def check_ready(agent: Agent, budget: Budget) -> None:
    """Refuse models whose gateway cannot start, has no key, or could not hold the budget."""
    check_models(agent, f"agent {agent.name!r}")
    agent.model_keys()
    for module, package in PACKAGES.items():
        if find_spec(module) is None:
            raise ConfigError(
                f"the models of agent {agent.name!r} need the package {package}, which is not "
                f"installed: pip install {package}"
            )
    if budget.needs_prices:
        _require_prices(agent)


def _require_prices(agent: Agent) -> None:
    """Refuse a bound in dollars where every call would be refused for want of a price."""
    from pytest_mlebench.gateway.prices import has_prices  # late on purpose: a bound in dollars

    for upstream in agent.models:
        if not has_prices(upstream):
            raise ConfigError(
                f"agent {agent.name!r} has a budget in dollars, and nobody knows the prices of "
                f"models.{upstream.name} ({upstream.url}): give them in "
                f'[models.{upstream.name}.prices."*"], or bound tokens or calls instead'
            )
