"""Whatever an agent writes, a call goes below the URL of an upstream or nowhere."""

from __future__ import annotations

import pytest

from pytest_mlebench.gateway.refusal import CallRefusal
from pytest_mlebench.gateway.routes import (
    find_route,
    headers_to_agent,
    headers_to_upstream,
    prefix,
    swap_keys,
)
from pytest_mlebench.upstream import Upstream

OPENAI = Upstream("openai", "https://api.openai.com/v1")
ANTHROPIC = Upstream("anthropic", "https://api.anthropic.com", protocol="anthropic")
UPSTREAMS = (OPENAI, ANTHROPIC)
OURS, REAL = "sk-mle-1", "sk-real"


@pytest.mark.parametrize(
    ("target", "url"),
    [
        ("/openai/v1/chat/completions", "https://api.openai.com/v1/chat/completions"),
        ("/openai/v1", "https://api.openai.com/v1"),
        ("/openai/v1/models?limit=2", "https://api.openai.com/v1/models?limit=2"),
        ("/anthropic/v1/messages?beta=true", "https://api.anthropic.com/v1/messages?beta=true"),
        ("/anthropic", "https://api.anthropic.com"),
        ("/openai/v1/models/org%2Fname", "https://api.openai.com/v1/models/org%2Fname"),
        ("/openai/v1/a..b/...", "https://api.openai.com/v1/a..b/..."),
        ("/openai/v1//double", "https://api.openai.com/v1//double"),
        ("/anthropic/@evil.example/", "https://api.anthropic.com/@evil.example/"),
    ],
)
def test_a_path_below_an_upstream_is_passed_on_as_it_was_written(target: str, url: str) -> None:
    route = find_route(target, UPSTREAMS)
    assert route.url(route.query) == url


@pytest.mark.parametrize(
    "target",
    [
        "http://evil.example/openai/v1/models",
        "//evil.example/openai/v1",
        "evil.example:443",
        "*",
        "/openai/v1/../admin",
        "/openai/v1/..",
        "/openai/v1/%2e%2e/admin",
        "/openai/v1/%252e%252e/admin",
        "/openai/v1/%25252e%25252e/admin",
        "/openai/v1/.%2e/admin",
        "/openai/v1/./admin",
        "/openai/v1/..;x=1/admin",
        "/openai/v1/..%2fadmin",
        "/openai/v1/..%5cadmin",
        "/openai/v1/..\\admin",
        "/openai/v1/%00",
        "/openai/v1/a%0d%0aHost:%20evil.example",
        "/openai/v1/a b",
        "/openai/v1/a#fragment",
        "/openai/v1/%25252525252525",
        "/openai/v1/" + "a" * 9_000,
        "/openai/v1/ü",
        "",
    ],
)
def test_a_path_that_might_lead_elsewhere_is_refused(target: str) -> None:
    with pytest.raises(CallRefusal) as refusal:
        find_route(target, UPSTREAMS)
    assert refusal.value.kind in {"bad_request", "not_found"}


@pytest.mark.parametrize(
    "target",
    ["/", "/openai", "/openai/v2/models", "/openai/v1evil/x", "/openai/%76%31/x", "/anthropic.x/"],
)
def test_a_path_of_no_upstream_is_refused_with_those_there_are(target: str) -> None:
    with pytest.raises(CallRefusal) as refusal:
        find_route(target, UPSTREAMS)
    assert refusal.value.kind == "not_found"
    assert str(refusal.value).endswith("the gateway has /openai/v1, /anthropic")


def test_the_host_can_not_be_stretched() -> None:
    assert prefix(ANTHROPIC) == "/anthropic"
    for target in ("/anthropic@evil.example/", "/anthropic:8080/", "/anthropic.evil.example/"):
        with pytest.raises(CallRefusal):
            find_route(target, UPSTREAMS)


@pytest.mark.parametrize(
    ("header", "given", "swapped"),
    [
        ("Authorization", f"Bearer {OURS}", f"Bearer {REAL}"),
        ("authorization", f"bearer  {OURS} ", f"Bearer {REAL}"),
        ("x-api-key", OURS, REAL),
        ("api-key", OURS, REAL),
        ("x-goog-api-key", OURS, REAL),
    ],
)
def test_the_real_key_goes_where_the_client_put_its_own(
    header: str, given: str, swapped: str
) -> None:
    headers, query = swap_keys([(header, given)], "a=1", ours=OURS, real=REAL)
    assert headers == [(header, swapped)]
    assert query == "a=1"


def test_the_real_key_goes_into_the_query_where_the_client_put_its_own() -> None:
    headers, query = swap_keys([], f"alt=sse&key={OURS}", ours=OURS, real=REAL)
    assert (headers, query) == ([], f"alt=sse&key={REAL}")


def test_keys_of_others_are_dropped() -> None:
    given = [("Authorization", f"Bearer {OURS}"), ("x-api-key", "another"), ("X-Other", "kept")]
    headers, query = swap_keys(given, "key=third&%6Bey=fourth&b=2", ours=OURS, real=REAL)
    assert headers == [("Authorization", f"Bearer {REAL}")]
    assert query == "b=2"


def test_an_upstream_without_a_key_gets_none() -> None:
    given = [("Authorization", f"Bearer {OURS}")]
    assert swap_keys(given, f"key={OURS}&a=1", ours=OURS, real="") == ([], "a=1")


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("Authorization", "Bearer sk-mle-2")],
        [("Authorization", OURS.encode().hex())],
        [("Authorization", f"Basic {OURS}")],
        [("Authorization", "Bearer ")],
        [("X-Key", OURS)],
        [("x-api-key", f"{OURS}x")],
        [("x-api-key", "ü")],
    ],
)
def test_without_the_key_of_the_attempt_nothing_is_passed_on(
    headers: list[tuple[str, str]],
) -> None:
    with pytest.raises(CallRefusal) as refusal:
        swap_keys(headers, "key=", ours=OURS, real=REAL)
    assert refusal.value.kind == "authentication"
    assert REAL not in str(refusal.value)


def test_headers_of_the_hop_and_keys_are_not_passed_on() -> None:
    given = [
        ("Host", "127.0.0.1"),
        ("Connection", "keep-alive, X-Hop"),
        ("X-Hop", "1"),
        ("Transfer-Encoding", "chunked"),
        ("Authorization", "Bearer x"),
        ("X-Api-Key", "x"),
        ("Cookie", "a=b"),
        ("Accept-Encoding", "gzip"),
        ("Proxy-Authorization", "x"),
        ("OpenAI-Beta", "assistants=v2"),
        ("Content-Type", "application/json"),
        ("anthropic-version", "2023-06-01"),
    ]
    assert headers_to_upstream(given) == given[-3:]


def test_rate_limits_and_request_ids_are_passed_back() -> None:
    given = [
        ("Connection", "close"),
        ("Content-Length", "3"),
        ("Content-Encoding", "gzip"),
        ("retry-after", "7"),
        ("x-ratelimit-remaining-tokens", "0"),
        ("x-request-id", "r1"),
        ("Set-Cookie", "a=1"),
        ("Set-Cookie", "b=2"),
    ]
    assert headers_to_agent(given) == given[3:]
