"""One attempt at a competition, from the data folder to the last submission."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pandas as pd
from columns import sort_columns
from learn import learn, prior
from submission import Submission, places_of
from tables import Tables, find_sample, read_tables
from task import Goal, infer_goals
from views import Views, make_views
from workspace import Workspace

SAVE_EVERY = 10.0  # seconds
FEWEST_ROWS = 20  # to learn from; below, the prior must do


def attempt(workspace: Workspace) -> int:
    """Leave a valid submission early, then improve it while there is time."""
    source = find_sample(workspace.data)
    if source is None:
        workspace.log(f"no sample submission in {workspace.data}")
        return 1
    submission = Submission(source.read_as_written(), workspace.submission)
    submission.save()
    workspace.log(f"handed in the sample: {source.file.name}, {len(submission.table)} rows")
    tables = _tables(workspace, submission.table.copy())
    goals = () if tables is None else infer_goals(tables)
    if tables is None or not goals:
        workspace.log("the tables do not tell what to learn: the sample must do")
    else:
        search = Search(workspace, tables, submission, goals)
        search.hand_in_priors()
        search.improve()
    workspace.is_accepted()
    return 0


def _tables(workspace: Workspace, sample: pd.DataFrame) -> Tables | None:
    try:
        return read_tables(workspace.data, sample)
    except ValueError as problem:
        workspace.log(f"the tables cannot be read: {problem}")
        return None


class Search:
    """The goals of one competition on their way from the prior to the best blend."""

    def __init__(
        self, workspace: Workspace, tables: Tables, submission: Submission, goals: tuple[Goal, ...]
    ) -> None:
        self.workspace = workspace
        self.tables = tables
        self.submission = submission
        self.goals = goals
        self.saved = time.monotonic()

    def hand_in_priors(self) -> None:
        """Hand in what needs no features: labels where the format check wants no scores."""
        self._save_priors()
        if not all(goal.sure for goal in self.goals) and not self.workspace.is_accepted():
            self.goals = tuple(
                goal if goal.sure else replace(goal, form="label", sure=True) for goal in self.goals
            )
            self._save_priors()
        for goal in self.goals:
            self.workspace.log(f"to learn: {goal}")

    def improve(self) -> None:
        """Learn one goal after the other, each with its share of the time."""
        places = places_of(self.tables)
        views = self._views()
        if places is None or views.is_empty or len(self.tables.train) < FEWEST_ROWS:
            self.workspace.log("there is nothing to learn from: the prior must do")
            return
        for number, goal in enumerate(self.goals):
            share = self.workspace.seconds_left / (len(self.goals) - number)
            self._learn(goal, views, places, time.monotonic() + share)
        self.submission.save()

    def _learn(self, goal: Goal, views: Views, places: np.ndarray, deadline: float) -> None:
        known, truth = goal.known_targets(self.tables.train)
        log, seed = self.workspace.log, self.workspace.seed
        best = None
        for best in learn(goal, truth, views.only(known), seed=seed, deadline=deadline, say=log):
            self.submission.fill(goal, best.test, places)
            if time.monotonic() - self.saved > SAVE_EVERY:
                self.submission.save()
                self.saved = time.monotonic()
        if best is not None:
            log(f"{', '.join(goal.columns)}: loss {best.loss:.5f} with {best.name}")

    def _save_priors(self) -> None:
        everywhere = np.zeros(len(self.tables.sample), dtype=int)
        for goal in self.goals:
            _, truth = goal.known_targets(self.tables.train)
            self.submission.fill(goal, prior(goal, truth, rows=1).test, everywhere)
        self.submission.save()

    def _views(self) -> Views:
        train, test = self.tables.train, self.tables.test
        taken = {*self.tables.ids, *(name for goal in self.goals for name in goal.sources)}
        names = [name for name in train.columns if name in test.columns and name not in taken]
        return make_views(train, test, sort_columns(train[names]), self.workspace.seed)
