"""What was read of a report, before it is one."""

from __future__ import annotations

from dataclasses import dataclass, field

from pytest_mlebench.reports.disclosure import Disclosure
from pytest_mlebench.reports.findings import Audit
from pytest_mlebench.reports.membership import Membership
from pytest_mlebench.reports.results import ItemKey, Result


@dataclass(frozen=True)
class Content:
    """Results and conditions as a file or a folder has them; what it lacks is computed."""

    results: tuple[Result, ...]
    disclosure: Disclosure = field(default_factory=Disclosure)
    expected: tuple[ItemKey, ...] = ()
    membership: Membership | None = None
    created: str | None = None
    audit: Audit | None = None
