"""Laws: whatever is written can be read again, and means the same."""

from __future__ import annotations

import json
import math
from dataclasses import fields, replace

from hypothesis import given
from hypothesis import strategies as st

from pytest_mlebench._units import parse_duration, parse_size, show_duration, show_size
from pytest_mlebench.attempts.identity import Identity
from pytest_mlebench.attempts.record import AttemptRecord, Conditions
from pytest_mlebench.budget import Budget
from pytest_mlebench.gateway.model_use import ModelUse
from pytest_mlebench.gateway.own_usage import OwnFigures, OwnUsage
from pytest_mlebench.gateway.spending import ModelSpending, Spending, Usage
from pytest_mlebench.grade import Grade, Snapshot
from pytest_mlebench.limits import STANDARD, Limits
from pytest_mlebench.medals import Medal
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.disclosure import Disclosure
from pytest_mlebench.reports.formats import json_file
from pytest_mlebench.reports.report import Report
from pytest_mlebench.reports.report_content import Content
from pytest_mlebench.reports.results import ItemKey, Result
from pytest_mlebench.sandbox import Ending
from pytest_mlebench.sandbox.redact import Mask

numbers = st.floats(allow_nan=False, allow_infinity=False)
counts = st.integers(min_value=0, max_value=10**12)
texts = st.text(max_size=40)
words = st.text("abc-é ", min_size=1, max_size=12)
medals = st.sampled_from(Medal)

snapshots = st.builds(
    Snapshot,
    seconds=numbers,
    sha256=words,
    bytes=counts,
    score=st.none() | numbers,
    medal=medals,
    above_median=st.booleans(),
    percentile=st.none() | numbers,
    problem=st.none() | texts,
)


dollars = st.floats(min_value=0, max_value=10**9)
own_figures = {
    "input_tokens": st.none() | counts,
    "output_tokens": st.none() | counts,
    "usd": st.none() | dollars,
}
model_uses = st.builds(
    ModelUse,
    metered=st.none()
    | st.builds(
        Spending,
        models=st.lists(
            st.builds(
                ModelSpending,
                upstream=words,
                model=texts,
                calls=counts,
                errors=counts,
                unmetered=counts,
                seconds=dollars,
                usage=st.builds(Usage, *(counts for _ in fields(Usage))),
                usd=st.none() | dollars,
            ),
            max_size=2,
        ).map(tuple),
        budget=st.builds(
            Budget, usd=st.none() | st.floats(0.01, 100), calls=st.none() | st.just(7)
        ),
        exhausted=st.lists(words, max_size=2).map(tuple),
        refused=st.dictionaries(words, counts, max_size=2),
        problems=st.dictionaries(words, counts, max_size=2),
        transcripts_dropped=counts,
    ),
    reported=st.none()
    | st.builds(
        OwnUsage,
        **own_figures,
        steps=st.none() | counts,
        models=st.dictionaries(words, st.builds(OwnFigures, **own_figures), max_size=2),
    ),
    problem=st.none() | texts,
    interrupted=st.booleans(),
)


@st.composite
def grades(draw: st.DrawFn) -> Grade:
    score = draw(st.none() | numbers)
    return Grade(
        competition="c",
        score=score,
        medal=Medal.NONE if score is None else draw(medals),
        above_median=draw(st.booleans()),
        percentile=draw(st.none() | numbers),
        submission_exists=draw(st.booleans()),
        problem=draw(st.none() | texts),
        gold=draw(numbers),
        silver=draw(numbers),
        bronze=draw(numbers),
        median=draw(numbers),
        lower_is_better=draw(st.booleans()),
        teams=draw(counts),
        run=draw(st.none() | texts),
    )


@st.composite
def results(draw: st.DrawFn) -> Result:
    grade = draw(st.none() | grades())
    status = draw(st.sampled_from(["error", "skipped", "missing"]))
    if grade is not None:
        status = "graded" if grade.valid else "failed"
    return Result(
        competition="c",
        seed=draw(st.integers(0, 5)),
        status=status,  # type: ignore[arg-type]  # one of them
        grade=grade,
        error=draw(st.none() | texts),
        agent=draw(texts),
        conditions=draw(texts),
        agent_seconds=draw(st.none() | numbers),
        run=draw(st.none() | texts),
        format_checks=draw(counts),
        snapshots=tuple(draw(st.lists(snapshots, max_size=2))),
        fingerprint=draw(st.none() | words),
        model_use=draw(st.none() | model_uses),
        lost_usd=draw(st.none() | dollars),
        gpus=draw(st.integers(0, 8)),
        extra=draw(st.dictionaries(words, st.none() | texts, max_size=2)),
    )


endings = st.builds(
    Ending,
    reason=st.sampled_from(["exited", "time-limit", "memory-limit"]),
    exit_code=st.none() | st.integers(0, 255),
    seconds=numbers,
    format_checks=counts,
    peak_memory_bytes=st.none() | counts,
    cpu_seconds=st.none() | numbers,
    image=st.none() | texts,
    gpus=st.lists(words, max_size=2).map(tuple),
    problem=st.none() | texts,
    details=st.dictionaries(words, texts, max_size=2),
)
conditions = st.builds(
    Conditions,
    agent_version=st.none() | texts,
    limits=st.none() | st.builds(replace, st.just(STANDARD), cpus=st.integers(1, 100)),
    hardware=st.dictionaries(words, texts, max_size=2),
    gpus=st.lists(st.dictionaries(words, texts, max_size=2), max_size=2).map(tuple),
)
records = st.builds(
    AttemptRecord,
    competition=words,
    seed=counts,
    attempt=counts,
    agent=texts,
    phase=st.sampled_from(["created", "collected", "graded", "error"]),
    item=st.none() | st.builds(ItemKey, words, counts, texts, texts),
    identity=st.none() | st.builds(Identity, st.dictionaries(words, texts, max_size=3)),
    conditions=conditions,
    timings=st.dictionaries(words, numbers, max_size=3),
    ending=st.none() | endings,
    grade=st.none() | grades(),
    error=st.none() | texts,
    model_use=st.none() | model_uses,
    snapshots=st.lists(snapshots, max_size=2).map(tuple),
    extra=st.dictionaries(words, texts, max_size=2),
    lease=st.none() | st.text(),
    superseded=st.booleans(),
)


@given(records)
def test_a_record_comes_back(record: AttemptRecord) -> None:
    data = json.loads(json.dumps(record.to_dict()))
    assert AttemptRecord.from_dict(data, "record.json") == record


@given(results())
def test_a_result_comes_back(result: Result) -> None:
    assert Result.from_dict(json.loads(json.dumps(result.to_dict()))) == result


@given(st.lists(results(), max_size=4, unique_by=lambda result: result.key))
def test_a_report_comes_back(found: list[Result]) -> None:
    report = Report.of(found, registry=Registry(), disclosure=Disclosure(agent="mine", seeds=2))
    read = json_file.parse(json.loads(json_file.render(report)), "r.json")
    assert read == Content(
        report.results,
        report.disclosure,
        membership=report.membership,
        created=report.created,
    )


@given(st.floats(min_value=0.001, max_value=10**9))
def test_a_duration_is_parsed_as_it_is_shown(seconds: float) -> None:
    shown = show_duration(seconds)
    again = parse_duration(shown, "--option")
    assert math.isclose(again, seconds, rel_tol=0.01)  # in seconds, or to three digits
    assert show_duration(again) == shown


@given(st.integers(min_value=1, max_value=10**18))
def test_a_size_is_parsed_as_it_is_shown(size: int) -> None:
    shown = show_size(size)
    again = parse_size(shown, "--option")
    assert math.isclose(again, size, rel_tol=0.001)  # to four digits
    assert show_size(again) == shown


@given(st.data())
def test_limits_are_read_as_they_are_described(data: st.DataObject) -> None:
    table = {
        "time": f"{data.draw(st.integers(1, 500))}m",
        "cpus": data.draw(st.integers(1, 500)),
        "memory": f"{data.draw(st.integers(1, 999))}GB",
        "gpus": data.draw(st.integers(0, 16)),
    }
    limits = Limits.from_table(table, where="here", base=STANDARD)
    assert Limits.from_dict(json.loads(json.dumps(limits.to_dict()))) == limits
    assert set(limits.to_dict()) == {item.name for item in fields(Limits)}


@given(
    st.lists(st.binary(min_size=1, max_size=6), min_size=1, max_size=3),
    st.lists(st.integers(0, 3), max_size=12),
    st.data(),
)
def test_secrets_are_masked_in_any_chunking(
    parts: list[bytes], order: list[int], data: st.DataObject
) -> None:
    secrets = ["secret-one", "two-secret", "s3cr3t"]
    pieces = [*parts, *(secret.encode() for secret in secrets)]
    text = b"".join(pieces[index % len(pieces)] for index in order)
    mask, out, rest = Mask(secrets), b"", text
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        out += mask.feed(rest[:size])
        rest = rest[size:]
    out += mask.finish()
    whole = Mask(secrets)
    assert out == whole.feed(text) + whole.finish()
    assert not any(secret.encode() in out for secret in secrets)
