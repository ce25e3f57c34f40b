"""A selection is checked as a whole before the first byte, then prepared several at a time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import pytest
from kaggle_server import Fault, KaggleServer
from store_files import PREPARE, MakeCompetition, tree, zipped

from pytest_mlebench._units import show_size
from pytest_mlebench.cli import main
from pytest_mlebench.errors import ConfigError, ConfigErrors
from pytest_mlebench.host.hardware import host_cpus
from pytest_mlebench.registry import Registry
from pytest_mlebench.store import bulk, progress
from pytest_mlebench.store.bulk import largest_first, preflight, prepare_selection
from pytest_mlebench.store.obtain import KeepRaw
from pytest_mlebench.store.store import Store

NAMES = ("one", "two", "three", "four")


@pytest.fixture
def registry(kaggle: KaggleServer, tmp_path: Path, make_competition: MakeCompetition) -> Registry:
    """Return four competitions that Kaggle has."""
    for name in NAMES:
        kaggle.add(name, zipped(make_competition(name, source="kaggle"), tmp_path))
    return Registry([tmp_path / "competitions"])


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "data")


def test_parallel_preparation_gives_the_same(
    registry: Registry, store: Store, tmp_path: Path
) -> None:
    prepare_selection(registry, NAMES, store, jobs=1)
    prepare_selection(registry, NAMES, Store(tmp_path / "other"), jobs=4)
    assert tree(tmp_path / "other") == tree(store.root)


def test_all_are_prepared(registry: Registry, store: Store) -> None:
    said: list[str] = []
    preparations = prepare_selection(registry, NAMES, store, progress=said.append)
    assert [preparation.competition.id for preparation in preparations] == list(NAMES)
    assert all(
        preparation.dataset and preparation.dataset.answers.is_file()
        for preparation in preparations
    )
    assert said[0] == "asking Kaggle for 4 competition(s)"
    assert sum(line.endswith(": prepared") for line in said) == 4


def test_one_is_fetched_while_another_is_made(
    registry: Registry, store: Store, make_competition: MakeCompetition, tmp_path: Path
) -> None:
    flag = tmp_path / "fetched"
    wait = f"    import time\n    for _ in range(6000):\n        if Path({str(flag)!r}).exists():\n"
    wait += "            break\n        time.sleep(0.01)\n    else:\n        raise TimeoutError\n"
    wait += "    header,"
    for name in ("one", "two"):  # both places for making are taken until the others are there
        make_competition(name, source="kaggle", prepare=PREPARE.replace("    header,", wait, 1))
    unpacked: list[str] = []

    def note(text: str) -> None:
        unpacked.extend(name for name in ("three", "four") if text.startswith(f"{name}: unpacking"))
        if len(unpacked) == 2:
            flag.touch()

    preparations = prepare_selection(registry, NAMES, store, jobs=2, progress=note)
    assert [preparation.error for preparation in preparations] == [None] * 4


def test_the_largest_are_begun_first(registry: Registry, store: Store, tmp_path: Path) -> None:
    one, two, three, four = (registry.load(name) for name in NAMES)
    published = [replace(one, size_gb=0.5), two, replace(three, size_gb=120.0), four]
    assert [each.id for each in largest_first(published, store)[:2]] == ["three", "one"]
    for name, size in (("two", 10), ("four", 20)):
        (tmp_path / f"{name}.zip").write_bytes(bytes(size))
    assert [each.id for each in largest_first([two, four], store, tmp_path)] == ["four", "two"]


def test_all_rules_that_are_not_accepted_are_listed_in_one_message(
    registry: Registry, store: Store, kaggle: KaggleServer
) -> None:
    kaggle.not_accepted |= {"two", "four"}
    with pytest.raises(ConfigError) as caught:
        prepare_selection(registry, NAMES, store)
    assert str(caught.value) == (
        "the rules of 2 of 4 competitions are not accepted yet:\n"
        "  four: https://www.kaggle.com/c/four/rules\n"
        "  two: https://www.kaggle.com/c/two/rules\n"
        "accept them there with the account of your Kaggle credentials, then run this again"
    )
    assert not store.root.exists()


def test_competitions_that_kaggle_does_not_know_are_listed(
    registry: Registry, store: Store, kaggle: KaggleServer
) -> None:
    del kaggle.blobs["two"], kaggle.blobs["one"]
    with pytest.raises(ConfigError) as caught:
        prepare_selection(registry, NAMES, store)
    assert str(caught.value) == "Kaggle knows no competition one, two"


def test_prepared_competitions_are_not_asked_for(
    registry: Registry, store: Store, kaggle: KaggleServer
) -> None:
    prepare_selection(registry, ["one", "two"], store)
    kaggle.asked.clear()
    kaggle.not_accepted |= {"one", "two"}
    prepare_selection(registry, NAMES, store)
    assert {asked.competition for asked in kaggle.asked} == {"three", "four"}


def test_missing_credentials_are_one_complaint(
    registry: Registry, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KAGGLE_API_TOKEN")
    with pytest.raises(ConfigError, match=r"^no Kaggle credentials"):
        prepare_selection(registry, NAMES, store)
    assert not store.root.exists()


def test_refused_credentials_are_one_complaint(
    registry: Registry, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAGGLE_API_TOKEN", "bad-token")
    with pytest.raises(ConfigError) as caught:
        prepare_selection(registry, NAMES, store)
    assert str(caught.value) == (
        "Kaggle refuses the credentials in KAGGLE_API_TOKEN (Unauthenticated): "
        "make a new token at https://www.kaggle.com/settings"
    )


def test_one_that_fails_does_not_stop_the_others(
    registry: Registry, store: Store, make_competition: MakeCompetition
) -> None:
    make_competition("two", source="kaggle", prepare=PREPARE.replace("[:15]", "['x']"))
    preparations = prepare_selection(registry, NAMES, store, jobs=2)
    failed = [preparation for preparation in preparations if preparation.error]
    assert [preparation.competition.id for preparation in failed] == ["two"]
    assert store.find(registry.load("four")) is not None


Usage = namedtuple("Usage", "total used free")


def test_rules_and_space_are_one_refusal(
    registry: Registry, store: Store, kaggle: KaggleServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    kaggle.not_accepted.update(NAMES)
    competitions = [replace(registry.load(name), size_gb=1.0) for name in NAMES]
    monkeypatch.setattr(bulk.shutil, "disk_usage", lambda _: Usage(0, 0, 10**9))
    with pytest.raises(ConfigErrors) as caught:
        preflight(competitions, store)
    rules, space = map(str, caught.value.errors)
    assert rules.startswith("the rules of 4 of 4 competitions are not accepted yet:")
    assert space.startswith("the selection needs about ")


@pytest.mark.parametrize(
    "case",
    [
        ("none", 1, 4 * 2 + 3),  # all unpacked, one more with its zip in passing
        ("none", 2, 4 * 2 + 12),  # two are made while two are fetched
        ("zip", 1, 4 * 3 + 2),
        ("all", 1, 4 * 5 + 2),
    ],
)
def test_space_is_checked_over_the_whole_selection(
    registry: Registry,
    store: Store,
    kaggle: KaggleServer,
    monkeypatch: pytest.MonkeyPatch,
    case: tuple[KeepRaw, int, int],
) -> None:
    keep_raw, jobs, factor = case
    for name in NAMES:
        kaggle.add(name, bytes(10_000))
        kaggle.file_sizes[name] = [50] * 1000  # more than one page
    needed = factor * 10_000
    competitions = [registry.load(name) for name in NAMES]
    monkeypatch.setattr(bulk.shutil, "disk_usage", lambda _: Usage(0, 0, needed - 1))
    with pytest.raises(ConfigError) as caught:
        preflight(competitions, store, jobs=jobs, keep_raw=keep_raw)
    figure = show_size(needed)
    assert str(caught.value) == (
        f"the selection needs about {figure} in {store.root}, where {figure} are free: "
        "free some space, choose another store with --mle-data-dir, or a smaller selection"
    )
    assert not store.root.exists()
    monkeypatch.setattr(bulk.shutil, "disk_usage", lambda _: Usage(0, 0, needed))
    preflight(competitions, store, jobs=jobs, keep_raw=keep_raw)


@pytest.mark.parametrize(
    "case",
    [
        (5, 5),  # more than the guess
        (1, 1),  # less than the guess
        (1000, 30),  # more than such a zip can hold
    ],
)
def test_a_published_size_counts_more_than_a_guess(
    kaggle: KaggleServer,
    store: Store,
    make_competition: MakeCompetition,
    monkeypatch: pytest.MonkeyPatch,
    case: tuple[int, int],
) -> None:
    published, factor = case
    kaggle.add("big", bytes(10_000))
    big = replace(make_competition("big", source="kaggle"), size_gb=published * 1e-5)
    needed = (2 * factor + 1) * 10_000
    monkeypatch.setattr(bulk.shutil, "disk_usage", lambda _: Usage(0, 0, needed - 1))
    with pytest.raises(ConfigError, match=f"needs about {show_size(needed)}"):
        preflight([big], store)
    monkeypatch.setattr(bulk.shutil, "disk_usage", lambda _: Usage(0, 0, needed))
    preflight([big], store)


def test_where_there_is_room_nothing_is_asked_of_the_blob_store(
    registry: Registry, store: Store, kaggle: KaggleServer
) -> None:
    preflight([registry.load(name) for name in NAMES], store)
    assert {asked.what for asked in kaggle.asked} == {"GetCompetition", "ListDataFiles"}


def test_a_server_that_lists_no_files_is_no_obstacle(
    registry: Registry, store: Store, kaggle: KaggleServer
) -> None:
    kaggle.faults["ListDataFiles"].extend([Fault(500), Fault(404), Fault(403), Fault(429)])
    preflight([registry.load(name) for name in NAMES], store)


def test_an_account_that_has_not_entered_but_may_download_is_accepted(
    registry: Registry, store: Store, kaggle: KaggleServer
) -> None:
    kaggle.not_entered.add("one")
    preflight([registry.load(name) for name in NAMES], store)
    asked = [asked for asked in kaggle.asked if asked.what == "blob"]
    assert [(each.competition, each.headers["Range"]) for each in asked] == [("one", "bytes=0-0")]


def command(tmp_path: Path, *arguments: str) -> int:
    where = ["--competitions", str(tmp_path / "competitions"), "--data-dir", str(tmp_path / "data")]
    return main(["prepare", *where, *arguments])


@pytest.mark.usefixtures("registry")
def test_the_command_prepares_and_sums_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(tmp_path, "one", "--competition", "two", "--jobs", "1") == 0
    out, err = capsys.readouterr()
    assert out == f"2 of 2 competition(s) prepared in {tmp_path / 'data'}\n"
    assert "one: prepared\n" in err


@pytest.mark.usefixtures("registry")
def test_the_command_ends_with_4_when_rules_are_not_accepted(
    tmp_path: Path, kaggle: KaggleServer, capsys: pytest.CaptureFixture[str]
) -> None:
    kaggle.not_accepted.add("two")
    assert command(tmp_path, "one", "two") == 4
    assert "\n  two: https://www.kaggle.com/c/two/rules\n" in capsys.readouterr().err


@pytest.mark.usefixtures("registry")
def test_the_command_ends_with_1_when_one_fails(
    tmp_path: Path, make_competition: MakeCompetition, capsys: pytest.CaptureFixture[str]
) -> None:
    make_competition("two", source="kaggle", prepare=PREPARE.replace("[:15]", "['x']"))
    assert command(tmp_path, "one", "two", "--jobs", "2") == 1
    out = capsys.readouterr().out
    assert "FAILED two: cannot prepare" in out
    assert f"1 of 2 competition(s) prepared in {tmp_path / 'data'}\n" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nothing to prepare: name competitions, or a split with --split"),
        (["one", "--jobs", "0"], "--jobs must be at least 1, given: 0"),
        (["onne"], "unknown competition 'onne', did you mean 'one'?"),
        (["one", "--from", "nowhere"], "--from names a folder that does not exist: nowhere"),
    ],
)
@pytest.mark.usefixtures("registry")
def test_the_command_explains_wrong_use(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert command(tmp_path, *arguments) == 4
    assert capsys.readouterr().err == f"pytest-mlebench: error: {message}\n"


@pytest.mark.usefixtures("registry")
def test_the_command_takes_local_sources(
    tmp_path: Path, kaggle: KaggleServer, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "zips").mkdir()
    (tmp_path / "zips" / "one.zip").write_bytes(kaggle.blobs["one"].data)
    assert command(tmp_path, "one", "two", "three", "--from", str(tmp_path / "zips")) == 4
    assert capsys.readouterr().err == (
        f"pytest-mlebench: error: two: nothing for it in {tmp_path / 'zips'}: "
        "expected two.zip or a folder two with raw files\n"
        f"three: nothing for it in {tmp_path / 'zips'}: "
        "expected three.zip or a folder three with raw files\n"
    )
    assert command(tmp_path, "one", "--from", str(tmp_path / "zips")) == 0
    assert kaggle.asked == []


def test_the_command_says_what_is_not_verified(
    registry: Registry, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del registry
    assert command(tmp_path, "one", "--verify", "off") == 0
    assert capsys.readouterr().out.endswith(", 1 not verified\n")


@pytest.mark.usefixtures("registry")
def test_the_command_fetches_original_descriptions(tmp_path: Path, kaggle: KaggleServer) -> None:
    kaggle.page_lists["one"] = [{"name": "description", "content": "<p>Hello</p>"}]
    assert command(tmp_path, "one", "--description", "kaggle") == 0
    text = (tmp_path / "data" / "one" / "description.kaggle.md").read_text()
    assert text == "# A test\n\n## Description\n\nHello\n"


def test_an_interrupt_ends_the_downloads(
    registry: Registry, store: Store, kaggle: KaggleServer
) -> None:
    kaggle.rate = 2_000
    said: list[str] = []

    def interrupt(text: str) -> None:
        said.append(text)
        if text.endswith(": downloading"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare_selection(registry, NAMES, store, jobs=2, progress=interrupt)
    assert not list(store.root.glob("*/prepared"))
    kaggle.rate = None
    prepare_selection(registry, NAMES, store)


def test_a_preflight_survives_too_many_requests(
    registry: Registry, store: Store, kaggle: KaggleServer
) -> None:
    kaggle.faults["GetCompetition"].extend([Fault(429), Fault(500), Fault(429)])
    assert len(prepare_selection(registry, NAMES, store)) == 4


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="only Linux has it")
def test_as_many_are_prepared_at_a_time_as_this_process_may_use_cores() -> None:
    code = (
        "import os; os.sched_setaffinity(0, list(os.sched_getaffinity(0))[:1]);"
        "from pytest_mlebench.store.bulk import default_jobs; raise SystemExit(default_jobs())"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 1


def test_competitions_made_side_by_side_share_the_cpus(
    make_competition: MakeCompetition, tmp_path: Path
) -> None:
    note = (
        "    import os\n"
        "    from pytest_mlebench.host.shared_cpus import further_cpus\n"
        "    with further_cpus(10_000) as count:\n"
        f"        note = Path({str(tmp_path)!r}) / f'{{public.parents[2].name}}.cpus'\n"
        "        note.write_text(str(count))\n"
        "    header,"
    )
    for name in NAMES[:2]:
        make_competition(name, prepare=PREPARE.replace("    header,", note, 1))
    registry = Registry([tmp_path / "competitions"])
    for jobs, most in ((1, 10_000), (2, host_cpus() - 1)):
        made = prepare_selection(registry, NAMES[:2], Store(tmp_path / f"{jobs}"), jobs=jobs)
        assert [each.error for each in made] == [None, None]
        counts = [int(path.read_text()) for path in tmp_path.glob("*.cpus")]
        assert len(counts) == 2
        assert max(counts) <= most
        assert (max(counts) == most) or jobs > 1


@pytest.mark.skipif(sys.platform != "linux", reason="what a process has written is in /proc")
def test_what_a_preparation_has_written_is_shown_while_it_lasts(
    store: Store, make_competition: MakeCompetition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_PULSES", 0.01)
    flag = tmp_path / "shown"
    wait = f"    import time\n    for _ in range(6000):\n        if Path({str(flag)!r}).exists():\n"
    wait += "            break\n        time.sleep(0.01)\n    else:\n        raise TimeoutError\n"
    for name in NAMES[:2]:
        make_competition(name, prepare=PREPARE.replace("    header,", f"{wait}    header,", 1))

    def note(text: str) -> None:
        if text.startswith("one: preparing, ") and text.endswith(" written so far"):
            flag.touch()

    registry = Registry([tmp_path / "competitions"])
    made = prepare_selection(registry, NAMES[:2], store, jobs=2, progress=note)
    assert [each.error for each in made] == [None, None]
