"""The real client downloads from a server that speaks its protocol, whatever goes wrong."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest
from kaggle_server import Fault, KaggleServer

from pytest_mlebench.errors import ConfigError, DatasetError
from pytest_mlebench.kaggle import client
from pytest_mlebench.kaggle import download as module
from pytest_mlebench.kaggle.client import Kaggle, RulesNotAccepted
from pytest_mlebench.kaggle.download import Zip, download, read_zip
from pytest_mlebench.store.progress import Lines

DATA = os.urandom(300_000)
MD5 = hashlib.md5(DATA).hexdigest()


class Fetch:
    """Download ``some.zip`` and keep what was said."""

    def __init__(self, folder: Path) -> None:
        self.target = folder / "some.zip"
        self.said: list[str] = []

    def __call__(self) -> Zip:
        progress = Lines(self.said.append, every=0)
        with Kaggle(progress) as kaggle:
            return download(kaggle, "some", self.target, progress)


@pytest.fixture
def fetch(kaggle: KaggleServer, tmp_path: Path) -> Fetch:
    kaggle.add("some", DATA)
    return Fetch(tmp_path)


def test_a_zip_arrives_with_its_checksum(fetch: Fetch) -> None:
    assert fetch() == Zip(MD5, len(DATA), read_zip(fetch.target).validator)  # type: ignore[union-attr]
    assert fetch.target.read_bytes() == DATA
    assert {p.name for p in fetch.target.parent.glob("some*")} == {"some.zip", "some.zip.json"}


def test_progress_tells_speed_and_time_left(fetch: Fetch, kaggle: KaggleServer) -> None:
    kaggle.rate = 500_000
    fetch()
    assert any(
        line.startswith("some: ") and " of 300kB (" in line and line.endswith("s left")
        for line in fetch.said
    )
    assert fetch.said[-1].startswith("some: 300kB downloaded, ")


def test_the_blob_store_gets_no_credentials(fetch: Fetch, kaggle: KaggleServer) -> None:
    fetch()
    (asked,) = (asked for asked in kaggle.asked if asked.what == "DownloadDataFiles")
    assert asked.headers["Authorization"] == "Bearer good-token"
    assert kaggle.count("blob") == 1


def ranges(kaggle: KaggleServer) -> list[str | None]:
    return [asked.headers.get("Range") for asked in kaggle.asked if asked.what == "blob"]


def test_a_broken_connection_is_taken_up_where_it_broke(fetch: Fetch, kaggle: KaggleServer) -> None:
    kaggle.faults["blob"].append(Fault(cut_after=100_000))
    assert fetch().md5 == MD5
    assert ranges(kaggle) == [None, "bytes=100000-"]
    assert any(
        line.startswith("some: the connection broke at 100000 bytes (") and "again in" in line
        for line in fetch.said
    )


def test_many_broken_connections_are_survived_as_long_as_something_comes(
    fetch: Fetch, kaggle: KaggleServer
) -> None:
    kaggle.faults["blob"].extend(Fault(cut_after=20_000) for _ in range(client.MAX_RETRIES + 4))
    assert fetch().md5 == MD5


def test_a_connection_that_brings_nothing_is_given_up(fetch: Fetch, kaggle: KaggleServer) -> None:
    kaggle.faults["blob"].extend(Fault(cut_after=0) for _ in range(client.MAX_RETRIES + 1))
    with pytest.raises(DatasetError) as caught:
        fetch()
    assert str(caught.value).startswith("some: the connection broke at 0 bytes (")
    assert str(caught.value).endswith(", given up after 6 more attempts: try again later")


def test_what_a_killed_process_left_is_continued(fetch: Fetch, kaggle: KaggleServer) -> None:
    part = fetch.target.with_name("some.zip.part")
    part.write_bytes(DATA[:120_000])
    note = {"validator": kaggle.blobs["some"].etag, "total": len(DATA)}
    part.with_name("some.zip.part.json").write_text(json.dumps(note))
    assert fetch().md5 == MD5
    assert ranges(kaggle) == ["bytes=120000-"]
    assert fetch.said[0] == "some: continuing at 120000 bytes"


def test_a_download_that_was_complete_is_not_asked_for_again(
    fetch: Fetch, kaggle: KaggleServer
) -> None:
    part = fetch.target.with_name("some.zip.part")
    part.write_bytes(DATA)
    note = {"validator": kaggle.blobs["some"].etag, "total": len(DATA)}
    part.with_name("some.zip.part.json").write_text(json.dumps(note))
    assert fetch().md5 == MD5
    assert kaggle.asked == []


def test_a_part_of_another_version_is_not_continued(fetch: Fetch, kaggle: KaggleServer) -> None:
    part = fetch.target.with_name("some.zip.part")
    part.write_bytes(b"x" * 120_000)
    part.with_name("some.zip.part.json").write_text(
        json.dumps({"validator": '"older"', "total": 400_000})
    )
    assert fetch().md5 == MD5
    assert fetch.target.read_bytes() == DATA
    assert "some: cannot be continued, from the beginning" in fetch.said
    assert kaggle.count("blob") == 1


@pytest.mark.parametrize("note", [None, "not json", '{"validator": null, "total": 300000}'])
def test_a_part_of_unknown_origin_is_not_continued(
    fetch: Fetch, kaggle: KaggleServer, note: str | None
) -> None:
    part = fetch.target.with_name("some.zip.part")
    part.write_bytes(b"x" * 120_000)
    if note:
        part.with_name("some.zip.part.json").write_text(note)
    assert fetch().md5 == MD5
    assert ranges(kaggle) == [None]


def test_a_server_without_etag_is_asked_for_everything_again(
    fetch: Fetch, kaggle: KaggleServer
) -> None:
    kaggle.blobs["some"].etag = None
    kaggle.faults["blob"].append(Fault(cut_after=100_000))
    assert fetch().md5 == MD5
    assert fetch.target.read_bytes() == DATA


def test_a_body_without_length_ends_where_it_ends(fetch: Fetch, kaggle: KaggleServer) -> None:
    kaggle.faults["blob"].append(Fault(no_length=True))
    assert fetch().md5 == MD5


def test_a_stalled_connection_is_replaced(
    fetch: Fetch, kaggle: KaggleServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "READ_SECONDS", 0.3)
    kaggle.faults["blob"].append(Fault(stall_after=100_000))
    assert fetch().md5 == MD5
    assert ranges(kaggle) == [None, "bytes=100000-"]


def test_a_trickling_connection_is_replaced(
    fetch: Fetch, kaggle: KaggleServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WATCH_SECONDS", 0.3)
    kaggle.faults["blob"].append(Fault(stall_after=100, trickle=True))
    assert fetch().md5 == MD5
    assert any("the download has stalled at" in line for line in fetch.said)


def test_a_first_request_without_answer_is_repeated(
    fetch: Fetch, kaggle: KaggleServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "READ_SECONDS", 0.3)
    kaggle.faults["DownloadDataFiles"].append(Fault(stall_after=0))
    assert fetch().md5 == MD5
    assert any(line.startswith("some: no answer from Kaggle (") for line in fetch.said)


def test_too_many_requests_are_waited_for_visibly(fetch: Fetch, kaggle: KaggleServer) -> None:
    kaggle.faults["DownloadDataFiles"].extend(
        [Fault(429, {"Retry-After": "0.2"}), Fault(429), Fault(429, {"Retry-After": "soon"})]
    )
    assert fetch().md5 == MD5
    waits = [line for line in fetch.said if "patience" in line]
    assert waits == ["some: Kaggle asks for patience (429), again in 0 s"] * 3


def test_too_many_requests_for_too_long_end(
    fetch: Fetch, kaggle: KaggleServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MAX_WAIT_SECONDS", 0.01)
    kaggle.faults["DownloadDataFiles"].extend(
        Fault(429) for _ in range(client.MAX_RATE_RETRIES + 1)
    )
    with pytest.raises(DatasetError) as caught:
        fetch()
    assert str(caught.value) == (
        "some: Kaggle asks for patience (429), given up after 12 waits: try again later"
    )


@pytest.mark.parametrize("what", ["DownloadDataFiles", "blob"])
def test_a_server_error_is_repeated(fetch: Fetch, kaggle: KaggleServer, what: str) -> None:
    kaggle.faults[what].extend([Fault(500, message="Oops."), Fault(503)])
    assert fetch().md5 == MD5
    assert "some: Kaggle has a problem (500 Oops), again in 0 s" in fetch.said


def test_an_address_that_has_expired_is_asked_for_again(fetch: Fetch, kaggle: KaggleServer) -> None:
    kaggle.faults["blob"].append(Fault(403, message="ExpiredToken"))
    assert fetch().md5 == MD5
    assert "some: the download was refused (403 ExpiredToken), again in 0 s" in fetch.said


def test_bytes_damaged_on_the_way_are_fetched_again(fetch: Fetch, kaggle: KaggleServer) -> None:
    kaggle.blobs["some"].announces_md5 = True
    kaggle.faults["blob"].append(Fault(corrupt=True))
    assert fetch().md5 == MD5
    assert fetch.target.read_bytes() == DATA
    assert "some: the bytes that arrived are wrong, downloading again" in fetch.said


def test_bytes_damaged_twice_are_an_error(fetch: Fetch, kaggle: KaggleServer) -> None:
    kaggle.blobs["some"].announces_md5 = True
    kaggle.faults["blob"].extend([Fault(corrupt=True), Fault(corrupt=True)])
    with pytest.raises(DatasetError) as caught:
        fetch()
    message = str(caught.value)
    assert message.startswith(f"some: some.zip arrived damaged twice, md5 expected {MD5}, got ")
    assert message.endswith(": look at the network, then prepare again")
    assert list(fetch.target.parent.glob("some*")) == []


def test_rules_that_are_not_accepted_are_named_with_the_link(
    fetch: Fetch, kaggle: KaggleServer
) -> None:
    kaggle.not_accepted.add("some")
    with pytest.raises(RulesNotAccepted) as caught:
        fetch()
    assert str(caught.value) == (
        "some: Kaggle refuses access (You must accept this competition's rules): "
        "accept the rules at https://www.kaggle.com/c/some/rules"
    )


def test_a_competition_that_is_not_there_is_named(fetch: Fetch, kaggle: KaggleServer) -> None:
    kaggle.blobs.clear()
    with pytest.raises(ConfigError) as caught:
        fetch()
    assert str(caught.value) == ("some: Kaggle knows no such competition (Competition not found)")


def test_another_refusal_is_passed_on(fetch: Fetch, kaggle: KaggleServer) -> None:
    kaggle.faults["DownloadDataFiles"].append(Fault(418, message="I am a teapot."))
    with pytest.raises(DatasetError) as caught:
        fetch()
    assert str(caught.value) == "some: Kaggle answers 418: I am a teapot"


def test_a_download_that_the_disk_cannot_hold_is_not_begun(
    fetch: Fetch, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type("Usage", (), {"free": 299_999})()
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(DatasetError) as caught:
        fetch()
    assert str(caught.value) == (
        f"some: 300kB are to be downloaded to {fetch.target.parent}, "
        "where 300kB are free: free some space"
    )
    assert not fetch.target.with_name("some.zip.part").exists()


def test_an_unknown_environment_of_the_client_is_named(
    fetch: Fetch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAGGLE_API_ENVIRONMENT", "MOON")
    with pytest.raises(ConfigError) as caught:
        fetch()
    assert str(caught.value) == ('Unrecognized value in KAGGLE_API_ENVIRONMENT: "MOON": unset it')
