"""Samples as text: the exposition formats of OpenMetrics 1.0 and of Prometheus 0.0.4.

All of a page but its values is the same at the next scrape, unless something came or went. So the lines of a metric are
kept as a template with a hole for each value, and filled by one operation of Python: 0.1 us a line. prometheus-client
makes each line anew, which takes 18 us. Its parser reads what stands here, in the tests.
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
_ESCAPED_IN_TEMPLATE = _ESCAPED | str.maketrans({"%": "%%"})
LINES_AT_ONCE = 1_000  # 0.1 us each, ten times that when they are told for the first time
# Texts of labels that nobody told at the last scrape, before all are made anew.
_LEFT_OVER = 1_000


@dataclass(frozen=True, slots=True)
class ProcessSamples:
    """process: its name among several, a label of all that it says; "" where the service is one process.

    samples None: it did not answer.
    """

    process: str
    samples: Samples | None


class _Texts(dict[tuple[str, ...], str]):
    """What stands between a metric's name and its value, by label values: one text for all metrics with these names."""

    def __init__(self, names: tuple[str, ...], process: str) -> None:
        super().__init__()
        self._names = names
        self._process = process

    def __missing__(self, labels: tuple[str, ...]) -> str:
        said = [*zip(self._names, labels, strict=True)]
        if self._process:
            said.append(("process", self._process))
        inner = ",".join(f'{name}="{value.translate(_ESCAPED_IN_TEMPLATE)}"' for name, value in said)
        text = self[labels] = f"{{{inner}}}" if inner else ""
        return text


class _FamilyLines:
    """The lines of one metric and process, as templates of LINES_AT_ONCE each. told: their label values, in order."""

    def __init__(self, name: str, texts: _Texts, told: tuple[tuple[str, ...], ...]) -> None:
        self.told = told
        self._name = name
        self._texts = texts
        self._templates: list[str] = []

    def filled(self, values: tuple[float, ...]) -> Iterator[tuple[str, int]]:
        """With these values, as many as labels were told: a text and how many lines it has, LINES_AT_ONCE a step."""
        for number, first in enumerate(range(0, len(values), LINES_AT_ONCE)):
            piece = slice(first, first + LINES_AT_ONCE)
            if number == len(self._templates):
                lines = [f"{self._name}{self._texts[labels]} %s\n" for labels in self.told[piece]]
                self._templates.append("".join(lines))
            yield self._templates[number] % values[piece], len(values[piece])


class ExpositionWriter:
    """Writes scrapes of one service. Keeps templates of what was told to it last."""

    def __init__(self) -> None:
        self._texts: dict[tuple[tuple[str, ...], str], _Texts] = {}
        self._lines: dict[tuple[Metric, str], _FamilyLines] = {}

    def families(self, told: Sequence[ProcessSamples], *, is_open_metrics: bool, namespace: str = "") -> Iterator[str]:
        """The text, at most some LINES_AT_ONCE of it a step, so that whoever asks gives the loop its turns.

        namespace: what is of it, alone.
        """
        parts: list[str] = []
        count = total = 0
        for metric in METRICS:
            has_head = False
            for piece, lines in self._pieces(metric, told, namespace):
                if not has_head:
                    name = metric.name if is_open_metrics else metric.shown
                    meaning = metric.meaning.translate(_ESCAPED)
                    parts.append(f"# HELP {name} {meaning}\n# TYPE {name} {metric.kind.value}\n")
                    has_head = True
                parts.append(piece)
                count += lines
                if count >= LINES_AT_ONCE:
                    yield "".join(parts)
                    parts.clear()
                    total += count
                    count = 0
        if is_open_metrics:
            parts.append("# EOF\n")
        yield "".join(parts)
        if not namespace:
            self._forget(total + count)

    def _pieces(self, metric: Metric, told: Sequence[ProcessSamples], namespace: str) -> Iterator[tuple[str, int]]:
        """Texts of the lines of one metric, with how many each has."""
        for each in told:
            if each.samples is None:
                continue
            if metric in each.samples.latencies:
                if not namespace:
                    lines = _histogram(metric, each.process, each.samples.latencies[metric])
                    yield "".join(lines), len(lines)
            elif metric in each.samples:
                yield from self._filled(metric, each.process, each.samples[metric], namespace)
            else:
                self._lines.pop((metric, each.process), None)

    def _filled(self, metric: Metric, process: str, series: Series, namespace: str) -> Iterator[tuple[str, int]]:
        texts = self._texts.setdefault((metric.labels, process), _Texts(metric.labels, process))
        if namespace:
            of_it = {labels: value for labels, value in series.items() if labels[:1] == (namespace,)}
            if metric.labels[:1] == ("namespace",):
                yield from _FamilyLines(metric.shown, texts, tuple(of_it)).filled(tuple(of_it.values()))
            return
        told, lines = tuple(series), self._lines.get((metric, process))
        if lines is None or lines.told != told:
            lines = self._lines[metric, process] = _FamilyLines(metric.shown, texts, told)
        yield from lines.filled(tuple(series.values()))

    def _forget(self, lines: int) -> None:
        """Keep no texts of labels without end. lines: of a whole page, so at least as many as labels in use."""
        for texts in self._texts.values():
            if len(texts) > 2 * lines + _LEFT_OVER:
                texts.clear()


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
