"""An agent for short texts that needs nothing but Python: naive Bayes over words."""

import csv
import math
import os
from collections import Counter
from pathlib import Path

DATA = Path(os.environ["DATA_DIR"])
SUBMISSION = Path(os.environ["SUBMISSION_DIR"], "submission.csv")


def read(name: str) -> list[dict[str, str]]:
    """Return the rows of a csv file."""
    with (DATA / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def words(row: dict[str, str], column: str) -> set[str]:
    """Return the words of a text."""
    return set(row[column].lower().split())


def main() -> None:
    """Count in which texts a word occurs, by class."""
    train, test, sample = read("train.csv"), read("test.csv"), read("sample_submission.csv")
    key, target = list(sample[0])
    (text,) = [name for name in test[0] if name != key][:1]
    classes = Counter(row[target] for row in train)
    seen = {label: Counter() for label in classes}
    for row in train:
        seen[row[target]].update(words(row, text))

    def likelihood(row: dict[str, str], label: str) -> float:
        return math.log(classes[label]) + sum(
            math.log((seen[label][word] + 1) / (classes[label] + 2)) for word in words(row, text)
        )

    with SUBMISSION.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([key, target])
        writer.writerows(
            [row[key], max(classes, key=lambda label: likelihood(row, label))] for row in test
        )
    print(f"read {len(train)} texts, labelled {len(test)}")


if __name__ == "__main__":
    main()
