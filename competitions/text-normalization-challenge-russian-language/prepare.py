"""Sentences are split at random and numbered anew; the answers are the spoken tokens."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing.families.text_normalization import prepare_tokens


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the sentences."""
    prepare_tokens(raw, public, private, language="ru")
