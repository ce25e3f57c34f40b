"""What a call costs: by the prices that the agent's file gives, else by a table of list prices.

The table is that of ``genai-prices``, as it was when the package was installed: nothing is asked
over the network. A provider is known by its URL, so a model of the same name that a local server
runs has no price unless it is given one. A price that nobody knows is None, never zero.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from decimal import Decimal

from pytest_mlebench.gateway.spending import Usage
from pytest_mlebench.gateway.usage_readers import Reading
from pytest_mlebench.upstream import Price, Upstream

MAX_NAMES = 1_000  # of models that are looked up: an agent may invent names without end

_TIERS = (None, "priority", "fast")  # a project's own settings may choose the dearer ones
_MILLION = Decimal(1_000_000)

logger = logging.getLogger(__name__)


class Prices:
    """The prices of one upstream's models."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._known: dict[str, bool] = {}

    def is_known(self, model: str) -> bool:
        """Tell whether a model has a price."""
        if model not in self._known:
            if len(self._known) >= MAX_NAMES:
                return False
            usage = Usage(input_tokens=1, output_tokens=1)
            self._known[model] = self._cost_of(model, Reading(usage)) is not None
        return self._known[model]

    def cost(self, model: str, reading: Reading) -> Decimal | None:
        """Return the dollars of a call, by the names that the agent and the answer use."""
        names = [name for name in (model, reading.model) if name]
        written = [name for name in names if self._upstream.price(name)]
        for name in written or reversed(names):  # the answer knows better what a router chose
            if self.is_known(name):
                return self._cost_of(name, reading)
        return None

    def bound(self, model: str, input_tokens: int, output_tokens: int) -> Decimal:
        """Return the most that so many tokens may cost; zero if nobody knows."""
        plain = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
        written = replace(plain, cache_written_tokens=input_tokens)
        tiers = (None,) if self._upstream.price(model) else _TIERS
        readings = [Reading(plain, tier=tier) for tier in tiers]
        readings += [Reading(written, tier=tier, hour_cache_tokens=input_tokens) for tier in tiers]
        costs = (self.cost(model, reading) for reading in readings)
        return max((cost for cost in costs if cost is not None), default=Decimal(0))

    def _cost_of(self, model: str, reading: Reading) -> Decimal | None:
        price = self._upstream.price(model)
        if reading.usage is None:
            return None
        if price is not None:
            return _by_price(price, reading.usage)
        return _by_table(self._upstream.url, model, reading.usage, reading)


def has_prices(upstream: Upstream) -> bool:
    """Tell whether any model of an upstream has a price: a given one, or its provider is known."""
    if upstream.prices:
        return True
    import genai_prices  # late on purpose: 30 000 lines of prices

    try:
        genai_prices.data_snapshot.get_snapshot().find_provider(None, None, upstream.url)
    except LookupError:
        return False
    return True


def load_table() -> None:
    """Read the table before the first call would have to wait for it."""
    import genai_prices

    genai_prices.data_snapshot.get_snapshot()


def _by_price(price: Price, usage: Usage) -> Decimal:
    plain = usage.input_tokens - usage.cached_tokens - usage.cache_written_tokens
    cached = price.input if price.cached is None else price.cached
    written = price.input if price.cache_written is None else price.cache_written
    parts = (
        (plain, price.input),
        (usage.cached_tokens, cached),
        (usage.cache_written_tokens, written),
        (usage.output_tokens, price.output),
    )
    # by way of text: a dime is 0.1, not the binary number next to it
    return sum((Decimal(n) * Decimal(str(p)) for n, p in parts), Decimal(0)) / _MILLION


def _by_table(url: str, model: str, usage: Usage, reading: Reading) -> Decimal | None:
    import genai_prices  # late on purpose: 30 000 lines of prices

    tokens = {
        "input_tokens": usage.input_tokens,
        "cache_read_tokens": usage.cached_tokens,
        "cache_write_tokens": usage.cache_written_tokens,
        "cache_write_1h_tokens": reading.hour_cache_tokens,
        "output_tokens": usage.output_tokens,
    }
    try:
        return genai_prices.calc_price(
            genai_prices.Usage(**{name: n for name, n in tokens.items() if n}),
            model,
            provider_api_url=url,
            price_context={"service_tier": reading.tier} if reading.tier else None,
        ).total_price
    except LookupError:
        return None
    except Exception:  # whatever it is, the price is not known, and the call was made
        logger.warning("the price of %r cannot be worked out", model, exc_info=True)
        return None
