"""Traces: which of what comes and goes belongs to a trace of a client, and what is told of it.

A client that traces gives an event or a message its context as the application property `traceparent`, or
`Diagnostic-Id` as older ones do (W3C Trace Context), and says in it whether the trace is sampled. The property goes on
through the service as every other one. Where a Tracer is given, runs are searched for such contexts, a search a run in
compiled code, and only what is sampled costs more. Without a Tracer nothing is looked at.

What the spans are, and where they go, is the Tracer's: service/trace_export.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from hubweir.queue.traced_step import StepTracer, Trace

NAMES = (b"traceparent", b"Diagnostic-Id")
# Of one run: the first is the parent of its span, the others are links. So a run of a thousand events costs no more.
CONTEXTS_LIMIT = 32
# An AMQP string of 55 characters (or bytes, as one client sends them), behind the key of the property. Only those whose
# flags say "sampled" match, so that others cost no Python. (W3C Trace Context, version 00)
_SAMPLED = tuple(
    re.compile(name + rb"(?:[\xa0\xa1]7|[\xb0\xb1]\x00\x00\x007)00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f][13579bdf]")
    for name in NAMES
)
_NO_TRACE, _NO_SPAN = bytes(32).replace(b"\0", b"0"), bytes(16).replace(b"\0", b"0")


@dataclass(frozen=True, slots=True)
class TraceContext:
    """The place in a trace that a client gave."""

    trace_id: int
    span_id: int


class Tracer(StepTracer, Protocol):
    """Makes spans of what is sampled."""

    def sends(self, entity: str, run: bytes | bytearray, began_s: float) -> Trace | None:
        """A run is handed to its broker now, whose first delivery came at began_s; None: nothing of it is sampled."""

    def delivers(self, entity: str, run: bytes | memoryview) -> Trace | None:
        """A run for a reader or receiver came now; None: nothing of it is sampled."""


def sampled_contexts(run: bytes | bytearray | memoryview) -> tuple[TraceContext, ...]:
    """The sampled contexts in messages as they travel, each once, CONTEXTS_LIMIT at most."""
    data = bytes(run) if isinstance(run, memoryview) else run
    found: dict[TraceContext, None] = {}
    for name, pattern in zip(NAMES, _SAMPLED, strict=True):
        if name in data:
            for match in islice(pattern.finditer(data), CONTEXTS_LIMIT):
                if match[1] != _NO_TRACE and match[2] != _NO_SPAN:
                    found[TraceContext(int(match[1], 16), int(match[2], 16))] = None
    return tuple(islice(found, CONTEXTS_LIMIT))
