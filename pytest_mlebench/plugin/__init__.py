"""The pytest plugin: what every session that has it installed pays for, and nothing more.

With an agent (``--mle-agent`` or its ini twin) ``activate`` registers what a session consists of;
without one the plugin only knows its options, its marker and its fixtures.
"""

from __future__ import annotations

import pytest

from pytest_mlebench.plugin import options

pytest_plugins = ["pytest_mlebench.plugin.fixtures"]

MARKER = (
    "mle(split=..., competition=..., seeds=..., require=..., limits=...): run this test once for "
    "each MLE-bench competition and seed; what is not given comes from the --mle-* options"
)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the ``pytest_mle_*`` hooks."""
    from pytest_mlebench.plugin import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the MLE-bench options and their ini twins."""
    options.add(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Turn the suite on if there is an agent."""
    config.addinivalue_line("markers", MARKER)
    if options.given(config, "agent") and not config.option.help:
        from pytest_mlebench.plugin.activate import activate  # late on purpose: only with an agent

        activate(config)
    elif unused := options.on_command_line(config):
        raise pytest.UsageError(f"{unused[0]} has no effect without --mle-agent=NAME")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Let ``--mle-hosts`` switch xdist on, which looks at its options right after us."""
    if options.given(config, "agent") and options.given(config, "hosts"):
        from pytest_mlebench.plugin.distribution import switch_on  # late on purpose: with hosts

        switch_on(config)


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Let ``-n auto`` mean as many attempts as this host can hold; xdist asks very early."""
    if not options.given(config, "agent"):
        return None
    from pytest_mlebench.plugin.distribution import workers_that_fit  # late on purpose

    return workers_that_fit(config)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make an item of each competition and seed for tests that take our fixtures."""
    if "mle_competition" in metafunc.fixturenames:
        from pytest_mlebench.plugin.collection import parametrize  # late on purpose: our tests

        parametrize(metafunc)
