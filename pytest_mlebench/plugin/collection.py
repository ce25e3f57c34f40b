"""Collecting: the built-in suite, the competitions and seeds of a test, and what identifies it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_mlebench.errors import ConfigError
from pytest_mlebench.plugin import options, suite
from pytest_mlebench.plugin.extent import add_items
from pytest_mlebench.plugin.selection import DEFAULT_SPLIT, marked, registry, seeds_from
from pytest_mlebench.plugin.session import FIXTURES, ITEM_KEY, MleSession, current
from pytest_mlebench.reports.results import ItemKey

_SUITE = Path(suite.__file__)
_MODULE = suite.__name__
_OF_AN_ATTEMPT = {"mle_run", "mle_grade"}  # a test that takes one of them is about an attempt


class Collection:
    """Put the suite in the place of test paths where there are none, and know every item."""

    def __init__(self, session: MleSession) -> None:
        self.session = session
        self._suite_is_asked_for = False
        config = session.config
        nothing_typed = config.args_source is not pytest.Config.ArgsSource.ARGS
        if nothing_typed and options.on_command_line(config):
            config.args = list(session.settings.tests) or [suite.NODE]
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
            self._suite_is_asked_for = True
            config.option.pyargs = True
            config.args = [
                _MODULE + colons + rest if first == name else first + colons + rest
                for first, colons, rest in arguments
            ]

    @pytest.hookimpl(tryfirst=True)
    def pytest_collect_directory(
        self, path: Path, parent: pytest.Collector
    ) -> pytest.Collector | None:
        """Collect the suite without the ``conftest.py`` files that happen to be above it."""
        on_the_way = path in _SUITE.parents and (path / "__init__.py").is_file()
        return _suite_folder(parent, path) if self._suite_is_asked_for and on_the_way else None

    @pytest.hookimpl
    def pytest_pycollect_makemodule(
        self, module_path: Path, parent: pytest.Collector
    ) -> pytest.Module | None:
        """Give the suite a node id that is short and the same on every host."""
        return _suite_module(parent) if module_path == _SUITE else None

    @pytest.hookimpl
    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Give an item that is about an attempt its key."""
        if isinstance(item, pytest.Function) and _OF_AN_ATTEMPT & set(item.fixturenames):
            item.stash[ITEM_KEY] = _key(item, self.session)


class SuiteFolder(pytest.Collector):
    """A folder on the way to the suite's module. It is no ``Directory``: pytest would import every
    ``conftest.py`` above it, and above a virtual environment there may be anybody's."""

    def collect(self) -> Iterator[pytest.Collector]:
        """Yield what is next on the way."""
        if self.path == _SUITE.parent:
            yield _suite_module(self)
        else:
            yield _suite_folder(self, self.path / _SUITE.relative_to(self.path).parts[0])


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Give a test its competitions and seeds: the marker's, else the options'."""
    config = metafunc.config
    session = current(config)
    try:
        mark = marked(metafunc.definition)
        if mark.splits or mark.competitions:
            ids = registry(config).select(mark.splits, mark.competitions)
        elif session is not None:
            ids = session.settings.ids
        else:
            ids = registry(config).select((DEFAULT_SPLIT,))
        usual = session.settings.seeds if session else options.given(config, "seeds")
        seeds = mark.seeds or seeds_from(usual, options.spelled(config, "seeds"))
        if session is not None and _OF_AN_ATTEMPT & set(metafunc.fixturenames):
            add_items(session, metafunc.definition, ids, seeds)
    except ConfigError as error:
        raise pytest.Collector.CollectError(str(error)) from None
    names = ("mle_competition", "mle_seed")
    if "mle_seed" not in metafunc.fixturenames:
        metafunc.parametrize("mle_competition", ids, ids=ids, indirect=True)
        return
    pairs = [(competition, seed) for competition in ids for seed in range(seeds)]
    labels = [f"{competition}-seed{seed}" for competition, seed in pairs]
    metafunc.parametrize(names, pairs, ids=labels, indirect=True)


def _suite_folder(parent: pytest.Collector, path: Path) -> SuiteFolder:
    folder: SuiteFolder = SuiteFolder.from_parent(
        parent, name=path.name, path=path, nodeid=suite.NODE
    )
    return folder


def _suite_module(parent: pytest.Collector) -> pytest.Module:
    module: pytest.Module = pytest.Module.from_parent(parent, path=_SUITE, nodeid=suite.NODE)
    return module


def _key(item: pytest.Function, session: MleSession) -> ItemKey:
    parameters: Mapping[str, Any] = item.callspec.params
    return ItemKey(
        competition=parameters["mle_competition"],
        seed=parameters["mle_seed"],
        agent=_foreign_agent(item) or session.shown_agent,
        conditions=marked(item).conditions,
    )


def _foreign_agent(item: pytest.Function) -> str | None:
    """Return where a fixture is that brings another agent than the option names, if there is one.

    Its agent has no name yet: it is made when the test runs.
    """
    definitions = item._fixtureinfo.name2fixturedefs.get("mle_agent")
    if not definitions or definitions[-1].func.__module__ == FIXTURES:
        return None
    where = definitions[-1].baseid or definitions[-1].func.__module__
    number = item.callspec.indices.get("mle_agent")
    return f"mle_agent of {where}" + ("" if number is None else f"[{number}]")
