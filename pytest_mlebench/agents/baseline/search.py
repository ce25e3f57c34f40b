"""The search for one competition: its goals, on their way from the prior to the best blend."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
from columns import Columns, sort_columns
from learn import learn, prior
from listing import MediaFile
from matching import match_files
from media import MAX_TRAIN_FILES, Features, read_features
from series import list_features
from submission import Submission, places_of
from tables import Tables
from task import Goal
from views import Views, make_views
from workspace import Workspace

SAVE_EVERY = 10.0  # seconds
FEWEST_ROWS = 20  # to learn from; below, the prior must do
PRIOR_SPREAD = 1e-3  # standard deviations: a constant has no correlation, and may be refused
READING_SHARE = 0.4  # of the time that is left, at most, goes into reading files


class Search:
    """The goals of one competition, the tables to learn them from, and the files of the rows."""

    def __init__(
        self,
        workspace: Workspace,
        tables: Tables,
        submission: Submission,
        goals: tuple[Goal, ...],
        files: list[MediaFile],
    ) -> None:
        self.workspace = workspace
        self.tables = tables
        self.submission = submission
        self.goals = goals
        self.files = files
        self.saved = time.monotonic()

    def hand_in_priors(self) -> bool:
        """Hand in what needs no features, in another form if the format check refuses it."""
        accepted = self._save_priors()
        if not accepted and not all(goal.sure for goal in self.goals):
            self.goals = tuple(
                goal if goal.sure else replace(goal, form="label", sure=True) for goal in self.goals
            )
            accepted = self._save_priors()
        if not accepted and any(goal.form == "number" for goal in self.goals):
            accepted = self._save_priors(spread=PRIOR_SPREAD)
        for goal in self.goals:
            self.workspace.log(f"to learn: {goal}")
        return accepted

    def improve(self) -> None:
        """Learn one goal after the other, each with its share of the time."""
        places = places_of(self.tables)
        train, columns = self.tables.train, self._columns()
        features = None if places is None else self._features(alone=columns.are_none)
        if features is not None:
            train = train.iloc[features.rows].reset_index(drop=True)
        views = list(self._views(train, columns, features))
        if places is None or not views or len(train) < FEWEST_ROWS:
            self.workspace.log("there is nothing to learn from: the prior must do")
            return
        for number, goal in enumerate(self.goals):
            share = self.workspace.seconds_left / (len(self.goals) - number)
            self._learn(goal, train, views, places, time.monotonic() + share)
        self.submission.save()

    def _learn(
        self,
        goal: Goal,
        train: pd.DataFrame,
        views: list[Views],
        places: np.ndarray,
        deadline: float,
    ) -> None:
        known, truth = goal.known_targets(train)
        if not len(truth):
            return
        log, seed = self.workspace.log, self.workspace.seed
        only = [one.only(known) for one in views]
        best = None
        for best in learn(goal, truth, only, seed=seed, deadline=deadline, say=log):
            self.submission.fill(goal, best, truth, places)
            if time.monotonic() - self.saved > SAVE_EVERY:
                self.submission.save()
                self.saved = time.monotonic()
        if best is not None:
            log(f"{goal.name}: loss {best.loss:.5f} with {best.name}")

    def _save_priors(self, spread: float = 0.0) -> bool:
        """Hand in the priors; with a *spread*, numbers are not quite the same in all rows."""
        size = len(self.tables.sample)
        for goal in self.goals:
            _, truth = goal.known_targets(self.tables.train)
            if not len(truth):
                continue
            best, places = prior(goal, truth, rows=1), np.zeros(size, dtype=int)
            if spread and goal.form == "number":
                ramp = np.linspace(-spread, spread, size) * truth.std()
                best, places = replace(best, test=best.test + ramp), np.arange(size)
            self.submission.fill(goal, best, truth, places)
        self.submission.save()
        return self.submission.settle(self.workspace)

    def _columns(self) -> Columns:
        """Return the columns that rows to learn from and rows to predict have in common."""
        train, test = self.tables.train, self.tables.test
        targets = {name for goal in self.goals for name in goal.sources}
        shared = [name for name in train.columns if name in test.columns and name not in targets]
        # a sample may repeat text beside the ids
        return sort_columns(train[shared]).without_keys(self.tables.ids)

    def _features(self, *, alone: bool) -> Features | None:
        """Return the numbers of the rows' files or of their lists, if there are any.

        Unless they are *alone*, they must not cost most of the rows that the tables have.
        """
        log = self.workspace.log
        files = match_files(self.tables, self.files)
        if files is None:
            return _listed(self.tables)
        log(f"the rows have files: {len(files.train)} to learn from, {len(files.test)} to predict")
        started = time.monotonic()
        deadline = started + READING_SHARE * self.workspace.seconds_left
        features = read_features(files, seed=self.workspace.seed, deadline=deadline)
        took = time.monotonic() - started
        if features is None:
            log(f"the files cannot be read (tried for {took:.1f} s)")
            return None
        log(f"read {len(features.rows)} and {features.test_files} files in {took:.1f} s")
        if not alone and len(features.rows) < min(len(files.train), MAX_TRAIN_FILES) / 2:
            log("too few files: the tables must do")
            return None
        return features

    def _views(
        self, train: pd.DataFrame, columns: Columns, features: Features | None
    ) -> Iterator[Views]:
        """Yield the tables as matrices and, where there are features, the same with these."""
        test, seed = self.tables.test, self.workspace.seed
        if not columns.are_none:
            yield make_views(train, test, columns, seed)
        if features is not None:
            measured = _with_numbers(columns, features.train)
            wider = pd.concat([train, features.train], axis=1)
            yield make_views(wider, pd.concat([test, features.test], axis=1), measured, seed)


def _listed(tables: Tables) -> Features | None:
    """Return the features of lists of numbers in the tables, if there are any."""
    found = list(list_features(tables.train, tables.test))
    if not found:
        return None
    both = pd.DataFrame(np.hstack(found)).add_prefix("list ")
    rows = len(tables.train)
    return Features(np.arange(rows), both[:rows], both[rows:].reset_index(drop=True))


def _with_numbers(columns: Columns, features: pd.DataFrame) -> Columns:
    useful = tuple(features.columns[features.nunique() > 1])
    return replace(columns, numbers=(*columns.numbers, *useful))
