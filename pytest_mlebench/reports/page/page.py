"""A report as one HTML page: templates that escape what is put into them, one small script.

A policy in the page itself lets nothing run but that script, by its checksum, and nothing be
fetched: what an agent wrote stays text even if it should find a way past the escaping.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_mlebench.reports.board import board_svg, entry_of, read_board
from pytest_mlebench.reports.page.attempt_view import MAX_DETAILED
from pytest_mlebench.reports.page.report_view import filters, view_of
from pytest_mlebench.reports.time_curve import QUOTED_HOURS, UPPER_BOUND

if TYPE_CHECKING:
    from jinja2 import Environment

    from pytest_mlebench.reports.report import Report

TEMPLATES = Path(__file__).parent / "templates"
# control characters, and marks that turn the direction of writing
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
NOTHING = "default-src 'none'; base-uri 'none'; form-action 'none'"
FROM_SERVER = "default-src 'none'; base-uri 'none'; form-action 'self'; connect-src 'self'"
SCRIPT = "script.js"  # of a report


def render(report: Report, folder: Path | None = None) -> str:
    """Return the text of the page; links to files are relative to *folder*."""
    from markupsafe import Markup  # late on purpose: only where a page is written

    view = view_of(report, folder)
    board = Markup(_board(report))  # it escapes what it takes from others
    return fill(
        "report.html",
        view=view,
        filters=filters(view),
        board=board,
        report=report,
        quoted_hours=QUOTED_HOURS,
        upper_bound=UPPER_BOUND,
        max_detailed=MAX_DETAILED,
    )


def page_policy(script: str = SCRIPT) -> str:
    """Return what a page with a script may do: run that, and ask whoever served it, if anybody."""
    policy = NOTHING if script == SCRIPT else FROM_SERVER
    style, code = _asset("style.css"), _asset(script)
    return f"{policy}; style-src {_checksum(style)}; script-src {_checksum(code)}"


def fill(template: str, script: str = SCRIPT, **values: Any) -> str:
    """Return a template filled with values, each escaped, around the page's style and script."""
    from markupsafe import Markup  # late on purpose: only where a page is written

    style, code = _asset("style.css"), _asset(script)
    return (
        environment()
        .get_template(template)
        .render(**values, style=Markup(style), script=Markup(code), policy=page_policy(script))
    )


def _board(report: Report) -> str:
    """Return the place among the published results as a picture, where there is one agent."""
    if len(report.blocks) != 1:
        return ""
    return board_svg(entry_of(report), read_board())


@cache
def environment() -> Environment:
    """Return the templates."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # late: with a page only

    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _printable(value: Any) -> Any:
    return _UNPRINTABLE.sub("?", value) if type(value) is str else value


def _asset(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _checksum(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
