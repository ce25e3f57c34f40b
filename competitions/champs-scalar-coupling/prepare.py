"""Molecules are split at random, all pairs of one together; side tables are for training only."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing import link_named, read_csv, split_groups, write_csv

TARGET = "scalar_coupling_constant"
COLUMNS = ["id", "molecule_name", "atom_index_0", "atom_index_1", "type", TARGET]
SIDE_TABLES = (
    "structures.csv",
    "dipole_moments.csv",
    "magnetic_shielding_tensors.csv",
    "mulliken_charges.csv",
    "potential_energy.csv",
    "scalar_coupling_contributions.csv",
)


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the molecules."""
    pairs = read_csv(raw / "train.csv", needs=COLUMNS)
    train, test = split_groups(pairs, "molecule_name", 0.1)
    write_csv(train, public / "train.csv")
    write_csv(test.drop(columns=TARGET), public / "test.csv")
    write_csv(test[["id"]].assign(**{TARGET: 0}), public / "sample_submission.csv")
    write_csv(test, private / "answers.csv")
    molecules = train["molecule_name"].unique()
    for name in SIDE_TABLES:
        table = read_csv(raw / name, needs=["molecule_name"])
        write_csv(table[table["molecule_name"].isin(molecules)], public / name)
    link_named(molecules, raw / "structures", public / "structures", ".xyz")
