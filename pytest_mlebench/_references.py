"""References to environment variables in what people write: ``${NAME}``."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pytest_mlebench.errors import ConfigError

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def referenced_names(text: str) -> tuple[str, ...]:
    """Return the names of the variables that a text refers to."""
    return tuple(_REFERENCE.findall(text))


def has_broken_reference(text: str) -> bool:
    """Tell whether something in a text looks like a reference and is none."""
    return "${" in _REFERENCE.sub("", text)


def resolve(text: str, values: Mapping[str, str], *, agent: str, setting: str) -> str:
    """Replace every reference by its value, or say which agent's setting needs which variable."""
    for name in referenced_names(text):
        if name not in values:
            raise ConfigError(
                f"agent {agent!r} needs the environment variable {name} "
                f"(its {setting} = {text!r}): export {name} and try again"
            )
    return _REFERENCE.sub(lambda match: values[match[1]], text)
