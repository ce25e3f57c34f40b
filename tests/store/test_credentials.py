"""Credentials are found in every form that Kaggle's client knows, and tried in its order."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from kaggle_server import KaggleServer

from pytest_mlebench.errors import ConfigError
from pytest_mlebench.kaggle.client import Kaggle
from pytest_mlebench.kaggle.credentials import Credentials, find_credentials

Setup = Callable[[Path, pytest.MonkeyPatch], None]


def token_in_environment(_: Path, env: pytest.MonkeyPatch) -> None:
    env.setenv("KAGGLE_API_TOKEN", "good-token")


def token_in_a_named_file(home: Path, env: pytest.MonkeyPatch) -> None:
    (home / "token").write_text("good-token\n")
    env.setenv("KAGGLE_API_TOKEN", str(home / "token"))


def write(home: Path, name: str, content: object) -> None:
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def token_in_the_usual_file(home: Path, _: pytest.MonkeyPatch) -> None:
    write(home, ".kaggle/access_token", "good-token\n")


def key_in_environment(_: Path, env: pytest.MonkeyPatch) -> None:
    env.setenv("KAGGLE_USERNAME", "user")
    env.setenv("KAGGLE_KEY", "good-key")


def key_in_the_usual_file(home: Path, _: pytest.MonkeyPatch) -> None:
    write(home, ".kaggle/kaggle.json", {"username": "user", "key": "good-key"})


def key_in_a_chosen_folder(home: Path, env: pytest.MonkeyPatch) -> None:
    write(home, "elsewhere/kaggle.json", {"username": "user", "key": "good-key"})
    env.setenv("KAGGLE_CONFIG_DIR", str(home / "elsewhere"))


def key_in_the_xdg_folder(home: Path, _: pytest.MonkeyPatch) -> None:
    write(home, ".config/kaggle/kaggle.json", {"username": "user", "key": "good-key"})


def oauth(home: Path, expires: str = "2020-01-01T00:00:00+00:00", token: str = "old") -> None:
    facts = {"refresh_token": "good-refresh", "access_token": token, "username": "user"}
    write(home, ".kaggle/credentials.json", facts | {"access_token_expiration": expires})


def oauth_that_has_expired(home: Path, _: pytest.MonkeyPatch) -> None:
    oauth(home)


def oauth_that_is_fresh(home: Path, _: pytest.MonkeyPatch) -> None:
    oauth(home, "2999-01-01T00:00:00+00:00", "good-token")


TOKEN = "Bearer good-token"
KEY = "Basic " + base64.b64encode(b"user:good-key").decode()

FORMS: dict[Setup, str] = {
    token_in_environment: TOKEN,
    token_in_a_named_file: TOKEN,
    token_in_the_usual_file: TOKEN,
    key_in_environment: KEY,
    key_in_the_usual_file: KEY,
    key_in_a_chosen_folder: KEY,
    key_in_the_xdg_folder: KEY,
    oauth_that_has_expired: TOKEN,
    oauth_that_is_fresh: TOKEN,
}


@pytest.fixture
def bare(kaggle: KaggleServer, monkeypatch: pytest.MonkeyPatch) -> KaggleServer:
    """Return a Kaggle for which nobody has credentials yet."""
    monkeypatch.delenv("KAGGLE_API_TOKEN")
    kaggle.add("some", b"zip")
    return kaggle


@pytest.mark.parametrize("setup", FORMS, ids=lambda setup: setup.__name__)
def test_every_form_is_understood(
    bare: KaggleServer, home: Path, monkeypatch: pytest.MonkeyPatch, setup: Setup
) -> None:
    setup(home, monkeypatch)
    with Kaggle() as kaggle:
        assert kaggle.competition_number("some") == 4711
    assert bare.asked[-1].headers["Authorization"] == FORMS[setup]


def test_nothing_is_written_to_an_empty_home(
    bare: KaggleServer, home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    del bare
    with pytest.raises(ConfigError) as caught:
        Kaggle()
    assert str(caught.value) == (
        "no Kaggle credentials: make a token at https://www.kaggle.com/settings and put it into "
        "KAGGLE_API_TOKEN or ~/.kaggle/access_token (KAGGLE_USERNAME with KAGGLE_KEY, kaggle.json "
        "and the file of an OAuth login are understood too), or bring the data with "
        "pytest-mlebench prepare --from DIR"
    )
    assert list(home.iterdir()) == []
    assert capfd.readouterr() == ("", "")


def test_a_token_that_is_refused_gives_way_to_a_key(
    bare: KaggleServer, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAGGLE_API_TOKEN", "bad-token")
    key_in_the_usual_file(home, monkeypatch)
    with Kaggle() as kaggle:
        assert kaggle.competition_number("some") == 4711
    assert [asked.headers["Authorization"] for asked in bare.asked] == ["Bearer bad-token", KEY]


def test_credentials_that_are_all_refused_are_named(
    bare: KaggleServer, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAGGLE_API_TOKEN", "bad-token")
    write(home, ".kaggle/kaggle.json", {"username": "user", "key": "bad-key"})
    oauth(home)
    bare.refresh_tokens.clear()
    with pytest.raises(ConfigError) as caught, Kaggle() as kaggle:
        kaggle.competition_number("some")
    assert str(caught.value) == (
        f"Kaggle refuses the credentials in KAGGLE_API_TOKEN and in {home}/.kaggle/kaggle.json "
        f"and in {home}/.kaggle/credentials.json (Invalid refresh token): "
        "make a new token at https://www.kaggle.com/settings"
    )


def test_a_token_comes_before_a_key(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token_in_the_usual_file(home, monkeypatch)
    key_in_environment(home, monkeypatch)
    oauth(home)
    assert [found.where for found in find_credentials()] == [
        "~/.kaggle/access_token",
        "KAGGLE_USERNAME and KAGGLE_KEY",
        f"{home}/.kaggle/credentials.json",
    ]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "not valid JSON: Expecting property name enclosed in double quotes"),
        ('{"username": "user"}', "has no username and key, download it again from Kaggle"),
    ],
)
def test_a_broken_key_file_is_named(home: Path, content: str, problem: str) -> None:
    write(home, ".kaggle/kaggle.json", content)
    with pytest.raises(ConfigError) as caught:
        list(find_credentials())
    assert str(caught.value).startswith(f"{home}/.kaggle/kaggle.json: {problem}")


def test_secrets_are_not_shown() -> None:
    shown = repr(Credentials("here", token="secret-token", username="me", key="secret-key"))
    assert "secret" not in shown


def test_a_missing_client_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kagglesdk", None)
    with pytest.raises(ConfigError) as caught:
        Kaggle()
    assert str(caught.value) == (
        "downloads need Kaggle's client: pip install 'pytest-mlebench[kaggle]'"
    )
