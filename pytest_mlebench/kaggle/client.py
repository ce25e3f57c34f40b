"""Kaggle through its own client, which is imported late, kept quiet and never left waiting."""

from __future__ import annotations

import email.utils
import logging
import random
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from pytest_mlebench._messages import Log
from pytest_mlebench.errors import ConfigError, DatasetError
from pytest_mlebench.kaggle.credentials import MISSING, Credentials, find_credentials

logger = logging.getLogger(__name__)

CONNECT_SECONDS = 20.0
READ_SECONDS = 60.0  # without a single byte
MAX_RETRIES = 6
MAX_RATE_RETRIES = 12
FIRST_WAIT_SECONDS = 1.0
FIRST_RATE_WAIT_SECONDS = 10.0
MAX_WAIT_SECONDS = 300.0
PAGE_ROWS = 200  # teams of a leaderboard, or files, per request
MAX_FILE_PAGES = 10  # enough to see that they are many

T = TypeVar("T")


class RulesNotAccepted(ConfigError):
    """Kaggle refuses a competition's data until its rules are accepted."""

    page = "datasets"


class NoSuchCompetition(ConfigError):
    """Kaggle does not know a competition."""


@dataclass(frozen=True)
class Page:
    """One page of a competition's description."""

    name: str
    content: str
    is_html: bool


@dataclass(frozen=True)
class Row:
    """One team of a leaderboard, as Kaggle gives it."""

    team: str
    score: str


class NoSuchKernel(ConfigError):
    """Kaggle has no such notebook, or shows it to nobody."""


@dataclass(frozen=True)
class Kernel:
    """Somebody's notebook or script."""

    source: str
    is_notebook: bool


class Kaggle:
    """A connection to Kaggle; not to be shared among threads."""

    def __init__(self, log: Log | None = None) -> None:
        self.log = log or logger.info
        self._credentials = _known_credentials()
        self._current = next(self._credentials, None)
        if self._current is None:
            raise ConfigError(MISSING)
        self._refused: list[str] = []
        self._client: Any = None

    def __enter__(self) -> Kaggle:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def open_data(
        self,
        competition: str,
        *,
        start: int = 0,
        end: int | None = None,
        validator: str | None = None,
    ) -> Any:
        """Return the streamed response for a competition's zip, from byte *start* to *end*."""
        headers = {"Accept-Encoding": "identity"}
        if start or end is not None:
            headers |= {"Range": f"bytes={start}-{'' if end is None else end}"}
            headers |= {"If-Range": validator} if validator else {}

        def ask(api: Any, types: Any) -> Any:
            request = types.ApiDownloadDataFilesRequest()
            request.competition_name = competition
            with self._headers(headers):
                return api.download_data_files(request)

        return self._call(competition, ask)

    def size(self, competition: str) -> int | None:
        """Return the size of a competition's zip; it raises what a download would raise."""
        with closing(self.open_data(competition, end=0)) as response:
            total = response.headers.get("Content-Range", "").rpartition("/")[2]
            length = total or response.headers.get("Content-Length", "")
            return int(length) if length.isdigit() else None

    def listed_size(self, competition: str) -> int | None:
        """Return the bytes of the files that Kaggle lists, or of the first of very many."""
        import requests  # late on purpose: it comes with the client

        total, token = 0, ""
        try:
            for _ in range(MAX_FILE_PAGES):
                request = _types().ApiListDataFilesRequest()
                request.competition_name, request.page_size = competition, PAGE_ROWS
                if token:
                    request.page_token = token
                response = self._api().list_data_files(request)
                total += sum(file.total_bytes for file in response.files)
                token = response.next_page_token
                if not token:
                    break
        except (requests.RequestException, ValueError, TypeError, KeyError):
            return None  # a courtesy: the download itself looks again
        return total

    def check_access(self, competition: str) -> None:
        """Raise RulesNotAccepted or NoSuchCompetition if a download would."""
        if not self._facts(competition).user_has_entered:
            self.size(competition)  # the last word: a download that is not begun

    def competition_number(self, competition: str) -> int:
        """Return Kaggle's number of a competition."""
        return int(self._facts(competition).id)

    def _facts(self, competition: str) -> Any:
        def ask(api: Any, types: Any) -> Any:
            request = types.ApiGetCompetitionRequest()
            request.competition_name = competition
            return api.get_competition(request)

        return self._call(competition, ask)

    def pages(self, competition: str) -> list[Page]:
        """Return the pages of a competition: description, evaluation, data and so on."""

        def ask(api: Any, types: Any) -> list[Page]:
            request = types.ApiListCompetitionPagesRequest()
            request.competition_name = competition
            pages = api.list_competition_pages(request).pages
            return [Page(p.name, p.content, "markdown" not in (p.mime_type or "")) for p in pages]

        return self._call(competition, ask)

    def leaderboard(self, competition: str) -> Iterator[Row]:
        """Yield every team of the private leaderboard, page after page."""
        token = ""
        while True:
            response = self._call(competition, _leaderboard_page(competition, token))
            for row in response.submissions:
                yield Row(str(row.team_name or row.team_id), row.score)
            following = response.next_page_token
            if not following or following == token:
                return
            token = following

    def kernel(self, name: str) -> Kernel:
        """Return a notebook or a script by its USER/NAME."""
        user, _, slug = name.partition("/")

        def ask(api: Any, types: Any) -> Kernel:
            del api, types  # those of competitions
            from kagglesdk.kernels.types import kernels_api_service

            request = kernels_api_service.ApiGetKernelRequest()
            request.user_name, request.kernel_slug = user, slug
            blob = self._client.kernels.kernels_api_client.get_kernel(request).blob
            return Kernel(str(blob.source or ""), blob.kernel_type == "notebook")

        try:
            return self._call(name, ask)
        except (NoSuchCompetition, RulesNotAccepted):
            raise NoSuchKernel(
                f"{name}: Kaggle has no such notebook, or it is not public"
            ) from None

    def _call(self, competition: str, ask: Callable[[Any, Any], T]) -> T:
        """Ask Kaggle, again after a wait where that helps, and put errors into our words."""
        import requests  # late on purpose: it comes with the client

        patience = Patience(self.log)
        while True:
            try:
                return ask(self._api(), _types())
            except requests.HTTPError as error:
                self._judge(competition, error, patience)
            except requests.RequestException as error:
                patience.wait(f"{competition}: no answer from Kaggle ({type(error).__name__})")
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise DatasetError(
                    f"{competition}: Kaggle's answer is not understood: {error}: "
                    "is kagglesdk up to date?"
                ) from error

    def _judge(self, competition: str, error: Any, patience: Patience) -> None:
        status = error.response.status_code
        text = _message(error)
        if error.response.history and status in (400, 401, 403, 404):
            # Not Kaggle itself but where it sent us: the address was good for a while only.
            patience.wait(f"{competition}: the download was refused ({status} {text})")
        elif status == 401:
            self._next_credentials(text)
        elif status == 403:
            raise RulesNotAccepted(
                f"{competition}: Kaggle refuses access ({text}): accept the rules at "
                f"https://www.kaggle.com/c/{competition}/rules"
            ) from None
        elif status == 404:
            raise NoSuchCompetition(
                f"{competition}: Kaggle knows no such competition ({text})"
            ) from None
        elif status == 429:
            seconds = _retry_after(error.response.headers.get("Retry-After"))
            patience.wait_for_rate(f"{competition}: Kaggle asks for patience (429)", seconds)
        elif status >= 500:
            patience.wait(f"{competition}: Kaggle has a problem ({status} {text})")
        else:
            raise DatasetError(f"{competition}: Kaggle answers {status}: {text}") from None

    def _next_credentials(self, text: str) -> None:
        self._close()
        if self._current is not None:
            self._refused.append(self._current.where)
        self._current = next(self._credentials, None)
        if self._current is None:
            raise ConfigError(
                f"Kaggle refuses the credentials in {' and in '.join(self._refused)} ({text}): "
                "make a new token at https://www.kaggle.com/settings"
            ) from None

    def _api(self) -> Any:
        if self._client is None and self._current is not None:
            self._client = _connect(self._current)
        return self._client.competitions.competition_api_client

    @contextmanager
    def _headers(self, headers: dict[str, str]) -> Iterator[None]:
        """Send some headers along; the client itself has no way to pass them."""
        session = self._client.http_client()._session
        session.headers.update(headers)
        try:
            yield
        finally:
            for name in headers:
                session.headers.pop(name, None)

    def _close(self) -> None:
        if self._client is not None:
            self._client.__exit__(None, None, None)
            self._client = None


class Patience:
    """Wait longer each time, log it, and give up in the end."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.failures = 0
        self.refusals = 0

    def reset(self) -> None:
        """Begin anew: something went well in between."""
        self.failures = self.refusals = 0

    def wait(self, what: str) -> None:
        """Wait after a failure."""
        self.failures += 1
        if self.failures > MAX_RETRIES:
            raise DatasetError(
                f"{what}, given up after {MAX_RETRIES} more attempts: try again later"
            )
        self._sleep(what, FIRST_WAIT_SECONDS * 2 ** (self.failures - 1))

    def wait_for_rate(self, what: str, seconds: float | None) -> None:
        """Wait as long as asked, or longer each time."""
        self.refusals += 1
        if self.refusals > MAX_RATE_RETRIES:
            raise DatasetError(f"{what}, given up after {MAX_RATE_RETRIES} waits: try again later")
        usual = FIRST_RATE_WAIT_SECONDS * 2 ** (self.refusals - 1)
        self._sleep(what, usual if seconds is None else seconds)

    def _sleep(self, what: str, seconds: float) -> None:
        seconds = min(seconds, MAX_WAIT_SECONDS) * random.uniform(1, 1.1)  # not all workers at once
        self.log(f"{what}, again in {seconds:.0f} s")
        time.sleep(seconds)


def _known_credentials() -> Iterator[Credentials]:
    try:
        import kagglesdk  # noqa: F401 - late on purpose: optional, 0.7 s
    except ImportError:
        raise ConfigError(
            "downloads need Kaggle's client: pip install 'pytest-mlebench[kaggle]'"
        ) from None
    return find_credentials()


def _types() -> Any:
    from kagglesdk.competitions.types import competition_api_service

    return competition_api_service


def _connect(credentials: Credentials) -> Any:
    from kagglesdk import KaggleClient, kaggle_env

    try:
        env = kaggle_env.get_env()
    except Exception as error:  # the client raises a bare Exception
        raise ConfigError(f"{error}: unset it") from None
    token = _oauth_token(env) if credentials.oauth else credentials.token
    client = KaggleClient(
        env=env,
        username=credentials.username,
        password=credentials.key,
        api_token=token,
        user_agent="pytest-mlebench",
    )
    client.__enter__()
    _bound(client)
    if token is None:  # the client would rather take a token that it finds by itself
        client.http_client()._session.auth = (credentials.username, credentials.key)
    return client


def _oauth_token(env: Any) -> str:
    """Return the access token of an OAuth login, renewed if it is near its end."""
    from datetime import UTC, datetime, timedelta

    from kagglesdk import KaggleClient
    from kagglesdk.kaggle_creds import KaggleCredentials

    with KaggleClient(env=env, api_token="", user_agent="pytest-mlebench") as client:
        _bound(client)
        client.http_client()._session.auth = None
        login = KaggleCredentials.load(client=client)
        expires = login._access_token_expiration
        # The client takes a token for good until half an hour after its end.
        if not expires or expires < datetime.now(UTC) + timedelta(minutes=30):
            login.refresh_access_token()
        return str(login.get_access_token())


def _bound(client: Any) -> None:
    """Give every request of a client a time limit; by itself it would wait for ever."""
    from requests.adapters import HTTPAdapter

    class Bounded(HTTPAdapter):
        def send(self, request: Any, *args: Any, **kwargs: Any) -> Any:
            kwargs["timeout"] = kwargs.get("timeout") or (CONNECT_SECONDS, READ_SECONDS)
            return super().send(request, *args, **kwargs)

    session = client.http_client()._session
    session.mount("https://", Bounded())
    session.mount("http://", Bounded())


def _leaderboard_page(competition: str, token: str) -> Callable[[Any, Any], Any]:
    def ask(api: Any, types: Any) -> Any:
        request = types.ApiGetLeaderboardRequest()
        request.competition_name = competition
        request.page_size = PAGE_ROWS
        if token:
            request.page_token = token
        return api.get_leaderboard(request)

    return ask


def _message(error: Any) -> str:
    """Return what Kaggle says, in one line."""
    try:
        facts = error.response.json()
        text = facts.get("message") or facts.get("error") or ""
    except (ValueError, AttributeError):
        text = ""
    text = str(text or error.response.reason or "no reason given")
    return " ".join(text.split())[:200].rstrip(".")


def _retry_after(value: str | None) -> float | None:
    """Return the seconds of a Retry-After header, which may also be a date."""
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        then = email.utils.parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, then.timestamp() - time.time())
