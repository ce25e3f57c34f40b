"""Molecules are split at random, all pairs of one together; side tables are for training only."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pytest_mlebench.preparing import link_named, open_rows, split_group_indices, write_csv

TARGET = "scalar_coupling_constant"
MOLECULE = "molecule_name"
COLUMNS = ["id", MOLECULE, "atom_index_0", "atom_index_1", "type", TARGET]
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
    with open_rows(raw / "train.csv", needs=COLUMNS, keep=[MOLECULE]) as pairs:
        names = pairs.column(MOLECULE)
        train, held_out = split_group_indices(names, 0.1)
        pairs.write(train, public / "train.csv")
        test = pairs.table(held_out)
    write_csv(test.drop(columns=TARGET), public / "test.csv")
    write_csv(test[["id"]].assign(**{TARGET: 0}), public / "sample_submission.csv")
    write_csv(test, private / "answers.csv")
    molecules = names.iloc[train].unique()
    for name in SIDE_TABLES:
        with open_rows(raw / name, needs=[MOLECULE], keep=[MOLECULE]) as table:
            kept = table.column(MOLECULE).isin(molecules)
            table.write(np.flatnonzero(kept), public / name)
    link_named(molecules, raw / "structures", public / "structures", ".xyz")
