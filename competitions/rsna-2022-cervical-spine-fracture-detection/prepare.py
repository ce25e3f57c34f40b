"""A tenth of the studies stays for training, drawn so that boxes and segmentations are shared out.

Studies with both kinds of extra labels are drawn first, then those with segmentations, those with
boxes, and the rest.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from random import Random

from pytest_mlebench.preparing import (
    link_named,
    link_tree,
    list_files,
    read_csv,
    require,
    write_csv,
)

TRAIN_SHARE = 0.1
STUDY = "StudyInstanceUID"
TARGETS = ["patient_overall", "C1", "C2", "C3", "C4", "C5", "C6", "C7"]


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out nine tenths of the studies."""
    studies = read_csv(raw / "train.csv", needs=[STUDY, *TARGETS])
    boxes = read_csv(raw / "train_bounding_boxes.csv", needs=[STUDY])
    segmented = [path.stem for path in list_files(raw / "segmentations", "*.nii")]
    names = studies[STUDY].tolist()
    both, only_segmented, only_boxed, others = _draw(
        names, sorted(boxes[STUDY].unique()), sorted(segmented)
    )
    train_names = {*both, *only_segmented, *only_boxed, *others}
    is_train = studies[STUDY].isin(train_names)
    write_csv(studies[is_train], public / "train.csv")
    boxed = boxes[STUDY].isin({*both, *only_boxed})
    write_csv(boxes[boxed], public / "train_bounding_boxes.csv")

    answers = studies[~is_train].melt(STUDY, var_name="prediction_type", value_name="fractured")
    answers["row_id"] = answers[STUDY] + "_" + answers["prediction_type"]
    write_csv(answers, private / "answers.csv")
    write_csv(answers.drop(columns="fractured"), public / "test.csv")
    write_csv(answers[["row_id"]].assign(fractured=0.5), public / "sample_submission.csv")

    segments = [*both, *only_segmented]
    link_named(segments, raw / "segmentations", public / "segmentations", ".nii")
    for name in names:
        part = "train_images" if name in train_names else "test_images"
        link_tree(require(raw / "train_images" / name), public / part / name)


def _draw(names: list[str], boxed: list[str], segmented: list[str]) -> tuple[list[str], ...]:
    """Return the training studies: with both kinds of labels, with one, with the other, others."""
    random = Random(0)
    have_segments = set(segmented)
    both = [name for name in boxed if name in have_segments]
    drawn = random.sample(both, _share(both))
    with_segments = random.sample(_without(segmented, both), _share(segmented) - len(drawn))
    with_boxes = random.sample(_without(boxed, both), _share(boxed) - len(drawn))
    so_far = {*drawn, *with_segments, *with_boxes}
    rest = random.sample(_without(names, so_far), _share(names) - len(so_far))
    return drawn, with_segments, with_boxes, rest


def _share(names: Collection[str]) -> int:
    return round(TRAIN_SHARE * len(names))


def _without(names: list[str], others: Collection[str]) -> list[str]:
    excluded = set(others)
    return [name for name in names if name not in excluded]
