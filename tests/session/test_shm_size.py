"""`--mle-shm-size`: how much fits into an attempt's `/dev/shm`."""

from __future__ import annotations

from plugin_session import Session

SHARING = """
try:
    with open("/dev/shm/much", "wb") as file:
        for megabyte in range(64):
            file.write(bytes(10**6))
            file.flush()
except OSError as error:
    print("full after", megabyte, "MB:", error.strerror)
"""


def test_shared_memory_is_as_large_as_asked_for(session: Session) -> None:
    agent = f"--mle-agent={session.agent('sharing', SHARING)}"
    result = session.run(
        agent, "--mle-competition=demo-digits", "--mle-shm-size=8MB", "--mle-run=mine"
    )
    result.assert_outcomes(failed=1)  # it hands nothing in
    result.stdout.fnmatch_lines(["*full after * MB: No space left on device"])
    (record,) = session.records("mine").values()
    assert record["identity"]["limits.shm_size"] == "8MB"
