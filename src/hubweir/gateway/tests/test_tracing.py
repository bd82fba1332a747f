"""tracing.py: contexts as clients write them are found, where they are sampled, and nothing else is."""

from __future__ import annotations

from typing import Any

import pytest

from hubweir.amqp.types.encode import encode
from hubweir.gateway.tracing import CONTEXTS_LIMIT, NAMES, TraceContext, sampled_contexts

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
CONTEXT = TraceContext(int(TRACE, 16), int(SPAN, 16))


def parent(trace: str = TRACE, span: str = SPAN, flags: str = "01", version: str = "00") -> str:
    return f"{version}-{trace}-{span}-{flags}"


def message(**properties: Any) -> bytes:
    """Application properties as AMQP has them, between other bytes."""
    return b"before" + encode({name.replace("_", "-"): value for name, value in properties.items()}) + b"behind"


@pytest.mark.parametrize("name", ["traceparent", "Diagnostic_Id"])
@pytest.mark.parametrize("value", [parent(), parent(flags="03"), parent().encode()])
def test_a_sampled_context_is_found_under_both_names(name: str, value: Any) -> None:
    for kind in (bytes, bytearray, memoryview):
        assert sampled_contexts(kind(message(other="x", **{name: value}, last=1))) == (CONTEXT,)


def test_long_forms_of_strings_are_found_too() -> None:
    assert sampled_contexts(b"\xa1\x0btraceparent\xb1\x00\x00\x007" + parent().encode()) == (CONTEXT,)


@pytest.mark.parametrize(
    "value",
    [
        parent(flags="00"), parent(flags="02"), parent(version="ff"), parent(trace="0" * 32), parent(span="0" * 16),
        parent().upper(), parent()[:-1], "", "not a context",
    ],
)  # fmt: skip
def test_what_is_not_sampled_or_no_context_is_none(value: str) -> None:
    assert sampled_contexts(message(traceparent=value)) == ()


def test_a_body_that_speaks_of_contexts_is_none() -> None:
    assert sampled_contexts(f"traceparent: {parent()}, Diagnostic-Id={parent()}".encode()) == ()


def test_each_of_a_run_is_found_once_and_not_without_end() -> None:
    one = message(traceparent=parent(), Diagnostic_Id=parent())
    assert sampled_contexts(one * 5) == (CONTEXT,)
    many = b"".join(message(traceparent=parent(span=f"{number:016x}")) for number in range(1, 5 * CONTEXTS_LIMIT))
    found = sampled_contexts(many)
    assert len(found) == CONTEXTS_LIMIT and found[0].span_id == 1 and found[-1].span_id == CONTEXTS_LIMIT


def test_contexts_under_both_names_count_together() -> None:
    run = b"".join(
        name + b"\xa1\x37" + b"00-%032x-%016x-01" % (number, number)
        for first, name in enumerate(NAMES, 1)
        for number in range(1_000 * first, 1_000 * first + CONTEXTS_LIMIT)
    )
    found = sampled_contexts(run)
    assert [context.trace_id for context in found] == list(range(1_000, 1_000 + CONTEXTS_LIMIT))
