"""What every dialect can be asked."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_mlebench.gateway.refusal import CallRefusal
from pytest_mlebench.gateway.spending import Usage

Message = Mapping[str, Any]  # a body, or the data of one event of a stream

MAX_TOKENS = 2**53  # what JSON's numbers hold exactly; a count beyond is nonsense

_NOTHING = re.compile(r"(?!)")


class Dialect(ABC):
    """A protocol's way to say things; paths are those below the upstream's URL, decoded."""

    free = _NOTHING  # paths of calls that cost nothing
    deferred = _NOTHING  # paths of calls whose work is done, and paid for, later

    @abstractmethod
    def models(self, path: str, body: Message) -> Iterator[str]:
        """Yield the models that a call may run, the one it asks for first."""

    @abstractmethod
    def output_bound(self, path: str, body: Message) -> int | None:
        """Return how many tokens each of a call's answers may have at most, if it says so."""

    @abstractmethod
    def usage_fields(self, message: Message) -> Message | None:
        """Return the part of a message that tells the usage, in the provider's own words."""

    @abstractmethod
    def usage(self, fields: Message) -> Usage | None:
        """Return the usage in those words, if they make sense."""

    @abstractmethod
    def answered_by(self, message: Message) -> str | None:
        """Return the model that a message says it comes from."""

    @abstractmethod
    def wording(self, refusal: CallRefusal) -> dict[str, Any]:
        """Return a refusal in the provider's own form."""

    def answers(self, body: Message) -> int:
        """Return how many answers a call asks for."""
        return 1

    def adds_input(self, body: Message) -> bool:
        """Tell whether the provider adds to the input what the body does not have in it."""
        return False

    def is_deferred(self, path: str, body: Message) -> bool:
        """Tell whether the work is done later, so that no answer tells its usage."""
        return self.deferred.search(path) is not None

    def is_free(self, path: str) -> bool:
        """Tell whether calls of a path cost nothing."""
        return self.free.search(path) is not None

    def can_add_usage(self, path: str, body: Message) -> bool:
        """Tell whether a stream has its usage only if it is asked for, and nobody asked."""
        return False

    def service_tier(self, message: Message, fields: Message) -> str | None:
        """Return the tier that a call was served in, on which its price may depend."""
        places = (message, table(message, "response"), fields)
        return next((tier for one in places if (tier := text(one.get("service_tier")))), None)

    def hour_cache_tokens(self, fields: Message) -> int:
        """Return the tokens written to a cache for an hour, which costs more."""
        return 0


def count(value: object) -> int | None:
    """Return a number of tokens, or None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < MAX_TOKENS:
        return None
    return value


def first_count(fields: Message, *names: str) -> int | None:
    """Return the first of some fields that is a number of tokens."""
    return next((n for name in names if (n := count(fields.get(name))) is not None), None)


def most(fields: Message, *names: str) -> int | None:
    """Return the largest of some fields that are numbers of tokens."""
    return max((n for name in names if (n := count(fields.get(name))) is not None), default=None)


def tables(value: object) -> list[Message]:
    """Return the tables of a list, or none."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def table(fields: Message, *names: str) -> Message:
    """Return the first of some fields that is a table, or an empty one."""
    return next((value for name in names if isinstance(value := fields.get(name), dict)), {})


def text(value: object) -> str | None:
    """Return a text that is not empty, or None."""
    return value if isinstance(value, str) and value else None
