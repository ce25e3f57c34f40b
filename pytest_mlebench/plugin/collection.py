"""Collecting the built-in suite: when it is collected, and how its items are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_mlebench.plugin import options, suite
from pytest_mlebench.plugin.session import MleSession

_SUITE = Path(suite.__file__)
_MODULE = suite.__name__


class SuiteCollection:
    """Put the suite in the place of test paths where the command line names none."""

    def __init__(self, session: MleSession) -> None:
        config = session.config
        nothing_typed = config.args_source is not pytest.Config.ArgsSource.ARGS
        if nothing_typed and options.on_command_line(config):
            config.args = [suite.NODE]
            config.args_source = pytest.Config.ArgsSource.ARGS

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> None:
        """Turn ``mlebench::…``, as node ids have it, into what pytest finds.

        This is done no earlier, so that xdist hands workers the name and not a path of this host.
        """
        config = session.config
        name, separator = suite.NODE, "::"
        arguments = [arg.partition(separator) for arg in config.args]
        if any(first == name for first, _, _ in arguments):
            config.option.pyargs = True
            config.args = [
                _MODULE + colons + rest if first == name else first + colons + rest
                for first, colons, rest in arguments
            ]

    @pytest.hookimpl
    def pytest_pycollect_makemodule(
        self, module_path: Path, parent: pytest.Collector
    ) -> pytest.Module | None:
        """Give the suite a node id that is short and the same on every host."""
        if module_path != _SUITE:
            return None
        module: pytest.Module = pytest.Module.from_parent(
            parent, path=module_path, nodeid=suite.NODE
        )
        return module
