"""Samples as text: the exposition formats of OpenMetrics 1.0 and of Prometheus 0.0.4.

The head of a line, its name and its labels, is made once and kept as long as it is told: prometheus-client makes each
anew, which takes 18 us a line, 200 ms for a thousand entities. Its parser reads what stands here, in the tests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hubweir.counters import Latency
from hubweir.metrics import METRICS, Metric, Samples, Series

OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PLAIN_TEXT = "text/plain; version=0.0.4; charset=utf-8"
# Of latencies: from 64 us to 17 s, each twice the one before; what is longer is in no bucket but the last.
_FIRST_BUCKET, _LAST_BUCKET = 6, 24
_BUCKETS = tuple((bits, repr(2**bits / 1e6)) for bits in range(_FIRST_BUCKET, _LAST_BUCKET + 1))
_ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
LINES_AT_ONCE = 1_000  # 0.2 us each
# Heads that nobody told at the last scrape, before all are made anew.
_LEFT_OVER = 1_000


@dataclass(frozen=True, slots=True)
class ProcessSamples:
    """process: its name among several, a label of all that it says; "" where the service is one process.

    samples None: it did not answer.
    """

    process: str
    samples: Samples | None


class _Heads(dict[tuple[str, ...], str]):
    """Lines of one metric and process up to their values, by label values; made when they are first asked for."""

    def __init__(self, metric: Metric, process: str) -> None:
        super().__init__()
        self._metric = metric
        self._process = process

    def __missing__(self, labels: tuple[str, ...]) -> str:
        said = [*zip(self._metric.labels, labels, strict=True)]
        if self._process:
            said.append(("process", self._process))
        text = ",".join(f'{label}="{value.translate(_ESCAPED)}"' for label, value in said)
        head = self[labels] = f"{self._metric.shown}{{{text}}} " if text else f"{self._metric.shown} "
        return head


class ExpositionWriter:
    """Writes scrapes of one service. Keeps the heads of lines."""

    def __init__(self) -> None:
        self._heads: dict[tuple[Metric, str], _Heads] = {}

    def families(self, told: Sequence[ProcessSamples], *, is_open_metrics: bool, namespace: str = "") -> Iterator[str]:
        """The text, some LINES_AT_ONCE of it a step, so that whoever asks gives the loop its turns.

        namespace: what is of it, alone.
        """
        parts: list[str] = []
        count = 0
        for metric in METRICS:
            lines: list[str] = []
            for each in told:
                if each.samples is None:
                    continue
                if metric in each.samples.latencies and not namespace:
                    lines += _histogram(metric, each.process, each.samples.latencies[metric])
                elif metric in each.samples:
                    lines += self._lines(metric, each.process, each.samples[metric], namespace)
            if lines:
                name = metric.name if is_open_metrics else metric.shown
                meaning = metric.meaning.translate(_ESCAPED)
                parts.append(f"# HELP {name} {meaning}\n# TYPE {name} {metric.kind.value}\n")
                parts += lines
                count += len(lines)
            if count > LINES_AT_ONCE:
                yield "".join(parts)
                parts.clear()
                count = 0
        if is_open_metrics:
            parts.append("# EOF\n")
        yield "".join(parts)

    def _lines(self, metric: Metric, process: str, series: Series, namespace: str) -> list[str]:
        heads = self._heads.get((metric, process))
        if heads is None or len(heads) > 2 * len(series) + _LEFT_OVER:
            heads = self._heads[metric, process] = _Heads(metric, process)
        if not namespace:
            return [f"{heads[labels]}{value!r}\n" for labels, value in series.items()]
        if not metric.labels or metric.labels[0] != "namespace":
            return []
        return [f"{heads[labels]}{value!r}\n" for labels, value in series.items() if labels[0] == namespace]


def _histogram(metric: Metric, process: str, latency: Latency) -> list[str]:
    """Buckets add up, as both formats want them."""
    buckets = latency.buckets.copy()
    its = f'process="{process}",' if process else ""
    own = f'{{process="{process}"}}' if process else ""
    lines = [f'{metric.name}_bucket{{{its}le="{bound}"}} {sum(buckets[: bits + 1])}\n' for bits, bound in _BUCKETS]
    count = sum(buckets)
    lines.append(f'{metric.name}_bucket{{{its}le="+Inf"}} {count}\n')
    lines += f"{metric.name}_count{own} {count}\n", f"{metric.name}_sum{own} {latency.sum_s!r}\n"
    return lines
