"""A session that merely has the plugin installed pays nothing, sees nothing, finds nothing left."""

from __future__ import annotations

import pytest
from plugin_session import Session

HEAVY = ("numpy", "pandas", "sklearn", "scipy", "docker", "kaggle", "kagglesdk", "rich", "requests")
HEAVY += ("aiohttp", "jinja2")

CONFTEST = f"""
import sys

def pytest_unconfigure(config):
    loaded = [name for name in {HEAVY!r} if name in sys.modules]
    ours = sorted(name for name in sys.modules if name.startswith("pytest_mlebench"))
    print("LOADED", loaded)
    print("OURS", ours)
"""


def test_nothing_heavy_is_imported_without_our_options(session: Session) -> None:
    session.pytester.makeconftest(CONFTEST)
    session.pytester.makepyfile("def test_trivial(): pass")
    result = session.alone("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["LOADED []"])
    ours = next(line for line in result.outlines if line.startswith("OURS"))
    modules = {"pytest_mlebench", "pytest_mlebench.plugin", "pytest_mlebench.plugin.options"}
    assert set(eval(ours.removeprefix("OURS "))) == modules | {
        "pytest_mlebench.plugin.fixtures",
        "pytest_mlebench.plugin.hookspecs",
    }


def test_nothing_is_printed_or_written_without_our_options(session: Session) -> None:
    session.pytester.makepyfile("def test_trivial(): pass")
    result = session.alone("-p", "no:cacheprovider")
    lines = [line for line in result.outlines if not line.startswith(("plugins:", "rootdir:"))]
    assert "mle" not in "\n".join(lines)
    own = ("__pycache__", "runpytest-0", "runpytest-current", "stdout", "stderr")
    left = [path.name for path in session.path.iterdir() if path.name not in own]
    assert left == ["test_nothing_is_printed_or_written_without_our_options.py"]


def test_collecting_all_competitions_imports_nothing_heavy(session: Session) -> None:
    session.pytester.makeconftest(CONFTEST)
    result = session.alone(
        "--mle-agent=dummy", "--mle-split=all", "--mle-seeds=3", "--collect-only", "-q"
    )
    result.stdout.fnmatch_lines(["225 tests collected*", "LOADED []"])


def test_switching_the_plugin_off_removes_options_fixtures_and_marker(session: Session) -> None:
    for option, word in (("--help", "--mle-"), ("--fixtures", "mle_"), ("--markers", "mle(")):
        assert word in session.alone(option).stdout.str()
        assert word not in session.alone("-p", "no:mlebench", option).stdout.str()
    result = session.alone("-p", "no:mlebench", "--mle-agent=dummy")
    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_help_has_a_group_with_every_option_and_ini_key(session: Session) -> None:
    from pytest_mlebench.plugin.options import OPTIONS

    text = session.alone("--help").stdout.str()
    assert "\nMLE-bench:" in text
    for option in OPTIONS:
        assert option.flag in text
        assert f"{option.key} (" in text


def test_our_tests_skip_without_an_agent_and_say_what_is_missing(
    session: Session, workers: tuple[str, ...]
) -> None:
    session.pytester.makepyfile(
        """
        import pytest

        @pytest.mark.mle(competition="demo-digits")
        def test_mine(mle_grade):
            assert mle_grade.valid
        """
    )
    result = session.alone("-rs", *workers)
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*needs an agent under test: give --mle-agent=NAME*"])
    assert not (session.path / "mle-runs").exists()
