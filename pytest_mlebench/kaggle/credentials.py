"""Kaggle credentials, in every form that Kaggle's client knows."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_mlebench.errors import ConfigError

MISSING = (
    "no Kaggle credentials: make a token at https://www.kaggle.com/settings and put it into "
    "KAGGLE_API_TOKEN or ~/.kaggle/access_token (KAGGLE_USERNAME with KAGGLE_KEY, kaggle.json and "
    "the file of an OAuth login are understood too), or bring the data with "
    "pytest-mlebench prepare --from DIR"
)


@dataclass(frozen=True)
class Credentials:
    """A token, or a user with a key; ``where`` says where they were found."""

    where: str
    token: str | None = field(default=None, repr=False)
    username: str | None = None
    key: str | None = field(default=None, repr=False)
    oauth: bool = False


def find_credentials() -> Iterator[Credentials]:
    """Yield what there is, in the order in which Kaggle's own client tries it."""
    yield from _tokens()
    yield from _keys()
    yield from _oauth()


def _tokens() -> Iterator[Credentials]:
    from kagglesdk.kaggle_env import get_access_token_from_env  # late on purpose: optional

    token, where = get_access_token_from_env()
    if token:
        names = {"access_token": "~/.kaggle/access_token"}
        yield Credentials(names.get(where, where), token=token)


def _keys() -> Iterator[Credentials]:
    username, key = os.environ.get("KAGGLE_USERNAME"), os.environ.get("KAGGLE_KEY")
    if username and key:
        yield Credentials("KAGGLE_USERNAME and KAGGLE_KEY", username=username, key=key)
    for path in _key_files():
        if facts := _read(path):
            username, key = facts.get("username"), facts.get("key")
            if not (username and key):
                raise ConfigError(f"{path}: has no username and key, download it again from Kaggle")
            yield Credentials(str(path), username=username, key=key)
            return


def _key_files() -> Iterator[Path]:
    home = Path("~/.kaggle").expanduser()
    if chosen := os.environ.get("KAGGLE_CONFIG_DIR"):
        yield Path(chosen) / "kaggle.json"
        return
    yield home / "kaggle.json"
    yield Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "kaggle/kaggle.json"


def _oauth() -> Iterator[Credentials]:
    path = Path("~/.kaggle/credentials.json").expanduser()
    facts = _read(path)
    if facts and facts.get("refresh_token"):
        yield Credentials(str(path), oauth=True)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        text = path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    if not text:
        return None
    try:
        facts = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{path}: not valid JSON: {error}") from None
    return facts if isinstance(facts, dict) else None
