"""The wheel's own build step: all obfuscated descriptions in one file, which is half as large."""

from __future__ import annotations

import json
import lzma
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKED = "competitions/obfuscated.json.xz"  # where ``Competition.obfuscated_description`` looks


class PackDescriptions(BuildHookInterface):  # type: ignore[type-arg]
    """Packs ``description_obfuscated.md`` of all competitions."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the packed file to a wheel; an editable install reads the folders themselves."""
        if version == "editable":
            return
        folders = Path(self.root, "competitions")
        texts = {
            path.parent.name: path.read_text(encoding="utf-8")
            for path in sorted(folders.glob("*/description_obfuscated.md"))
        }
        self._scratch = tempfile.TemporaryDirectory()
        packed = Path(self._scratch.name, "packed")
        packed.write_bytes(lzma.compress(json.dumps(texts).encode()))
        build_data["force_include"][str(packed)] = f"pytest_mlebench/{PACKED}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was only needed to build."""
        if version != "editable":
            self._scratch.cleanup()
