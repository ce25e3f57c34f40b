"""The viewer's server: on 127.0.0.1, for whoever sits here, with nothing to write to.

What it shows is hostile: logs and names are escaped text, no file is ever served as a page, and a
policy in every answer lets nothing run but our own scripts, by their checksums. A page elsewhere
that points its own name at 127.0.0.1 is told apart by the Host it asks for.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from aiohttp import web

from pytest_mlebench.errors import MlebenchError
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.budget_curve import UNITS, budget_curve
from pytest_mlebench.reports.compare import compare
from pytest_mlebench.reports.page.page import fill, page_policy
from pytest_mlebench.viewer.comparison import notes, over_budget, two_runs
from pytest_mlebench.viewer.served_files import show
from pytest_mlebench.viewer.state import Runs, compared
from pytest_mlebench.viewer.transcript_page import NAME as TRANSCRIPTS
from pytest_mlebench.viewer.transcript_page import transcript_calls

ADDRESS = "127.0.0.1"
EVENTS_EVERY = 2.0  # seconds
MAX_WATCHERS = 32  # pages that follow a run at the same time
MAX_COMPARED = 12  # runs
PAIR = 2
PAGE_DIGITS = 6
MAX_DIGITS = 10  # of the number of a call
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
LOCKED = "default-src 'none'; frame-ancestors 'none'; sandbox"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Viewer:
    """The pages, and what they read."""

    def __init__(self, root: Path, registry: Registry) -> None:
        self.runs = Runs(root, registry)
        self.root = root
        self.port = 0
        self._watchers = 0

    def application(self) -> web.Application:
        """Return the pages by their addresses."""
        application = web.Application(middlewares=[self._guard])
        application.add_routes(
            [
                web.get("/", self._index),
                web.get("/events", self._list_events),
                web.get("/compare", self._compare),
                web.get("/run/{name}/", self._run),
                web.get("/run/{name}/events", self._events),
                web.get("/run/{name}/report.html", self._report),
                web.get("/run/{name}/{path:.+}", self._file),
            ]
        )
        return application

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer those who ask for us by name, and say in every answer what it may do."""
        if request.host not in {f"{ADDRESS}:{self.port}", f"localhost:{self.port}"}:
            return _plain("this server is for 127.0.0.1 and localhost only", status=421)
        try:
            response = await handler(request)
        except web.HTTPRedirection:
            raise
        except web.HTTPException as problem:
            response = _plain(problem.reason, status=problem.status)
        except (OSError, ValueError):  # ValueError: a name with a null byte
            response = _plain("there is nothing here", status=404)
        except MlebenchError as problem:
            response = _plain(str(problem), status=400)
        return response

    async def _index(self, request: web.Request) -> web.Response:
        cards = await asyncio.to_thread(self.runs.cards)
        return _page("runs.html", cards=cards, root=str(self.root), units=list(UNITS))

    async def _run(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        plan = await asyncio.to_thread(self.runs.plan, name)
        live = await asyncio.to_thread(self.runs.live, name, _page_number(request))
        return _page("run.html", name=name, agent=plan.agent, live=live)

    async def _report(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        return _html(await asyncio.to_thread(self.runs.page, name), page_policy())

    async def _compare(self, request: web.Request) -> web.Response:
        names, by = request.query.getall("run", []), request.query.get("by", "")
        if not 2 <= len(set(names)) <= MAX_COMPARED:
            return _plain(f"choose from 2 to {MAX_COMPARED} runs to compare", status=400)
        if by and by not in UNITS:
            return _plain(f"a budget is one of {', '.join(UNITS)}", status=400)
        if len(set(names)) > PAIR and not by:
            text = f"more than two runs are compared over a budget: choose {', '.join(UNITS)}"
            return _plain(text, status=400)
        return await asyncio.to_thread(self._compared, names, by)

    def _compared(self, names: list[str], by: str) -> web.Response:
        reports = compared(self.runs, names)
        shown: dict[str, Any] = {"names": list(reports), "plot": None, "notes": []}
        if by:
            curve = budget_curve(reports, by)
            shown |= {"tables": over_budget(curve), "plot": curve.plot}
        else:
            comparison = compare(*reports.values())
            shown |= {"tables": two_runs(comparison), "notes": notes(comparison)}
        return _page("comparison.html", **shown)

    async def _file(self, request: web.Request) -> web.Response:
        name, path = request.match_info["name"], request.match_info["path"]
        parts = [name, *path.rstrip("/").split("/")]
        if parts[-1] == TRANSCRIPTS:
            return await self._transcripts(parts, request.query.get("from", "1"))
        shown = await asyncio.to_thread(show, self.root, parts)
        if shown.names is not None:
            if not path.endswith("/"):
                raise web.HTTPFound(f"{quote(parts[-1])}/")
            links = [(name, f"./{quote(name)}") for name in sorted(shown.names)]
            return _page("folder.html", path="/".join(parts), links=links)
        response = _plain("")
        response.body = shown.data
        if not shown.is_whole:
            response.headers["X-Shown"] = f"{len(shown.data)} of {shown.size} bytes"
        return response

    async def _transcripts(self, parts: list[str], first: str) -> web.Response:
        number = int(first) if first.isdecimal() and len(first) < MAX_DIGITS else 1
        calls, following = await asyncio.to_thread(transcript_calls, self.root, parts, number)
        path = "/".join(parts)
        return _page("transcript.html", path=path, calls=calls, following=following)

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Send how far a run is, as it changes, until it is over or nobody listens."""
        name, page = request.match_info["name"], _page_number(request)
        await asyncio.to_thread(self.runs.plan, name)
        return await self._stream(request, lambda: self.runs.live(name, page))

    async def _list_events(self, request: web.Request) -> web.StreamResponse:
        """Send the list of runs, as it changes, until nobody listens."""
        return await self._stream(request, self.runs.list)

    async def _stream(
        self, request: web.Request, look: Callable[[], dict[str, Any]]
    ) -> web.StreamResponse:
        if self._watchers >= MAX_WATCHERS:
            return _plain("too many pages follow runs already", status=503)
        events = {"Content-Type": "text/event-stream", "Content-Security-Policy": LOCKED}
        response = web.StreamResponse(headers=HEADERS | events)
        await response.prepare(request)
        self._watchers += 1
        try:
            await self._send_changes(response, look)
        except ConnectionError:
            pass  # the page was closed
        finally:
            self._watchers -= 1
        return response

    async def _send_changes(
        self, response: web.StreamResponse, look: Callable[[], dict[str, Any]]
    ) -> None:
        before: dict[str, Any] = {}
        while True:
            now = await asyncio.to_thread(look)
            changed = {key: value for key, value in now.items() if before.get(key) != value}
            # a comment between events tells us in time that nobody listens any more
            message = f"data: {json.dumps(changed)}\n\n" if changed else ":\n\n"
            await response.write(message.encode())
            if now["over"]:
                return
            before = now
            await asyncio.sleep(EVENTS_EVERY)


async def serve(viewer: Viewer, port: int, ready: Callable[[str], object]) -> None:
    """Serve until cancelled; *ready* is told the address."""
    runner = web.AppRunner(viewer.application(), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, ADDRESS, port)
        await site.start()
        viewer.port = runner.addresses[0][1]
        ready(f"http://{ADDRESS}:{viewer.port}/")
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


def _page_number(request: web.Request) -> int:
    """Return which page of the attempts is asked for; the first one if that is unclear."""
    text = request.query.get("page", "")
    return int(text) if text.isdecimal() and len(text) <= PAGE_DIGITS else 1


def _page(template: str, **values: Any) -> web.Response:
    return _html(fill(template, "viewer.js", **values), page_policy("viewer.js"))


def _html(text: str, policy: str) -> web.Response:
    headers = {**HEADERS, "Content-Security-Policy": f"{policy}; frame-ancestors 'none'"}
    return web.Response(text=text, content_type="text/html", headers=headers)


def _plain(text: str, status: int = 200) -> web.Response:
    headers = {**HEADERS, "Content-Security-Policy": LOCKED}
    return web.Response(text=f"{text}\n" if text else "", status=status, headers=headers)
