"""Seismic images with salt masks are split at random; depths are given for training only."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing import link_all, read_csv, split_rows, unpacked, write_csv


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a quarter of the images."""
    depths = read_csv(raw / "depths.csv", needs=["id", "z"])
    with unpacked(raw / "competition_data.zip", near=public) as folder:
        data = folder / "competition_data"
        masks = read_csv(data / "train.csv", needs=["id", "rle_mask"]).fillna("")
        train, test = (part.sort_values("id") for part in split_rows(masks, 0.25))
        for part, name, kinds in (
            (train, "train", ("images", "masks")),
            (test, "test", ("images",)),
        ):
            link_all(
                (data / "train" / kind / f"{image}.png", public / name / kind / f"{image}.png")
                for kind in kinds
                for image in part["id"]
            )
    write_csv(train, public / "train.csv")
    write_csv(depths[depths["id"].isin(train["id"])].sort_values("id"), public / "depths.csv")
    write_csv(test.assign(rle_mask="1 1"), public / "sample_submission.csv")
    write_csv(test, private / "test.csv")
