"""What an agent is told to do, in the words of ``instructions.txt``."""

from __future__ import annotations

from pytest_mlebench._units import show_duration
from pytest_mlebench.limits import Limits

TEXT = """\
You are taking part in a machine-learning competition, on your own.

The folder {data} holds the data. Read description.md there first: it says what is to be
predicted, what each file is, how a submission is scored and what it must look like. The folder is
read-only.

Write your predictions to {submission}/submission.csv, in the form of the sample submission.
Only this file is graded, once, after you have ended or run out of time: leave a valid one there
early, and replace it when you have a better one.

You have {time} from the start. Whatever is in {submission} when the time is up is
graded.

You may check the form of a file as often as you need, but you will not learn its score:

    {validate} {submission}/submission.csv

Keep your code in {code} and whatever you want to be read later in {logs}.

Work from the data you are given. Do not look for the test labels, do not copy solutions of the
original competition, and do not label the test data by hand.
"""


def instructions(limits: Limits, home: str = "/home") -> str:
    """Return the instructions for an agent whose home folder is *home*."""
    return TEXT.format(
        data=f"{home}/data",
        submission=f"{home}/submission",
        code=f"{home}/code",
        logs=f"{home}/logs",
        validate=f"{home}/validate_submission.sh",
        time=show_duration(limits.time_seconds),
    )
