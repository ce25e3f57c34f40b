"""An agent may ask over HTTP whether its submission has the right form."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pytest_mlebench.errors import InvalidSubmission, SandboxError
from pytest_mlebench.sandbox.validator import Validator, validate_script

GOOD = "id,label\n1,2\n"
VALID = {"result": "Submission is valid."}
INVALID = {"result": "Submission invalid! no label in submission.csv"}


def check(path: Path) -> None:
    if b"label" not in path.read_bytes():
        raise InvalidSubmission(f"no label in {path}")


class Served:
    """A validator that listens, and a client for it."""

    def __init__(self, validator: Validator, folder: Path) -> None:
        self.validator = validator
        self.folder = folder
        self.url = validator.listen_tcp()
        self.port = int(self.url.split(":")[2].split("/")[0])
        self.good = folder / "good.csv"
        self.good.write_text(GOOD)

    def curl(self, *arguments: str, path: str = "/validate") -> tuple[int, dict[str, str]]:
        url = f"http://127.0.0.1:{self.port}{path}"
        command = ["curl", "-sS", "--noproxy", "*", "-w", "%{http_code}", *arguments, url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
        return int(done.stdout[-3:]), json.loads(done.stdout[:-3])

    def raw(self, request: bytes) -> tuple[int, dict[str, str]]:
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as connection:
            connection.sendall(request)
            response = http.client.HTTPResponse(connection)
            response.begin()
            return response.status, json.loads(response.read())

    def recorded(self) -> list[dict[str, Any]]:
        lines = (self.folder / "validations.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with Validator(check, folder=tmp_path, max_bytes=10_000) as validator:
        yield Served(validator, tmp_path)


def test_health(served: Served) -> None:
    assert served.curl(path="/health") == (200, {"status": "running"})


def test_a_form_as_curl_sends_it(served: Served) -> None:
    assert served.curl("-F", f"file=@{served.good}") == (200, VALID)


def test_a_form_with_other_fields(served: Served) -> None:
    fields = ["-F", "comment=label", "-F", f"file=@{served.good}", "-F", "file=second"]
    assert served.curl(*fields) == (200, VALID)
    assert served.recorded()[0]["bytes"] == len(GOOD)


def test_a_raw_body(served: Served) -> None:
    assert served.curl("--data-binary", f"@{served.good}") == (200, VALID)


def test_a_chunked_body(served: Served) -> None:
    chunked = ["-X", "POST", "-H", "Transfer-Encoding: chunked", "-T", str(served.good)]
    assert served.curl(*chunked) == (200, VALID)
    assert served.recorded()[0]["bytes"] == len(GOOD)


def test_an_invalid_submission_is_told_why_without_our_paths(served: Served) -> None:
    assert served.curl("--data-binary", "id\n1\n") == (200, INVALID)


def test_calls_are_counted_and_recorded(served: Served) -> None:
    served.curl("--data-binary", "id\n1\n")
    served.curl("-F", f"file=@{served.good}")
    served.curl(path="/health")
    served.curl("-F", "other=x")
    assert served.validator.calls == 2
    first, second = served.recorded()
    assert (first["bytes"], first["result"]) == (5, INVALID["result"])
    assert (second["bytes"], second["result"]) == (len(GOOD), VALID["result"])


def test_uploads_leave_nothing_behind(tmp_path: Path) -> None:
    with Validator(check, folder=tmp_path, max_bytes=10_000) as validator:
        served = Served(validator, tmp_path)
        served.curl("-F", f"file=@{served.good}")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["good.csv", "validations.jsonl"]


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (
            ["-F", "other=x"],
            400,
            "the form has no complete field 'file': send it as curl -F file=@submission.csv does",
        ),
        (["-X", "PUT"], 501, "unsupported method ('put')"),
        (["-X", "POST", "-H", "Content-Length:"], 411, "the request has no Content-Length"),
    ],
)
def test_a_bad_request_gets_a_sentence(
    served: Served, arguments: list[str], status: int, sentence: str
) -> None:
    assert served.curl(*arguments) == (status, {"error": sentence})
    assert served.validator.calls == 0


@pytest.mark.parametrize(
    ("headers", "body", "status", "sentence"),
    [
        ("Content-Length: -5", b"", 400, "the request is not understood: bad Content-Length"),
        ("Transfer-Encoding: chunked", b"zz\r\n", 400, "the chunked upload is broken"),
        ("Transfer-Encoding: chunked", b"1\r\nabc\r\n", 400, "the chunked upload is broken"),
        (
            "Content-Length: 1\r\nTransfer-Encoding: chunked",
            b"1\r\nx\r\n0\r\n\r\n",
            400,
            "the length of the body is not clear",
        ),
        (
            "Content-Length: 5\r\nContent-Type: multipart/form-data; boundary=b",
            b"hello",
            400,
            "the form cannot be read: ",
        ),
        (
            "Content-Length: 9999\r\nContent-Type: multipart/form-data; boundary=b",
            b"--b\r\nX: " + b"y" * 9990,
            400,
            "the form cannot be read: maximum header size exceeded",
        ),
        (
            "Transfer-Encoding: chunked",
            b"2711\r\n" + b"x" * 0x2711,
            413,
            "the file is larger than a submission may be: 10kB",
        ),
    ],
)
def test_a_malformed_request_gets_a_sentence(
    served: Served, headers: str, body: bytes, status: int, sentence: str
) -> None:
    answer = served.raw(f"POST /validate HTTP/1.1\r\nHost: x\r\n{headers}\r\n\r\n".encode() + body)
    assert answer[0] == status
    assert answer[1]["error"].startswith(sentence)
    assert served.validator.calls == 0


def test_nonsense_instead_of_http_gets_a_sentence(served: Served) -> None:
    request = b"GET /health HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 200 + b"\r\n"
    assert served.raw(request) == (431, {"error": "too many headers"})


def test_an_upload_that_breaks_off_is_refused(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=20) as connection:
        connection.sendall(b"POST /validate HTTP/1.0\r\nContent-Length: 50\r\n\r\nid,label\n")
        connection.shutdown(socket.SHUT_WR)
        response = http.client.HTTPResponse(connection)
        response.begin()
        assert response.status == 400
        assert b"the upload ended before its announced length" in response.read()


@pytest.mark.parametrize("form", [True, False])
def test_a_file_over_the_bound_is_refused(served: Served, form: bool) -> None:
    large = served.folder / "large.csv"
    with large.open("wb") as file:
        file.truncate(5_000_000)
    arguments = ["-F", f"file=@{large}"] if form else ["--data-binary", f"@{large}"]
    assert served.curl(*arguments) == (
        413,
        {"error": "the file is larger than a submission may be: 10kB"},
    )
    assert served.validator.calls == 0


def test_an_unknown_address_is_not_found(served: Served) -> None:
    answer = (404, {"error": "there is GET /health and POST /validate"})
    assert served.curl(path="/answers") == answer
    assert served.curl("--data-binary", "x", path="/grade") == answer


def test_a_check_that_fails_itself_blames_nobody(tmp_path: Path) -> None:
    def broken(path: Path) -> None:
        raise ZeroDivisionError("secret detail")

    with Validator(broken, folder=tmp_path, max_bytes=10_000) as validator:
        answer = Served(validator, tmp_path).curl("--data-binary", "x")
    sentence = "the format check itself failed, which says nothing about the submission"
    assert answer == (500, {"error": sentence})


def test_a_file_is_sent_only_when_it_is_wanted(served: Served) -> None:
    def ask(length: int) -> tuple[bytes, bytes]:
        head = f"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n"
        with socket.create_connection(("127.0.0.1", served.port), timeout=20) as connection:
            connection.sendall(head.encode() + b"Expect: 100-continue\r\n\r\n")
            first = connection.recv(1 << 16)
            connection.sendall(GOOD.encode())
            return first, connection.recv(1 << 16)

    first, second = ask(len(GOOD))
    assert (first, second[:15]) == (b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK")
    assert ask(10**10)[0].startswith(b"HTTP/1.1 413 ")


def test_a_check_that_is_at_work_is_waited_for_at_the_end(tmp_path: Path) -> None:
    with a_check_at_work(tmp_path) as (go, sent):
        threading.Timer(0.1, go.set).start()
    assert sent.result(timeout=20) == 200
    assert len((tmp_path / "validations.jsonl").read_text().splitlines()) == 1


def test_a_check_that_never_ends_does_not_hold_up_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_mlebench.sandbox.validator._PATIENCE_SECONDS", 0.1)
    with a_check_at_work(tmp_path) as (go, sent):
        pass
    assert isinstance(sent.exception(timeout=20), OSError)
    go.set()


@contextmanager
def a_check_at_work(folder: Path) -> Iterator[tuple[threading.Event, Future[int]]]:
    """End a validator while it checks a file; yield what lets the check end, and the answer."""
    at_work, go = threading.Event(), threading.Event()

    def slow(path: Path) -> None:
        at_work.set()
        go.wait(60)
        path.read_bytes()

    def post(port: int) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.request("POST", "/validate", GOOD)
        return connection.getresponse().status

    with ThreadPoolExecutor() as pool, Validator(slow, folder=folder, max_bytes=100) as validator:
        sent = pool.submit(post, Served(validator, folder).port)
        assert at_work.wait(20)
        yield go, sent


def test_one_check_at_a_time_and_few_in_the_queue(tmp_path: Path) -> None:
    at_work: list[int] = []
    most: list[int] = []
    go = threading.Event()

    def slow(path: Path) -> None:
        at_work.append(1)
        most.append(len(at_work))
        go.wait(10)
        at_work.pop()

    answers: list[int] = []
    with Validator(slow, folder=tmp_path, max_bytes=10_000) as validator:
        served = Served(validator, tmp_path)
        threads = [
            threading.Thread(target=lambda: answers.append(served.curl("--data-binary", "x")[0]))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        while len(answers) < 4:  # those that are turned down at once
            threading.Event().wait(0.01)
        refused = served.curl("--data-binary", "x")
        go.set()
        for thread in threads:
            thread.join()
    sentence = "4 submissions are being checked already: wait and try again"
    assert refused == (429, {"error": sentence})
    assert sorted(answers) == [200] * 4 + [429] * 4
    assert max(most) == 1


def test_the_same_over_a_unix_socket(served: Served) -> None:
    here = Path.cwd()
    os.chdir(served.folder)  # a socket's path may not be long
    try:
        served.validator.listen_unix(Path("v.sock"))
        arguments = ["--unix-socket", "v.sock", "-F", f"file=@{served.good}"]
        assert served.curl(*arguments) == (200, VALID)
    finally:
        os.chdir(here)


def test_a_unix_socket_with_a_long_path_is_refused(served: Served) -> None:
    with pytest.raises(SandboxError, match="a socket's path may have 107 bytes"):
        served.validator.listen_unix(served.folder / ("x" * 110))


class TestScript:
    """validate_submission.sh works with whatever client is there."""

    @pytest.fixture
    def script(self, served: Served) -> Path:
        path = served.folder / "validate_submission.sh"
        path.write_text(validate_script(served.url))
        path.chmod(0o755)
        return path

    def run(
        self, script: Path, *arguments: str, tools: tuple[str, ...]
    ) -> subprocess.CompletedProcess[str]:
        folder = script.parent / "tools"
        folder.mkdir()
        for tool in ("sh", *tools):
            (folder / tool).symlink_to(str(shutil.which(tool, path="/usr/bin:/bin")))
        environment = {"PATH": str(folder), "http_proxy": "http://127.0.0.1:9"}
        command = ["/bin/sh", str(script), *arguments]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=30, check=False
        )

    @pytest.mark.parametrize("tool", ["curl", "python3", "wget"])
    def test_with(self, served: Served, script: Path, tool: str) -> None:
        done = self.run(script, str(served.good), tools=(tool,))
        assert json.loads(done.stdout) == VALID, done.stderr

    def test_with_a_strange_file_name(self, served: Served, script: Path) -> None:
        strange = served.folder / 'a b;"{1}[2].csv'
        strange.write_text("id\n")
        done = self.run(script, str(strange), tools=("curl",))
        assert json.loads(done.stdout) == INVALID, done.stderr

    @pytest.mark.parametrize(
        ("arguments", "status", "sentence"),
        [
            ((), 2, "usage: "),
            (("nowhere.csv",), 2, "no such file: nowhere.csv"),
            ((__file__,), 127, "validate_submission.sh needs curl, python3 or wget"),
        ],
    )
    def test_what_is_missing_is_said(
        self, script: Path, arguments: tuple[str, ...], status: int, sentence: str
    ) -> None:
        done = self.run(script, *arguments, tools=())
        assert done.returncode == status
        assert done.stderr.startswith(sentence)
