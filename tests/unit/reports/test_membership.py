"""Which competitions a split has, and which leak."""

from __future__ import annotations

from pytest_mlebench import list_competitions
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.membership import Membership


def test_suspected_leaks_are_told_from_known_ones() -> None:
    membership = Membership.of(Registry(), list_competitions("all"))
    assert membership.suspected < membership.leaky
    assert membership.leak("siim-isic-melanoma-classification") == "suspected"
    assert membership.leak("spooky-author-identification") == ""
    assert Membership.from_dict(membership.to_dict(), "report.json") == membership
