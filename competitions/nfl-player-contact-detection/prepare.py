"""Plays are split at random; every table and the videos follow their play."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing import link_named, read_csv_inexact, split_by, write_csv

TABLES = ("baseline_helmets", "player_tracking", "video_metadata")
VIEWS = ("All29", "Endzone", "Sideline")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the plays."""
    labels = read_csv_inexact(
        raw / "train_labels.csv", needs=["contact_id", "game_play", "contact"]
    )
    train, test = split_by(labels, "game_play", 0.1)
    write_csv(train, public / "train_labels.csv")
    write_csv(test, private / "test.csv")
    write_csv(test[["contact_id"]].assign(contact=0), public / "sample_submission.csv")
    plays = {"train": train["game_play"].unique(), "test": test["game_play"].unique()}
    for name in TABLES:
        table = read_csv_inexact(raw / f"train_{name}.csv", needs=["game_play"])
        for part, members in plays.items():
            write_csv(table[table["game_play"].isin(members)], public / f"{part}_{name}.csv")
    for part, members in plays.items():
        videos = [f"{play}_{view}" for play in members for view in VIEWS]
        link_named(videos, raw / "train", public / part, ".mp4")
