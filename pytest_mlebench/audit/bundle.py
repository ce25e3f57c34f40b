"""A bundle: everything of a run that a stranger needs to check it, in one zip with a manifest.

    manifest.json       sha256 and size of every other file, and the sum of the manifest itself
    manifest.json.sig   the signature of the manifest, if there is one
    report.json         the claims: results, rates, conditions
    disclosure.md       the same for people
    run/…               the plan, records, submissions, snapshots, code and logs of the run

Secrets were masked when the sandbox collected code and logs; submissions are as they were handed
in. Nothing is followed out of the run.
"""

from __future__ import annotations

import hashlib
import json
import stat
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_mlebench import __version__
from pytest_mlebench._files import atomic_file
from pytest_mlebench.audit.signature import sign
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.layout import AttemptFolder, RunFolder
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.formats import json_file, markdown
from pytest_mlebench.reports.json_table import json_table
from pytest_mlebench.reports.report import Report
from pytest_mlebench.sandbox.kept_files import CODE, kept_files, portable_name, regular_files

FORMAT = "pytest-mlebench bundle"
SCHEMA = 1
MANIFEST, SIGNATURE = "manifest.json", "manifest.json.sig"
CLAIMS, PAGE = "report.json", "disclosure.md"
RUN = "run"
KEPT_FILES = {"record.json", "submission.csv", "calls.jsonl"}  # also without logs: claims need them
KEPT_FOLDERS = ("snapshots/", f"{CODE}/")

_MOMENT = (1980, 1, 1, 0, 0, 0)  # the same files always make the same bundle


@dataclass(frozen=True)
class Manifest:
    """What a bundle holds: path to sha256 and size."""

    files: Mapping[str, tuple[str, int]]
    created: str
    plugin_version: str
    left_out: tuple[str, ...] = ()  # what was there and could not be taken, or was not to be

    def to_dict(self) -> dict[str, Any]:
        """Return the manifest in JSON types, with its own sum."""
        data: dict[str, Any] = {
            "format": FORMAT,
            "schema": SCHEMA,
            "created": self.created,
            "plugin_version": self.plugin_version,
            "left_out": list(self.left_out),
            "files": {
                path: {"sha256": digest, "bytes": size}
                for path, (digest, size) in self.files.items()
            },
        }
        return data | {"sum": _sum(data)}

    @classmethod
    def from_dict(cls, data: object, where: str) -> Manifest:
        """Return what ``to_dict`` wrote, or say what is wrong with it."""
        table = json_table(data, where)
        if table.text("format", "") != FORMAT:
            raise ConfigError(f"{where}: not the manifest of a bundle of pytest-mlebench")
        if (schema := table.number("schema", 0)) != SCHEMA:
            raise ConfigError(f"{where}: has schema {schema!r}, this version reads {SCHEMA}")
        files = table.table("files").all_tables()
        manifest = cls(
            files={
                path: (each.text("sha256"), int(each.number("bytes")))
                for path, each in files.items()
            },
            created=table.text("created"),
            plugin_version=table.text("plugin_version"),
            left_out=table.texts("left_out", ()),
        )
        if data != manifest.to_dict():
            raise ConfigError(f"{where}: was changed after it was written: its sum does not hold")
        return manifest


def write_bundle(
    run: Path, target: Path, registry: Registry, *, logs: bool = True, key: Path | None = None
) -> Manifest:
    """Write the bundle of a run, all of it or nothing."""
    report = relative_report(Report.from_run(run, registry), run)
    texts = {CLAIMS: json_file.render(report), PAGE: markdown.render(report)}
    files = dict(_files(RunFolder(run), logs=logs))
    taken = set(files.values())
    rest = [path.relative_to(run) for path in regular_files(run) if path not in taken]
    left_out = tuple(map(portable_name, map(str, rest)))
    with atomic_file(target) as temporary:
        return _write(temporary, files, texts, left_out, report.created, key)


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of an unpacked bundle."""
    return Manifest.from_dict(json_file.load_json(folder / MANIFEST), MANIFEST)


def relative_report(report: Report, run: Path) -> Report:
    """Return a report whose paths are relative to its run, wherever that is."""
    root = run.absolute()

    def relative(path: str | None) -> str | None:
        found = None if path is None else Path(path).absolute()
        return str(found.relative_to(root)) if found and found.is_relative_to(root) else None

    results = (
        replace(
            result,
            run=relative(result.run),
            grade=None if result.grade is None else replace(result.grade, run=None),
        )
        for result in report.results
    )
    return replace(report, results=tuple(results))


def _write(
    target: Path,
    files: Mapping[str, Path],
    texts: Mapping[str, str],
    left_out: tuple[str, ...],
    created: str,
    key: Path | None,
) -> Manifest:
    sums: dict[str, tuple[str, int]] = {}
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in files.items():
            sums[name] = _add_file(archive, name, path)
        for name, text in texts.items():
            sums[name] = _add(archive, name, text.encode())
        manifest = Manifest(sums, created, __version__, left_out)
        text = json.dumps(manifest.to_dict(), indent=1, ensure_ascii=False) + "\n"
        _add(archive, MANIFEST, text.encode())
        if key is not None:
            with tempfile.TemporaryDirectory(prefix="mlebench-sign.") as scratch:
                file = Path(scratch) / MANIFEST
                file.write_bytes(text.encode())
                _add(archive, SIGNATURE, sign(file, key).read_bytes())
    return manifest


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> tuple[str, int]:
    archive.writestr(_info(name), content)
    return hashlib.sha256(content).hexdigest(), len(content)


def _add_file(archive: zipfile.ZipFile, name: str, path: Path) -> tuple[str, int]:
    """Copy a file as it is now: what grows in the meantime is hashed as it was copied."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as source, archive.open(_info(name), "w", force_zip64=True) as out:
        while block := source.read(1 << 20):
            digest.update(block)
            size += len(block)
            out.write(block)
    return digest.hexdigest(), size


def _info(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _MOMENT)
    info.external_attr = (stat.S_IFREG | 0o644) << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


def _files(run: RunFolder, *, logs: bool) -> Iterator[tuple[str, Path]]:
    """Yield the regular files of a run that belong into a bundle, by their names there."""
    audit = (run.audit, run.votes) if logs else (run.audit,)
    wanted: list[Path] = [run.plan, *(path for path in audit if path.is_file())]
    for seed in run.seeds():
        for attempt in seed.attempts():
            wanted += sorted(_of_attempt(attempt, logs=logs))
    for path in wanted:
        yield f"{RUN}/{path.relative_to(run.path).as_posix()}", path


def _of_attempt(attempt: AttemptFolder, *, logs: bool) -> Iterator[Path]:
    for name, path in kept_files(attempt):
        if logs or name in KEPT_FILES or name.startswith(KEPT_FOLDERS):
            yield path


def _sum(data: Mapping[str, Any]) -> str:
    text = json.dumps(data, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
