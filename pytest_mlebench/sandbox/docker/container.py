"""One agent's container while it lives: created, followed, ended, removed."""

from __future__ import annotations

import base64
import json
import queue
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal

from pytest_mlebench.errors import SandboxError
from pytest_mlebench.sandbox.docker.engine import Engine
from pytest_mlebench.sandbox.log import LogWriter

EventKind = Literal["died", "oom", "killed", "lost"]

_NOT_FOUND = 404
_CHUNK = 1 << 20
_LAST_OUTPUT = 10.0  # seconds to read what a container said before it ended


@dataclass(frozen=True)
class Event:
    """Something that happened to a container."""

    kind: EventKind
    what: str = ""


@dataclass(frozen=True)
class End:
    """How a container ended, in the engine's words."""

    exit_code: int
    oom_killed: bool  # something in it was killed for want of memory, not always the agent itself
    error: str


class Container:
    """A container that is followed by two threads: one for its output, one for its fate."""

    def __init__(self, engine: Engine, request: Mapping[str, Any]) -> None:
        self._engine = engine
        self.events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._streams: list[Any] = []
        with engine.asked("cannot create the container"):
            self.id: str = engine.api.create_container(**request)["Id"]

    def start(self, log: LogWriter) -> None:
        """Start the container; from now on *log* gets what it says and ``events`` what it meets."""
        with self._engine.asked("cannot follow the container"):
            output = self._engine.streams.attach(self.id, stream=True)
            fate = self._engine.streams.events(filters={"container": self.id}, decode=True)
        self._streams = [output, fate]
        self._threads = [
            threading.Thread(target=self._follow_output, args=(output, log), daemon=True),
            threading.Thread(target=self._follow_fate, args=(fate,), daemon=True),
        ]
        for thread in self._threads:
            thread.start()
        with self._engine.asked("cannot start the container"):
            self._engine.api.start(self.id)

    def copy_in(self, folder: str, archive: Any) -> None:
        """Unpack a tar archive inside."""
        with self._engine.asked("cannot copy into the container"):
            self._engine.api.put_archive(self.id, folder, archive)

    @contextmanager
    def copy_out(self, path: str) -> Iterator[tuple[Iterator[bytes], Mapping[str, Any]] | None]:
        """Yield a path inside as a tar archive in pieces, with its facts; None if it is gone."""
        api = self._engine.api
        url = f"{api.base_url}/v{api.api_version}/containers/{self.id}/archive"
        with (
            self._engine.asked("cannot copy out of the container"),
            # By hand, for it must be closed: the engine holds on to a container while it sends.
            closing(
                api.get(url, params={"path": path}, stream=True, timeout=api.timeout)
            ) as answer,
        ):
            if answer.status_code == _NOT_FOUND:
                yield None
                return
            answer.raise_for_status()
            facts = json.loads(base64.b64decode(answer.headers["X-Docker-Container-Path-Stat"]))
            yield answer.iter_content(_CHUNK), facts

    def is_running(self) -> bool:
        """Ask the engine, for the case that an event went past us."""
        return bool(self._state()["Running"])

    def _state(self) -> Mapping[str, Any]:
        with self._engine.asked("cannot look at the container"):
            state: Mapping[str, Any] = self._engine.api.inspect_container(self.id)["State"]
        return state

    def stats(self) -> Mapping[str, Any]:
        """Return what the container uses now; nothing if it has just ended."""
        with self._engine.asked("cannot measure the container"):
            try:
                stats: Mapping[str, Any] = self._engine.api.stats(
                    self.id, stream=False, one_shot=True
                )
            except (self._engine.sdk.errors.APIError, ValueError):  # Podman answers with nothing
                return {}
            return stats

    def layer_bytes(self) -> int:
        """Return the size of what was written inside, outside of all mounts."""
        with self._engine.asked("cannot measure the container"):
            found = self._engine.api.containers(all=True, size=True, filters={"id": self.id})
        return int(found[0].get("SizeRw") or 0) if found else 0

    def processes(self) -> list[int]:
        """Return the numbers that the processes inside have on the engine's host."""
        with self._engine.asked("cannot list the container's processes"):
            try:
                table = self._engine.api.top(self.id, ps_args="-eo pid")
            except self._engine.sdk.errors.APIError:  # it has just ended
                return []
        return [int(row[0]) for row in table.get("Processes") or ()]

    def stop(self, grace: float) -> None:
        """Ask every process inside to end, and end it after *grace* seconds."""
        with self._engine.asked("cannot stop the container"):
            self._engine.api.stop(self.id, timeout=round(grace))

    def kill(self) -> None:
        """End the container at once, if it still runs."""
        with (
            self._engine.asked("cannot kill the container"),
            suppress(
                self._engine.sdk.errors.APIError  # it does not run any more
            ),
        ):
            self._engine.api.kill(self.id)

    def end(self) -> End:
        """Return how the container ended, when all of its output has been read."""
        if self._threads:
            self._threads[0].join(_LAST_OUTPUT)
        deadline = time.monotonic() + _LAST_OUTPUT
        while (state := self._state())["Running"]:  # its end is told a moment before it is noted
            if time.monotonic() > deadline:
                raise SandboxError("the container cannot be ended")
            time.sleep(0.1)
        return End(int(state["ExitCode"]), bool(state["OOMKilled"]), state.get("Error") or "")

    def remove(self) -> None:
        """Remove the container whatever state it is in."""
        for stream in self._streams:
            with suppress(Exception):  # a broken stream is closed enough
                stream.close()
        self._streams = []
        with (
            self._engine.asked("cannot remove the container"),
            suppress(self._engine.sdk.errors.NotFound),
        ):
            self._engine.api.remove_container(self.id, force=True, v=True)

    def _follow_output(self, chunks: Iterable[bytes], log: LogWriter) -> None:
        try:
            for chunk in chunks:
                log.write(chunk)
        except Exception as problem:
            self.events.put(Event("lost", f"the output cannot be kept: {problem}"))

    def _follow_fate(self, events: Iterable[Mapping[str, Any]]) -> None:
        problem = "the engine's events ended"
        try:
            for event in events:
                self._note(event)
        except Exception as error:
            problem = f"the engine's events broke off: {error}"
        self.events.put(Event("lost", problem))

    def _note(self, event: Mapping[str, Any]) -> None:
        action = str(event.get("Action") or event.get("status") or "")
        details = (event.get("Actor") or {}).get("Attributes") or {}
        if action in {"die", "died"}:
            self.events.put(Event("died"))
        elif action == "oom":
            self.events.put(Event("oom"))
        elif action in {"kill", "stop"}:
            self.events.put(Event("killed", f"signal {details.get('signal', '?')}"))
        elif action in {"destroy", "remove"}:
            self.events.put(Event("lost", "the container was removed from outside"))
