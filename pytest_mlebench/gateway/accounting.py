"""What is kept of calls: the account, the prices, ``calls.jsonl`` and the transcripts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path

from pytest_mlebench.budget import Budget
from pytest_mlebench.errors import InfrastructureError
from pytest_mlebench.gateway.call_bounds import hold_for
from pytest_mlebench.gateway.calls import Call, CallLog, shorten
from pytest_mlebench.gateway.ledger import Hold, SharedAccount, SpendingLedger
from pytest_mlebench.gateway.model_request import ModelRequest, require_allowed
from pytest_mlebench.gateway.prices import Prices
from pytest_mlebench.gateway.refusal import CallRefusal
from pytest_mlebench.gateway.spending import Spending
from pytest_mlebench.gateway.transcripts import KeptText, Transcript, TranscriptLog
from pytest_mlebench.gateway.usage_readers import Reading
from pytest_mlebench.upstream import Upstream


@dataclass
class CallState:
    """What has happened to a call so far."""

    hold: Hold = field(default_factory=Hold)  # the most that it may use
    status: int | None = None
    first_byte_seconds: float | None = None
    fault: str | None = None  # what happened instead of an answer, or of its second half
    may_have_cost: bool = True
    reading: Reading = field(default_factory=Reading)
    answer: KeptText | None = None
    arrived: float = field(default_factory=time.time)
    began: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """Return for how long it has been under way."""
        return time.monotonic() - self.began

    def note_first_byte(self) -> None:
        """Note when the answer's first byte came."""
        if self.first_byte_seconds is None:
            self.first_byte_seconds = round(self.seconds, 4)

    def keep(self, piece: bytes) -> None:
        """Keep a piece of the answer for the transcript, if there is one."""
        if self.answer is not None:
            self.answer.add(piece)


class Accounting:
    """All that is written down of one attempt's calls."""

    def __init__(
        self,
        upstreams: Sequence[Upstream],
        budget: Budget,
        folder: Path,
        *,
        shared: SharedAccount | None = None,
        transcripts: bool = False,
        secrets: Collection[str] = (),
    ) -> None:
        self.ledger = SpendingLedger(budget, shared)
        self._budget = budget
        self._prices = {upstream.name: Prices(upstream) for upstream in upstreams}
        self._calls = CallLog(folder)
        self._transcripts = TranscriptLog(folder) if transcripts else None
        self._secrets = secrets

    def summary(self) -> Spending:
        """Return what has been spent so far; from any thread."""
        dropped = self._transcripts.dropped if self._transcripts else 0
        return replace(self.ledger.summary(), transcripts_dropped=dropped)

    async def close(self) -> None:
        """Close what is open; no call is under way any more."""
        self._calls.close()
        await self.ledger.close()

    def open_call(self) -> CallState:
        """Return the beginning of a call."""
        return CallState(answer=KeptText() if self._transcripts else None)

    async def admit(
        self, model_request: ModelRequest, state: CallState, is_wanted: Callable[[], bool]
    ) -> bool:
        """Wait for a place in the budget; raise Refusal if there is none; False if nobody waits."""
        prices = self._prices[model_request.route.upstream.name]
        require_allowed(model_request, self._budget, prices)
        state.hold = hold_for(model_request, self._budget, prices, self.ledger.largest_output)
        return await self.ledger.admit(state.hold, is_wanted)

    def note_usage(self, model_request: ModelRequest, state: CallState, reading: Reading) -> None:
        """Hold what a call under way has used so far, if that is more than was expected."""
        if reading.usage is not None:
            state.hold.raise_to(reading.usage, self._cost(model_request, reading))

    async def settle(self, model_request: ModelRequest, state: CallState) -> Call:
        """Book a call and write it down: it has ended, though the agent may not know that yet."""
        reading = state.reading
        usage = reading.usage if model_request.may_cost else None
        usd = self._cost(model_request, reading) if usage else None
        failed = state.fault is not None or (state.status or 0) >= 400
        answered = state.status is not None and state.status < 300
        unmetered = model_request.may_cost and (
            state.may_have_cost if state.fault else answered and usage is None
        )
        call = Call(
            time=round(state.arrived, 3),
            upstream=model_request.route.upstream.name,
            method=model_request.method,
            path=shorten(model_request.route.decoded),
            status=state.status,
            model=model_request.model,
            answered_by=reading.model and shorten(reading.model),
            stream=model_request.is_stream,
            usage=usage,
            usd=None if usd is None else float(usd),
            unmetered=unmetered,
            seconds=round(state.seconds, 4),
            first_byte_seconds=state.first_byte_seconds,
            error=state.fault or (f"status {state.status}" if failed else None),
        )
        self.ledger.note(call)
        await self.ledger.settle(state.hold, usage, usd, unmetered=unmetered)
        with _writing():
            self._calls.write(call)
        return call

    def note_refusal(
        self, upstream: str, method: str, path: str, refusal: CallRefusal, state: CallState
    ) -> None:
        """Write down a call that was not passed on."""
        self.ledger.note_refusal(refusal.kind)
        call = Call(
            time=round(state.arrived, 3),
            upstream=upstream,
            method=shorten(method),
            path=shorten(path),
            status=refusal.status,
            seconds=round(state.seconds, 4),
            refused=f"{refusal.kind}: {refusal}",
        )
        with _writing():
            self._calls.write(call)

    async def keep_transcript(
        self, call: Call, model_request: ModelRequest, answer: KeptText | None
    ) -> None:
        """Write down what was said in a call, if that is kept."""
        if self._transcripts is None or answer is None:
            return
        transcript = self._transcript(call, model_request, answer)
        with _writing():
            # in a thread: a megabyte takes a while to compress, and streams must not wait
            await asyncio.to_thread(self._transcripts.write, transcript)

    def _cost(self, model_request: ModelRequest, reading: Reading) -> Decimal | None:
        return self._prices[model_request.route.upstream.name].cost(model_request.model, reading)

    def _transcript(self, call: Call, model_request: ModelRequest, answer: KeptText) -> Transcript:
        asked = KeptText()
        asked.add(model_request.body)
        return Transcript(
            time=call.time,
            upstream=call.upstream,
            model=call.model,
            method=call.method,
            path=call.path,
            status=call.status,
            request=asked.text(self._secrets),
            response=answer.text(self._secrets),
            request_bytes=asked.size,
            response_bytes=answer.size,
        )


@contextmanager
def _writing() -> Iterator[None]:
    """Turn a disk that takes nothing any more into what it is: no fault of the agent."""
    try:
        yield
    except OSError as problem:
        raise InfrastructureError(
            f"cannot write down a call of the agent: {problem.strerror or problem}"
        ) from problem
