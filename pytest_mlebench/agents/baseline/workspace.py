"""What an agent is given and where it leaves things: the environment of its contract."""

from __future__ import annotations

import os
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

_SHARE = 0.7  # of the time limit: a fit that has begun cannot be stopped


@dataclass(frozen=True)
class Workspace:
    """The folders, the seed and the time of one attempt."""

    data: Path
    submission: Path
    log_file: Path
    seed: int
    deadline: float  # on the monotonic clock
    validate_url: str | None

    @classmethod
    def from_environment(cls) -> Workspace:
        """Read the contract's variables; those of another benchmark may lack ours."""
        limit = float(os.environ.get("MLE_TIME_LIMIT_SECS", "86400"))
        return cls(
            data=Path(os.environ.get("DATA_DIR", "/home/data")),
            submission=Path(os.environ["SUBMISSION_DIR"]) / "submission.csv",
            log_file=Path(os.environ["LOGS_DIR"]) / "baseline.log",
            seed=int(os.environ.get("MLE_SEED", "0")),
            deadline=time.monotonic() + _SHARE * limit,
            validate_url=os.environ.get("MLE_VALIDATE_URL"),
        )

    @property
    def seconds_left(self) -> float:
        """Return how long the search may still go on."""
        return self.deadline - time.monotonic()

    def log(self, line: str) -> None:
        """Say a line to whoever watches, and keep it."""
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
        with self.log_file.open("a", encoding="utf-8") as log:
            log.write(f"{line}\n")

    def is_accepted(self) -> bool:
        """Ask the format check about the submission; no answer is no objection."""
        if not self.validate_url:
            return True
        try:
            status, answer = _upload(self.validate_url, self.submission)
        except OSError as problem:
            self.log(f"format check: no answer ({problem})")
            return True
        self.log(f"format check: {' '.join(answer.split())}")
        return status < 400 and "invalid" not in answer.lower()


def _upload(url: str, file: Path) -> tuple[int, str]:
    """Send *file* as a form does; return the status and the text of the answer."""
    mark = "mlebench-baseline-boundary"
    head = (
        f'--{mark}\r\nContent-Disposition: form-data; name="file"; filename="{file.name}"\r\n\r\n'
    )
    body = head.encode() + file.read_bytes() + f"\r\n--{mark}--\r\n".encode()
    headers = {"Content-Type": f"multipart/form-data; boundary={mark}"}
    request = urllib.request.Request(url, data=body, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, response.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")
