"""Recordings with labels (fold 0) are split at random and renumbered in every file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing import (
    link,
    link_named,
    read_csv,
    reading,
    require,
    unpacked,
    write_csv,
)

SPECIES = 19
ESSENTIAL, SUPPLEMENTAL = "essential_data", "supplemental_data"
LABELS = "rec_labels_test_hidden.txt"
# the original benchmark gives this heading to all three tables, right for the first one only
HEADING = "rec_id,[histogram of segment features]"
TABLES = ("histogram_of_segments.txt", "segment_features.txt", "segment_rectangles.txt")
PICTURES = ("filtered_spectrograms", "spectrograms", "supervised_segmentation")
OVERVIEWS = ("segment_clusters.bmp", "segment_mosaic.bmp")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a fifth of the recordings."""
    with unpacked(raw / "mlsp_contest_dataset.zip", near=public) as folder:
        data = folder / "mlsp_contest_dataset"
        folds = _folds(data / ESSENTIAL / "CVfolds_2.txt")
        new = {str(old): number for number, old in enumerate(folds["rec_id"])}
        folds["rec_id"] = range(len(folds))
        test = folds.loc[folds["fold"] == 1, "rec_id"]
        write_csv(folds, public / ESSENTIAL / "CVfolds_2.txt")
        names = _names(data / ESSENTIAL / "rec_id2filename.txt", new)
        write_csv(names, public / ESSENTIAL / "rec_id2filename.txt")
        labels = _read_lines(data / ESSENTIAL / LABELS, new)
        if not test.isin(labels.index).all():
            raise PreparationError(f"{data / ESSENTIAL / LABELS} lacks recordings of fold 0")
        hidden = labels.where(~labels.index.isin(test), "?")
        _write_lines(hidden, public / ESSENTIAL / LABELS, "rec_id,[labels]")
        for table in TABLES:
            lines = _read_lines(data / SUPPLEMENTAL / table, new)
            _write_lines(lines, public / SUPPLEMENTAL / table, HEADING)
        _link_files(data, public, list(names["filename"]))
        truth = _presence(labels[labels.index.isin(test)], data / ESSENTIAL / LABELS)
    write_csv(truth, private / "answers.csv")
    sample = truth.sort_values("Id").assign(Probability=0)
    write_csv(sample, public / "sample_submission.csv")


def _folds(path: Path) -> pd.DataFrame:
    """Return the recordings with labels; those drawn for the test are in fold 1."""
    folds = read_csv(path, needs=["rec_id", "fold"])
    folds = folds[folds["fold"] == 0].reset_index(drop=True)
    if folds.empty:
        raise PreparationError(f"{path} has no recordings in fold 0")
    folds.loc[folds.sample(frac=0.2, random_state=0).index, "fold"] = 1
    return folds


def _names(path: Path, new: Mapping[str, int]) -> pd.DataFrame:
    names = read_csv(path, needs=["rec_id", "filename"])
    names = names[names["rec_id"].astype(str).isin(new)]
    return names.assign(rec_id=names["rec_id"].astype(str).map(new))


def _read_lines(path: Path, new: Mapping[str, int]) -> pd.Series[str]:
    """Return what follows the id in each line of a table, by new id; the heading is dropped."""
    require(path)
    with reading(path):
        lines = path.read_text(encoding="utf-8").split("\n")[1:]
    parts = [line.partition(",") for line in lines]
    kept = [(new[id.strip()], rest) for id, _, rest in parts if id.strip() in new]
    return pd.Series([rest for _, rest in kept], index=[id for id, _ in kept], dtype=object)


def _write_lines(lines: pd.Series[str], path: Path, heading: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = [heading, *(f"{id},{rest}" if rest else f"{id}" for id, rest in lines.items())]
    path.write_text("\n".join(text) + "\n", encoding="utf-8")


def _presence(labels: pd.Series[str], path: Path) -> pd.DataFrame:
    """Return a row for each recording and species: 1 if it is heard, else 0."""
    present = np.zeros((len(labels), SPECIES), dtype=int)
    for row, text in enumerate(labels):
        for word in filter(None, text.split(",")):
            if not (word.strip().isdecimal() and int(word) < SPECIES):
                raise PreparationError(f"{path} has {word!r}, expected a species below {SPECIES}")
            present[row, int(word)] = 1
    ids = labels.index.to_numpy()[:, None] * 100 + np.arange(SPECIES)
    return pd.DataFrame({"Id": ids.ravel(), "Probability": present.ravel()})


def _link_files(data: Path, public: Path, names: list[str]) -> None:
    link(data / ESSENTIAL / "species_list.txt", public / ESSENTIAL / "species_list.txt")
    wavs = Path(ESSENTIAL, "src_wavs")
    link_named(names, data / wavs, public / wavs, ".wav")
    for kind in PICTURES:
        link_named(names, data / SUPPLEMENTAL / kind, public / SUPPLEMENTAL / kind, ".bmp")
    examples = Path(SUPPLEMENTAL, "segmentation_examples")
    (public / examples).mkdir()
    shown = [name for name in names if (data / examples / f"{name}.bmp").is_file()]
    link_named(shown, data / examples, public / examples, ".bmp")
    link_named(OVERVIEWS, data / SUPPLEMENTAL, public / SUPPLEMENTAL)
