"""One attempt at a competition, from the data folder to the last submission."""

from __future__ import annotations

import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
from coco import read_annotations
from labels import tables_of_files
from listing import MediaFile, list_media
from pictures import can_decode
from restoration import restore
from search import Search
from segmentation import segment
from submission import Submission
from tables import Tables, find_sample, read_tables
from task import Goal, infer_goals
from unpack import unpack
from workspace import Workspace


def attempt(workspace: Workspace) -> int:
    """Leave a valid submission early, then improve it while there is time."""
    with tempfile.TemporaryDirectory(prefix="baseline.") as scratch:
        return Solution(workspace, Path(scratch)).run()


class Solution:
    """The data folder of one competition, and a scratch folder for what must be unpacked."""

    def __init__(self, workspace: Workspace, scratch: Path) -> None:
        self.workspace = workspace
        self.scratch = scratch

    def run(self) -> int:
        """Hand in the sample, then something better."""
        data, log = self.workspace.data, self.workspace.log
        unpack(data, self.scratch, "sample", log)
        source = find_sample(self._folders())
        if source is None:
            log(f"no sample submission in {data}")
            return 1
        submission = Submission(source.read_as_written(), self.workspace.submission)
        submission.save()
        log(f"handed in the sample: {source.file.name}, {len(submission.table)} rows")
        try:
            unpack(data, self.scratch, "", log)
            self._improve(submission)
        except Exception:  # whatever happens, something valid stays handed in
            log(traceback.format_exc())
            submission.settle(self.workspace)
            return 1
        return 0

    def _improve(self, submission: Submission) -> None:
        files = self._files()
        sample = submission.table.copy()
        if restore(self.workspace, submission, files):
            submission.settle(self.workspace)
            return
        for tables in self._tables(sample, files):
            if segment(self.workspace, submission, tables, files):
                submission.settle(self.workspace)
                return
            goals = infer_goals(tables)
            if goals:
                self._search(submission, tables, goals, files)
                return
        self.workspace.log("the data do not tell what to learn: the sample must do")
        submission.settle(self.workspace)

    def _search(
        self,
        submission: Submission,
        tables: Tables,
        goals: tuple[Goal, ...],
        files: list[MediaFile],
    ) -> None:
        search = Search(self.workspace, tables, submission, goals, files)
        if search.hand_in_priors():
            search.improve()
            submission.settle(self.workspace)

    def _tables(self, sample: pd.DataFrame, files: list[MediaFile]) -> Iterator[Tables]:
        """Yield what there is to learn from: tables, else annotations, else labelled files."""
        sources: tuple[Callable[[], Tables | None], ...] = (
            lambda: read_tables(self._folders(), sample),
            lambda: read_annotations(self._folders(), sample),
            lambda: tables_of_files(files, sample),
        )
        for source in sources:
            try:
                tables = source()
            except ValueError as problem:
                self.workspace.log(f"the tables cannot be read: {problem}")
            else:
                if tables is not None:
                    yield tables

    def _files(self) -> list[MediaFile]:
        files = list_media((self.workspace.data, self.scratch))
        if can_decode() or not any(file.kind == "picture" for file in files):
            return files
        self.workspace.log("pictures need pillow: pip install 'pytest-mlebench[competitions]'")
        return [file for file in files if file.kind != "picture"]

    def _folders(self) -> list[Path]:
        return [self.workspace.data, *sorted(self.scratch.iterdir())]
