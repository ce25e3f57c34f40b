"""Sheets are split within their species; the metadata are latin-1 text, not UTF-8."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing.families.herbarium import prepare_sheets


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a fifth of the sheets of each species."""
    prepare_sheets(raw, public, private, folder="nybg2020", encoding="latin-1")
