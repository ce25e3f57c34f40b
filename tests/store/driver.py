"""Processes that prepare, and are killed or many: run by the tests as a program of its own.

It imports everything once and forks, so that a process more costs next to nothing.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kagglesdk.kaggle_client  # noqa: F401 - late in the package, here once for all children

from pytest_mlebench.competition import read_competition
from pytest_mlebench.kaggle import client
from pytest_mlebench.store.store import Store

MUTATIONS = {"os.rename", "os.mkdir", "os.link", "os.remove", "os.rmdir", "os.truncate"}


def ensure(folders: list[str], root: str, say: Callable[[str], None]) -> None:
    """Prepare competitions in a store."""
    for folder in folders:
        Store(Path(root)).ensure(read_competition(Path(folder)), progress=say)


def fork(task: Callable[[], None]) -> int:
    """Run a task in a child process and return its id."""
    child = os.fork()
    if child:
        return child
    try:
        task()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def wait(child: int) -> int:
    """Return how a child ended; negative: by a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kill_at(number: int, log: int) -> None:
    """Kill this process with -9 before its *number*-th change to the file system."""
    count = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count
        if event == "open":
            changes = isinstance(arguments[2], int) and bool(arguments[2] & os.O_ACCMODE)
        else:
            changes = event in MUTATIONS
        if not changes:
            return
        count += 1
        if count == number:
            os.write(log, f"{event} {arguments[0]}\n".encode())
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)

    sys.addaudithook(hook)


def kill_everywhere(folder: str, root: str, step: int) -> None:
    """Prepare, killed at the first change, then the second and so on; tell where and what is left.

    After each kill the old dataset, if there was one, or the new one must be whole; then the
    preparation is run again, undisturbed.
    """
    number = 1
    while True:
        store = f"{root}-{number}"
        if Path(root).exists():
            os.system(f"cp -a {root} {store}")
        read, write = os.pipe()

        def killed(number: int = number, write: int = write, store: str = store) -> None:
            kill_at(number, write)
            ensure([folder], store, lambda _: None)

        status = wait(fork(killed))
        os.close(write)
        with os.fdopen(read) as pipe:
            where = pipe.read().strip()
        whole = (Path(store) / Path(folder).name / "prepared" / "private" / "test.csv").is_file()
        again = wait(fork(lambda store=store: ensure([folder], store, lambda _: None)))  # type: ignore[misc]
        facts = {"status": status, "where": where, "whole": whole, "again": again, "store": store}
        sys.stdout.write(json.dumps(facts) + "\n")
        sys.stdout.flush()
        if status != -signal.SIGKILL:
            return
        number += step


def together(count: int, folders: list[str], root: str) -> None:
    """Prepare in many processes at the same moment; tell what each said and how it ended."""
    start = time.time() + 0.5
    children = []
    for number in range(count):
        log = Path(f"{root}.log-{number}")

        def task(log: Path = log, number: int = number) -> None:
            time.sleep(max(0, start - time.time()))
            with log.open("a") as file:
                turned = folders[number % len(folders) :] + folders[: number % len(folders)]
                ensure(turned, root, lambda text: (file.write(text + "\n"), file.flush())[0])

        children.append((fork(task), log))
    for child, log in children:
        facts = {"status": wait(child), "said": log.read_text().splitlines()}
        sys.stdout.write(json.dumps(facts) + "\n")


def alone(folder: str, root: str, apart: bool) -> None:
    """Prepare in this process, whose number is told first."""
    sys.stdout.write(json.dumps({"pid": os.getpid()}) + "\n")
    sys.stdout.flush()
    Store(Path(root)).ensure(read_competition(Path(folder)), apart=apart)


TASKS: dict[str, Callable[..., None]] = {
    "kill": kill_everywhere,
    "together": together,
    "alone": alone,
}


def main() -> None:
    """Do one task after the other, as the lines of the standard input say."""
    client.FIRST_WAIT_SECONDS = 0.05
    for line in sys.stdin:
        environment, name, *arguments = json.loads(line)

        def task(
            environment: dict[str, str] = environment,
            name: str = name,
            arguments: list[Any] = arguments,
        ) -> None:
            os.environ.update(environment)
            TASKS[name](*arguments)
            sys.stdout.flush()

        sys.stdout.flush()
        end = {"end": wait(fork(task))}
        sys.stdout.write(json.dumps(end) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
