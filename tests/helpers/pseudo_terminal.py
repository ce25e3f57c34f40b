"""A session on a real pseudo-terminal, and the screen that a person would see."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pexpect
import pyte

WAITING = """
    import os, pathlib, shutil, time
    print("training \\x1b[31mfold 3\\x1b[0m", flush=True)
    while not pathlib.Path(os.environ["CODE_DIR"], "go").exists():
        time.sleep(0.05)
    shutil.copy(os.environ["DATA_DIR"] + "/sample_submission.csv",
                os.environ["SUBMISSION_DIR"] + "/submission.csv")
"""


class Terminal:
    """pytest behind a pseudo-terminal of some size."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        columns: int = 80,
        lines: int = 40,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.screen = pyte.HistoryScreen(columns, lines, history=2000)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        usual = {name: text for name, text in os.environ.items() if name not in {"CI", "COLUMNS"}}
        self.child = pexpect.spawn(
            sys.executable,
            ["-m", "pytest", "-p", "no:cacheprovider", *arguments],
            cwd=str(folder),
            env={**usual, "TERM": "xterm-256color", **(env or {})},
            dimensions=(lines, columns),
            timeout=1,
        )

    @property
    def text(self) -> str:
        """Return what is on the screen."""
        return "\n".join(line.rstrip() for line in self.screen.display)

    @property
    def everything(self) -> str:
        """Return what is on the screen and what has scrolled away."""
        gone = (
            "".join(line[column].data for column in range(self.screen.columns)).rstrip()
            for line in self.screen.history.top
        )
        return "\n".join((*gone, self.text))

    def read(self) -> bool:
        """Take in what the session has written; tell whether it goes on."""
        try:
            piece = self.child.read_nonblocking(65536, timeout=0.2)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        self.raw += piece
        self.stream.feed(piece)
        return True

    def until(self, seen: Callable[[], bool], seconds: float = 240) -> None:
        """Read until something is to be seen."""
        end = time.monotonic() + seconds
        while not seen():
            assert self.read(), f"the session has ended:\n{self.everything}"
            assert time.monotonic() < end, f"not seen:\n{self.everything}"

    def finish(self, seconds: float = 240) -> int:
        """Read to the end and return the exit status."""
        end = time.monotonic() + seconds
        while self.read():
            assert time.monotonic() < end, f"no end:\n{self.everything}"
        self.child.close()
        return int(self.child.exitstatus)

    def release(self, competition: str, seed: int = 0) -> None:
        """Let the waiting agent of an attempt go on."""
        attempt = f"mle-runs/*/{competition}/seed{seed}/attempt1"
        self.until(lambda: any(self.folder.glob(f"{attempt}/home/code")))
        (code,) = self.folder.glob(f"{attempt}/home/code")
        (code / "go").touch()

    def resize(self, columns: int, lines: int) -> None:
        """Change the size of the terminal."""
        self.screen.resize(lines, columns)
        self.child.setwinsize(lines, columns)
