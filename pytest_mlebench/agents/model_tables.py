"""The tables ``[models.NAME]`` and ``[budget]`` of an agent, read strictly."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from pytest_mlebench._references import has_broken_reference, referenced_names
from pytest_mlebench._toml import Table
from pytest_mlebench._units import parse_duration
from pytest_mlebench.budget import Budget
from pytest_mlebench.errors import AgentFileError, ConfigError
from pytest_mlebench.upstream import (
    DEFAULT_VARIABLES,
    PROTOCOLS,
    TIMEOUT_SECONDS,
    Price,
    Upstream,
    Variables,
)

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PATH = re.compile(r"(/(?!\.{1,2}(/|$))[A-Za-z0-9._~-]+)*")


def parse_models(tables: Table) -> tuple[Upstream, ...]:
    """Return the upstreams below ``[models]``."""
    return tuple(_upstream(name, table) for name, table in tables.all_tables().items())


def parse_bounds(table: Table) -> Budget:
    """Return the budget of a ``[budget]`` table."""
    budget = Budget(
        usd=_dollars(table, "usd"),
        tokens=_count(table, "tokens"),
        calls=_count(table, "calls"),
        session_usd=_dollars(table, "session_usd"),
    )
    table.finish()
    return budget


def _upstream(name: str, table: Table) -> Upstream:
    if not _NAME.fullmatch(name):
        raise AgentFileError(
            f"{table.where}: the name of a model table must be lower-case letters, digits and _-, "
            f"given: {name!r}"
        )
    protocol = table.choice("protocol", PROTOCOLS, "openai")
    upstream = Upstream(
        name=name,
        url=_url(table),
        protocol=protocol,
        key=_key(table),
        allow=_patterns(table),
        variables=_variables(table, DEFAULT_VARIABLES[protocol]),
        prices=_prices(table),
        timeout_seconds=_timeout(table),
    )
    table.finish()
    return upstream


def _url(table: Table) -> str:
    url = table.text("url")
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise table.error("url", f"is not understood, given: {url!r}") from None
    if not usable or parts.query or parts.fragment or not _PATH.fullmatch(parts.path.rstrip("/")):
        raise table.error("url", f"must be https://HOST[:PORT][/PATH], given: {url!r}")
    if parts.username is not None or parts.password is not None:
        raise table.error("url", "must not hold a password, the agent can read this file: use key")
    return url.rstrip("/")


def _key(table: Table) -> str:
    key = table.text("key", "")
    if has_broken_reference(key):
        raise table.error("key", f"has a reference that is not ${{NAME}}, given: {key!r}")
    if key and not referenced_names(key):
        raise table.error(
            "key", "must refer to a variable, as in ${OPENAI_API_KEY}: the agent can read this file"
        )
    return key


def _patterns(table: Table) -> tuple[str, ...]:
    allow = table.texts("allow", ("*",))
    if not all(allow):
        raise table.error("allow", "must be a list of patterns such as 'gpt-5*', given: ''")
    if not allow:
        raise table.error("allow", "is empty, so that no model could be called: leave it out")
    return allow


def _variables(table: Table, default: Variables) -> Variables | None:
    names = table.table("variables", None)
    if names is None:
        return None
    variables = Variables(names.texts("url", default.url), names.texts("key", default.key))
    names.finish()
    for name in variables.names:
        if not _VARIABLE.fullmatch(name):
            raise AgentFileError(f"{names.where}: {name!r} is no name of an environment variable")
    if not variables.url:
        raise names.error("url", "is empty, so that the agent could not find the model")
    return variables


def _prices(table: Table) -> dict[str, Price]:
    prices = table.table("prices", None)
    if prices is None:
        return {}
    return {pattern: _price(price) for pattern, price in prices.all_tables().items()}


def _price(table: Table) -> Price:
    price = Price(
        input=table.number("input"),
        output=table.number("output"),
        cached=table.number("cached", None),
        cache_written=table.number("cache_written", None),
    )
    table.finish()
    for key in ("input", "output", "cached", "cache_written"):
        amount = getattr(price, key)
        if amount is not None and not 0 <= amount < float("inf"):
            raise table.error(key, f"must be dollars per million tokens, given: {amount}")
    return price


def _timeout(table: Table) -> float:
    text = table.text("timeout", None)
    if text is None:
        return TIMEOUT_SECONDS
    try:
        return parse_duration(text, f"{table.where}: timeout")
    except ConfigError as problem:
        raise AgentFileError(str(problem)) from None


def _dollars(table: Table, key: str) -> float | None:
    amount = table.number(key, None)
    if amount is not None and not 0 < amount < float("inf"):
        raise table.error(key, f"must be a positive number of dollars, given: {amount}")
    return amount


def _count(table: Table, key: str) -> int | None:
    amount = table.number(key, None)
    if amount is None:
        return None
    if not isinstance(amount, int) or amount <= 0:
        raise table.error(key, f"must be a positive whole number, given: {amount}")
    return amount
