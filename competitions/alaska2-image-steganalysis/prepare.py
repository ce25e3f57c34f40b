"""Cover images are split at random; of a test image only one version is shown, drawn at random."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pandas as pd

from pytest_mlebench.preparing import link_all, list_files, split_list, write_csv

ALGORITHMS = ["JMiPOD", "JUNIWARD", "UERD"]
TEST_PART = 15  # one image of so many: 5000 of 75 000


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a fifteenth of the images, about half of them with a message."""
    covers = [path.name for path in list_files(raw / "Cover", "*.jpg")]
    train, test = split_list(covers, len(covers) // TEST_PART, seed=42)
    link_all(
        (raw / folder / name, public / folder / f"{number:05d}.jpg")
        for folder in ("Cover", *ALGORITHMS)
        for number, name in enumerate(train, start=1)
    )
    chosen = _choose(test)
    names = [f"{number:04d}.jpg" for number in range(1, len(chosen) + 1)]
    link_all(
        (raw / folder / name, public / "Test" / new)
        for (folder, name), new in zip(chosen, names, strict=True)
    )
    labels = [int(folder != "Cover") for folder, _ in chosen]
    answers = pd.DataFrame({"Id": names, "Label": labels})
    write_csv(answers, private / "test.csv")
    write_csv(answers.assign(Label=0), public / "sample_submission.csv")


def _choose(images: list[str]) -> list[tuple[str, str]]:
    """Return folder and name of the version to show of each image, in a new order."""
    random = Random(0)
    random.shuffle(images)
    return [
        ("Cover" if random.choice([True, False]) else random.choice(ALGORITHMS), name)
        for name in images
    ]
