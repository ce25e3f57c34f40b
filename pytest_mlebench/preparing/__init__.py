"""Preparing data: what a competition's ``prepare.py`` is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
    from pytest_mlebench.preparing.written_sums import new_file

_HOMES = {
    "extract": "archives.archive",
    "fetch": "preparing.public_file",
    "link": "preparing.files",
    "link_all": "preparing.files",
    "link_named": "preparing.files",
    "link_renamed": "preparing.files",
    "link_tree": "preparing.files",
    "list_files": "preparing.files",
    "list_names": "preparing.files",
    "list_tar": "archives.archive",
    "new_file": "preparing.written_sums",
    "one_hot": "preparing.tables",
    "open_records": "preparing.record_file",
    "open_rows": "preparing.csv_rows",
    "read_blocks": "archives.unzip",
    "read_csv": "preparing.tables",
    "read_csv_inexact": "preparing.floats",
    "read_json": "preparing.tables",
    "read_member": "archives.archive",
    "read_parquet": "preparing.tables",
    "read_records": "preparing.tables",
    "read_start_of_7z": "archives.seven_zip_reader",
    "read_texts": "preparing.tfrecord",
    "reading": "preparing.tables",
    "repack_tar": "archives.archive",
    "require": "preparing.files",
    "split_by": "preparing.split",
    "split_group_indices": "preparing.split",
    "split_groups": "preparing.split",
    "split_indices": "preparing.split",
    "split_indices_by": "preparing.split",
    "split_list": "preparing.split",
    "split_rows": "preparing.split",
    "unpacked": "preparing.unpack",
    "write_7z": "archives.archive",
    "write_csv": "preparing.tables",
    "write_json": "preparing.tables",
    "write_parquet": "preparing.tables",
    "write_zip": "archives.archive",
    "write_zip_of": "archives.archive",
    "zip_members": "preparing.unpack",
}

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
    "new_file",
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

if not TYPE_CHECKING:  # a type checker knows the names above, and that there are no others

    def __getattr__(name: str) -> object:
        """Import a name when it is first asked for: processes that help start without pandas."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(f"pytest_mlebench.{_HOMES[name]}"), name)

    def __dir__() -> list[str]:
        """Return the names, imported or not."""
        return [*__all__]
