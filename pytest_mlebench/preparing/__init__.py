"""Preparing data: what a competition's ``prepare.py`` is made of."""

from __future__ import annotations

from pytest_mlebench.archives.archive import (
    extract,
    list_tar,
    read_member,
    repack_tar,
    write_7z,
    write_zip,
    write_zip_of,
)
from pytest_mlebench.archives.seven_zip_reader import read_start_of_7z
from pytest_mlebench.archives.unzip import read_blocks
from pytest_mlebench.preparing.csv_rows import open_rows
from pytest_mlebench.preparing.files import (
    link,
    link_all,
    link_named,
    link_renamed,
    link_tree,
    list_files,
    list_names,
    require,
)
from pytest_mlebench.preparing.floats import read_csv_inexact
from pytest_mlebench.preparing.public_file import fetch
from pytest_mlebench.preparing.record_file import open_records
from pytest_mlebench.preparing.split import (
    split_by,
    split_group_indices,
    split_groups,
    split_indices,
    split_indices_by,
    split_list,
    split_rows,
)
from pytest_mlebench.preparing.tables import (
    one_hot,
    read_csv,
    read_json,
    read_parquet,
    read_records,
    reading,
    write_csv,
    write_json,
    write_parquet,
)
from pytest_mlebench.preparing.tfrecord import read_texts
from pytest_mlebench.preparing.unpack import unpacked, zip_members

__all__ = [
    "extract",
    "fetch",
    "link",
    "link_all",
    "link_named",
    "link_renamed",
    "link_tree",
    "list_files",
    "list_names",
    "list_tar",
    "one_hot",
    "open_records",
    "open_rows",
    "read_blocks",
    "read_csv",
    "read_csv_inexact",
    "read_json",
    "read_member",
    "read_parquet",
    "read_records",
    "read_start_of_7z",
    "read_texts",
    "reading",
    "repack_tar",
    "require",
    "split_by",
    "split_group_indices",
    "split_groups",
    "split_indices",
    "split_indices_by",
    "split_list",
    "split_rows",
    "unpacked",
    "write_7z",
    "write_csv",
    "write_json",
    "write_parquet",
    "write_zip",
    "write_zip_of",
    "zip_members",
]
