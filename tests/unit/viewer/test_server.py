"""The viewer: what it shows, and everything it must not."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from attempt_folders import write_attempt, write_run
from command_line import complaint
from viewers import RunningViewer, serving

from pytest_mlebench.gateway.transcripts import Transcript, TranscriptLog
from pytest_mlebench.grade import Grade, Snapshot
from pytest_mlebench.layout import RunFolder
from pytest_mlebench.medals import Medal
from pytest_mlebench.sandbox import Ending

DIGITS = "demo-digits"
SECRET = "the answers"
HOSTILE = "<script>document.title='owned'</script>"


def gold(competition: str) -> Grade:
    return Grade(
        competition, 0.97, Medal.GOLD, True, 99.0, True, None, 0.9, 0.8, 0.7, 0.5, False, 240
    )


def over(folder: RunFolder, seed: int) -> None:
    ending = Ending("exited", 0, 60.0)
    kept = tuple(Snapshot(second, "a" * 64, 9) for second in (10.0, 20.0))
    run = write_attempt(
        folder, DIGITS, seed, "graded", grade=gold(DIGITS), ending=ending, snapshots=kept
    )
    (run.folder / "snapshots").mkdir()
    (run.folder / "run.log").write_text(f"done\n{HOSTILE}\n")
    (run.folder / "submission.csv").write_text("id,y\n")
    (run.folder / "artefacts").mkdir()
    (run.folder / "artefacts" / "page.html").write_text(HOSTILE)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs that are over and one that goes on, and traps all around."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.txt").write_text(SECRET)
    root = outside / "runs"
    for name in ("first", "second"):
        folder = write_run(root / name, (DIGITS, 0))
        over(folder, 0)
    folder = write_run(root / "going", (DIGITS, 0), (DIGITS, 1))
    over(folder, 0)
    run = write_attempt(folder, DIGITS, 1, "running", ending=None)
    (run.folder / "run.log").write_text(f"epoch 1\n{HOSTILE}\n")
    attempt = root / "first" / DIGITS / "seed0" / "attempt1"
    (attempt / "link.txt").symlink_to(outside / "secret.txt")
    (attempt / "way").symlink_to(outside)
    (root / "linked").symlink_to(root / "first")
    (root / "first" / ".hidden").write_text(SECRET)
    os.mkfifo(attempt / "fifo")
    log = TranscriptLog(attempt)
    for number in range(201):
        messages = [{"role": "user", "content": f"turn {n} {HOSTILE}"} for n in range(number + 1)]
        answer = {"choices": [{"message": {"content": f"answer {number}"}}]}
        texts = (json.dumps({"messages": messages}), json.dumps(answer))
        log.write(Transcript(9.0, "up", "gpt-5", "POST", "/chat", 200, *texts, 1, 1))
    with (attempt / "big.log").open("wb") as file:
        file.truncate(5 * 10**9)  # a hole: five gigabytes that take no room
        file.seek(0, os.SEEK_END)
        file.write(b"the last line\n")
    return root


@pytest.fixture(scope="module")
def viewer(runs: Path) -> Iterator[RunningViewer]:
    """A viewer of that folder."""
    with serving(runs) as viewer:
        yield viewer


def test_all_runs_are_listed_with_progress_and_rates(viewer: RunningViewer) -> None:
    answer = viewer.get("/")
    assert answer.status == 200
    for text in ("first", "second", "going", 'data-events="/events"'):
        assert text in answer.text
    assert "linked" not in answer.text
    # what took too long to read for the page comes with the events
    events = (json.loads(event)["cards"] for event in viewer.events("/events"))
    cards = next(cards for cards in events if all(card["rates"] for card in cards))
    found = {card["name"]: card for card in cards}
    assert found["going"]["progress"].startswith("1 running, 1 of 2 over, 1 gold")
    assert found["first"]["rates"] == [["demo", "100.00"]]
    assert {card["agent"] for card in cards} == {"mine"}


def test_every_attempt_is_listed_with_links_to_what_it_left(viewer: RunningViewer) -> None:
    page = viewer.get("/run/going/").text
    for seed, state in ((0, "graded"), (1, "running")):
        assert f'href="./{DIGITS}/seed{seed}/attempt1/run.log"' in page
        assert f">{state}</td>" in page
    kept = viewer.get("/run/first/").text
    assert f'<a href="./{DIGITS}/seed0/attempt1/snapshots/">2 snapshots</a>' in kept
    assert viewer.get(f"{ATTEMPT}/snapshots/").status == 200


@pytest.mark.parametrize("page", ["1", "0", "7", "x", "-1", "9" * 30])
def test_a_page_that_there_is_not_is_the_nearest_one(viewer: RunningViewer, page: str) -> None:
    assert "seed0" in viewer.get(f"/run/first/?page={page}").text


def test_a_port_can_be_chosen(tmp_path: Path) -> None:
    with socket.socket() as free:  # nobody else gets it until it is closed
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with serving(tmp_path, f"--port={port}") as viewer:
        assert viewer.port == port
        assert viewer.get("/").status == 200


def test_a_run_has_its_report_and_the_report_its_files(viewer: RunningViewer) -> None:
    report = viewer.get("/run/first/report.html")
    assert report.status == 200
    assert f'href="./{DIGITS}/seed0/attempt1/run.log"' in report.text
    log = viewer.get(f"/run/first/{DIGITS}/seed0/attempt1/run.log")
    assert log.text.startswith("done\n")
    assert log.headers["Content-Type"].startswith("text/plain")


def test_folders_are_listed_without_links(viewer: RunningViewer) -> None:
    listing = viewer.get(f"/run/first/{DIGITS}/seed0/attempt1/")
    assert "run.log" in listing.text
    assert "link.txt" not in listing.text
    moved = viewer.get(f"/run/first/{DIGITS}/seed0/attempt1")
    assert (moved.status, moved.headers["Location"]) == (302, "attempt1/")


def test_a_file_of_an_agent_is_never_a_page(viewer: RunningViewer) -> None:
    answer = viewer.get(f"/run/first/{DIGITS}/seed0/attempt1/artefacts/page.html")
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in answer.headers["Content-Security-Policy"]


ATTEMPT = f"/run/first/{DIGITS}/seed0/attempt1"


@pytest.mark.parametrize(
    "path",
    [
        "/run/first/../../secret.txt",
        "/run/first/%2e%2e/%2e%2e/secret.txt",
        "/run/first/..%2f..%2fsecret.txt",
        "/run/../secret.txt",
        "/run/%2e%2e/",
        "/run/first/%00",
        "/run/first//etc/passwd",
        "/run/first/.hidden",
        f"{ATTEMPT}/link.txt",
        f"{ATTEMPT}/way/secret.txt",
        f"{ATTEMPT}/fifo",
        "/run/linked/report.html",
        "/run/linked/run.json",
        "/run/absent/",
        "/run/absent/events",
        "/secret.txt",
    ],
)
def test_no_path_leads_out_of_the_folder(viewer: RunningViewer, path: str) -> None:
    answer = viewer.get(path)
    assert answer.status == 404
    assert SECRET not in answer.text


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1:1"])
def test_a_foreign_host_is_refused(viewer: RunningViewer, host: str) -> None:
    answer = viewer.get("/", host=host)
    assert answer.status == 421
    assert "first" not in answer.text
    assert viewer.get("/", host=f"localhost:{viewer.port}").status == 200


@pytest.mark.parametrize("path", ["/", "/run/first/", "/run/first/report.html", "/nothing"])
def test_every_answer_has_a_strict_policy(viewer: RunningViewer, path: str) -> None:
    headers = viewer.get(path).headers
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_there_is_nothing_to_write_to(viewer: RunningViewer, method: str) -> None:
    assert viewer.get("/run/first/run.json", method=method).status == 405


def test_of_a_huge_log_the_end_is_shown(viewer: RunningViewer) -> None:
    answer = viewer.get(f"{ATTEMPT}/big.log")
    assert answer.text.endswith("the last line\n")
    assert len(answer.text) <= 2**20
    assert answer.headers["X-Shown"] == f"{2**20} of {5 * 10**9 + 14} bytes"


def test_runs_are_compared_two_or_over_a_budget(viewer: RunningViewer) -> None:
    two = viewer.get("/compare?run=first&run=second")
    assert "Rates in percent on the 1 competitions that both have" in two.text
    assert "95 % interval of the change in any medal" in two.text
    assert "<pre" not in two.text
    three = viewer.get("/compare?run=first&run=second&run=going&by=seeds")
    assert "Holm" in three.text
    assert "<svg" in three.text
    unclear = viewer.get("/compare?run=first&run=second&run=going")
    assert unclear.status == 400
    assert "more than two runs are compared over a budget: choose time-limit, " in unclear.text
    for path in ("/compare", "/compare?run=first", "/compare?run=first&run=second&by=x"):
        assert viewer.get(path).status == 400
    assert viewer.get("/compare?run=first&run=../secret").status == 404


def test_a_run_that_changes_is_followed(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "runs" / "live", (DIGITS, 0))
    run = write_attempt(folder, DIGITS, 0, "running", ending=None)
    (run.folder / "run.log").write_text("epoch 1\n")
    with serving(tmp_path / "runs") as viewer:
        events = viewer.events("/run/live/events")
        first = json.loads(next(events))
        assert [one["log"] for one in first["running"]] == [["epoch 1"]]
        assert first["over"] is False
        run.enter("graded", grade=gold(DIGITS), ending=Ending("exited", 0, 60.0))
        last = [json.loads(event) for event in events][-1]  # the stream ends with the run
        assert (last["over"], last["running"]) == (True, [])
        assert last["status"] == "1 of 1 over, 1 gold"


def test_a_run_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    write_run(runs / "good", (DIGITS, 0))
    write_run(runs / "bad", (DIGITS, 0)).plan.write_text("{")
    with serving(runs) as viewer:
        text = viewer.get("/").text
        assert "good" in text
        assert "cannot be read" in text
        assert viewer.get("/run/bad/").status == 400


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert complaint("view", tmp_path / "none").endswith("give the one of --mle-runs-dir")
    assert "--port must be from 0 to 65535" in complaint("view", tmp_path, "--port=70000")


def test_transcripts_are_shown_decoded_and_escaped(viewer: RunningViewer) -> None:
    place = f"/run/first/{DIGITS}/seed0/attempt1/transcripts.jsonl.gz"
    report = viewer.get("/run/first/report.html").text
    assert f'href="./{DIGITS}/seed0/attempt1/transcripts.jsonl.gz"' in report
    answer = viewer.get(place)
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert "1. 1970-01-01 00:00:09 UTC, gpt-5, status 200" in answer.text
    assert answer.text.count("turn 0 ") == 1  # though every call has sent it again
    assert "answer 199" in answer.text
    assert "answer 200" not in answer.text
    assert HOSTILE not in answer.text
    assert "&lt;script&gt;" in answer.text
    assert 'href="?from=201"' in answer.text
    last = viewer.get(f"{place}?from=201").text
    assert "answer 200" in last
    assert "answer 199" not in last
    assert viewer.get(f"{place}?from=x").text == answer.text
