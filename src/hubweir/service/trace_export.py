"""Spans of what clients trace, to a collector of OpenTelemetry.

| span | from | until | parent |
|---|---|---|---|
| send | the first delivery of a run came | its publishers are told | the first context in the run; others are links |
| commit | the run was handed to its broker | the broker answered: as durable as the mode says, or refused | send |
| deliver | a run was read for a receiver | its last byte was given to the connection | as send |
| discharge | a transaction that sends there is committed | all of its logs have it, or none | as send |
| forward | messages were taken to be moved on | their destination has them, or refused | as send |
| copy | messages of a topic were read | their copies are in the subscriptions | as send |

OpenTelemetry's own exporter sends them, in a thread, over HTTP in protobuf. While the collector is away spans are
dropped, and nothing waits. It is an extra: a start that asks for traces without it ends with what to install. After a
crash: spans that were not sent yet are gone.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hubweir import __version__
from hubweir.env import Env
from hubweir.errors import HubweirError
from hubweir.gateway.tracing import TraceContext, sampled_contexts

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

# A stop waits so long for the collector.
STOP_S = 2.0
_NS = 1_000_000_000


class NoTraces(HubweirError):
    """Traces are asked for, and cannot be made."""


class SpanExport:
    """See the module's text: a gateway's Tracer. Used on the loop; spans leave from a thread of the library."""

    def __init__(self, env: Env, url: str, process: str = "") -> None:
        """url: of the collector's traces, such as http://127.0.0.1:4318/v1/traces. process: its name among several.

        Raises NoTraces where the extra is not installed.
        """
        try:
            from opentelemetry import trace
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
            from opentelemetry.sdk.trace.sampling import ALWAYS_ON
        except ImportError as error:
            raise NoTraces(f"traces need the extra hubweir[traces]: pip install 'hubweir[traces]' ({error})") from error
        self._env = env
        self._api: Any = trace
        named = {"service.name": "hubweir", "service.version": __version__}
        if process:
            named["service.instance.id"] = process
        # Whether a trace is sampled its client has said already.
        self._provider: TracerProvider = TracerProvider(
            sampler=ALWAYS_ON, resource=Resource(named), shutdown_on_exit=False
        )
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=url)))
        self._tracer = self._provider.get_tracer("hubweir", __version__)

    def sends(self, entity: str, run: bytes | bytearray, began_s: float) -> SendSpans | None:
        """See gateway/tracing.py."""
        contexts = sampled_contexts(run)
        return SendSpans(self, entity, contexts, began_s) if contexts else None

    def delivers(self, entity: str, run: bytes | memoryview) -> StepSpan | None:
        """See gateway/tracing.py."""
        contexts = sampled_contexts(run)
        return StepSpan(self, "deliver", "SERVER", entity, contexts) if contexts else None

    def begins(self, step: Any, entity: str, run: bytes | bytearray | memoryview) -> StepSpan | None:
        """See queue/traced_step.py."""
        contexts = sampled_contexts(run)
        return StepSpan(self, step.value, "INTERNAL", entity, contexts) if contexts else None

    async def stop(self) -> None:
        """Send what is there, for STOP_S at most."""
        # A thread that the end of the process does not wait for: the library tries on for long.
        last = threading.Thread(target=self._provider.shutdown, name="last spans", daemon=True)
        last.start()
        await asyncio.to_thread(last.join, STOP_S)

    def span(
        self, name: str, kind: str, contexts: Sequence[TraceContext], entity: str, began_ns: int, parent: Any = None
    ) -> Any:
        """A span of OpenTelemetry that began at began_ns by the clock of the world, which collectors go by.

        kind: a name of its SpanKind. parent: one of ours in the place of contexts.
        """
        api = self._api
        known = [
            api.SpanContext(
                each.trace_id, each.span_id, is_remote=True, trace_flags=api.TraceFlags(api.TraceFlags.SAMPLED)
            )
            for each in contexts
        ]
        above = api.NonRecordingSpan(known[0]) if parent is None else parent
        return self._tracer.start_span(
            f"{name} {entity}",
            context=api.set_span_in_context(above),
            kind=api.SpanKind[kind],
            links=[api.Link(each) for each in known[1:]],
            attributes={
                "messaging.system": "hubweir",
                "messaging.operation.name": name,
                "messaging.destination.name": entity,
            },
            start_time=began_ns,
        )

    def end(self, *spans: Any, refused: str = "") -> None:
        """End spans now, all at the same moment. refused: the condition, which is their error."""
        # Two looks at the two clocks would differ by what passes between them, and a child could outlast its parent.
        now_ns = time.time_ns()
        for span in spans:
            if refused:
                span.set_attribute("error.type", refused)
                span.set_status(self._api.Status(self._api.StatusCode.ERROR, refused))
            span.end(now_ns)

    def ago_ns(self, at_s: float) -> int:
        """How long ago that was: as Env.monotonic_s, at most now."""
        return int((self._env.monotonic_s() - at_s) * _NS)


class SendSpans:
    """Of one run on its way to its log. Begins when it is handed over."""

    def __init__(self, export: SpanExport, entity: str, contexts: Sequence[TraceContext], began_s: float) -> None:
        self._export = export
        # One look at each clock for both: a commit that began before its send would be shown outside of it.
        now_ns = time.time_ns()
        self._send = export.span("send", "SERVER", contexts, entity, now_ns - export.ago_ns(began_s))
        self._commit = export.span("commit", "INTERNAL", (), entity, now_ns, parent=self._send)

    def ended(self, refused: str = "") -> None:
        """The broker answered, and publishers are told."""
        self._export.end(self._commit, self._send, refused=refused)


class StepSpan:
    """Of one run on its way to a receiver, or inside the service. Begins now. name, kind: see SpanExport.span."""

    def __init__(self, export: SpanExport, name: str, kind: str, entity: str, contexts: Sequence[TraceContext]) -> None:
        self._export = export
        self._span = export.span(name, kind, contexts, entity, time.time_ns())

    def ended(self, refused: str = "") -> None:
        """All of it was given to the connection, or is done."""
        self._export.end(self._span, refused=refused)


def span_export(
    env: Env, url: str, process: str = "", *, make: Callable[..., SpanExport] = SpanExport
) -> SpanExport | None:
    """None where no traces are wanted."""
    return make(env, url, process) if url else None
