"""Messages to a support desk, written by a small grammar, split at random."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from pytest_mlebench.preparing import read_csv, split_rows, write_csv

MESSAGES = 2000
OFF_TOPIC = 0.35  # share of phrases that any team might get
MISTYPED = 0.08  # share of words with two letters exchanged
MISROUTED = 0.06  # share of messages that went to a random team

TEAMS = {
    "billing": [
        "invoice charged twice",
        "refund has not arrived",
        "card was declined",
        "price on the receipt",
        "cancel my subscription",
        "discount code is refused",
        "tax number is wrong",
        "payment failed again",
    ],
    "delivery": [
        "parcel never came",
        "courier left it outside",
        "tracking says delivered",
        "box was crushed",
        "wrong address on the label",
        "arrived a week late",
        "half of the order missing",
        "return label please",
    ],
    "account": [
        "cannot log in",
        "reset the password",
        "two factor code",
        "change my e-mail address",
        "profile was deleted",
        "locked out since monday",
        "merge both accounts",
        "username is taken",
    ],
    "product": [
        "screen stays black",
        "battery drains overnight",
        "manual is unclear",
        "update broke it",
        "makes a strange noise",
        "button does not react",
        "overheats after an hour",
        "lost the wireless signal",
    ],
}
COMMON = [
    "please help me",
    "I have been waiting for days",
    "this is the third time",
    "thank you in advance",
    "nobody answers the phone",
    "your order page is slow",
    "I am quite unhappy",
    "what should I do now",
    "kind regards",
    "it worked before",
    "I have attached a picture",
    "is there any news",
]


def generate(raw: Path) -> None:
    """Write the messages."""
    random = np.random.RandomState(23)
    names = list(TEAMS)
    teams = [names[k] for k in random.randint(len(names), size=MESSAGES)]
    texts = [_message(random, TEAMS[team]) for team in teams]
    lost = random.uniform(size=MESSAGES) < MISROUTED
    routed = [
        names[random.randint(len(names))] if astray else team
        for team, astray in zip(teams, lost, strict=True)
    ]
    table = pd.DataFrame({"id": range(MESSAGES), "message": texts, "team": routed})
    write_csv(table, raw / "messages.csv")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out two fifths of the messages."""
    train, test = split_rows(read_csv(raw / "messages.csv", needs=["id", "message", "team"]), 0.4)
    write_csv(train, public / "train.csv")
    write_csv(test.drop(columns="team"), public / "test.csv")
    write_csv(test[["id", "team"]], private / "answers.csv")
    write_csv(test[["id"]].assign(team="billing"), public / "sample_submission.csv")


def _message(random: np.random.RandomState, phrases: list[str]) -> str:
    """Return three to five phrases, most of them fragments, some of them about nothing."""
    parts = []
    for _ in range(random.randint(3, 6)):
        pool = COMMON if random.uniform() < OFF_TOPIC else phrases
        words = pool[random.randint(len(pool))].split()
        kept = [word for word in words if random.uniform() > 0.45] or words[:1]
        parts.append(" ".join(_typed(random, word) for word in kept))
    return ", ".join(parts)


def _typed(random: np.random.RandomState, word: str) -> str:
    if len(word) < 4 or random.uniform() >= MISTYPED:
        return word
    k = random.randint(1, len(word) - 2)
    return word[:k] + word[k + 1] + word[k] + word[k + 2 :]
