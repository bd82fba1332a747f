"""What is written, read by prometheus-client's own parsers."""

from __future__ import annotations

from typing import Any

from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open_metrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from hubweir.counters import Latency
from hubweir.gateway.http.open_metrics import LINES_AT_ONCE, ExpositionWriter, ProcessSamples
from hubweir.metrics import (
    ACTIVE_CONNECTIONS,
    INCOMING_MESSAGES,
    LATENCIES,
    METRICS,
    PROCESS_UP,
    READER_LAG,
    SEND_LATENCY,
    SIZE,
    MetricKind,
    Samples,
)

Read = dict[tuple[str, frozenset[tuple[str, str]]], float]


def everything(value: float = 1) -> Samples:
    """A sample of each metric."""
    samples = Samples()
    for metric in METRICS:
        if metric.kind is MetricKind.HISTOGRAM:
            samples.latencies[metric] = Latency()
        else:
            samples[metric][tuple(f"a {label}" for label in metric.labels)] += value
    return samples


def written(*told: ProcessSamples, is_open_metrics: bool = True, namespace: str = "", writer: Any = None) -> str:
    writer = writer or ExpositionWriter()
    return "".join(writer.families(told, is_open_metrics=is_open_metrics, namespace=namespace))


def read(text: str, *, is_open_metrics: bool = True) -> Read:
    families = read_open_metrics(text) if is_open_metrics else read_text(text)
    samples = (sample for family in families for sample in family.samples)
    return {(sample.name, frozenset(sample.labels.items())): sample.value for sample in samples}


def expected(samples: Samples, **further: str) -> Read:
    return {
        (metric.shown, frozenset({**dict(zip(metric.labels, labels, strict=True)), **further}.items())): value
        for metric, series in samples.items()
        for labels, value in series.items()
    }


def without_latencies(found: Read) -> Read:
    names = tuple(metric.name for metric in LATENCIES)
    return {key: value for key, value in found.items() if not key[0].startswith(names)}


def test_both_formats_say_every_sample() -> None:
    samples = everything(1.5)
    for is_open_metrics in (True, False):
        text = written(ProcessSamples("", samples), is_open_metrics=is_open_metrics)
        found = read(text, is_open_metrics=is_open_metrics)
        assert without_latencies(found) == expected(samples)
        assert text.endswith("# EOF\n") is is_open_metrics


def test_each_metric_has_its_kind_and_its_meaning() -> None:
    told = ProcessSamples("", everything())
    assert {family.name: (family.type, family.documentation) for family in read_open_metrics(written(told))} == {
        metric.name: (metric.kind.value, metric.meaning) for metric in METRICS
    }


def test_names_of_entities_may_hold_whatever_they_like() -> None:
    samples = Samples()
    for name in ("100 %", "%s", "%%d", "%"):
        samples[SIZE]["shop", name] += len(name)
    for name in ('with "quotes"', "with\nlines", "with\\backslash", "mit Umlaut ü", "a,b={}", "topic/Subscriptions/s"):
        samples[SIZE]["shop", name] += len(name)
    for is_open_metrics in (True, False):
        text = written(ProcessSamples("", samples), is_open_metrics=is_open_metrics)
        assert read(text, is_open_metrics=is_open_metrics) == expected(samples)


def test_each_of_several_processes_has_its_name_and_a_metric_stands_in_one_piece() -> None:
    one, other = Samples(), Samples()
    one[SIZE]["shop", "orders"] += 3
    other[SIZE]["shop", "orders"] += 4
    other[PROCESS_UP][()] += 1
    text = written(ProcessSamples("0", one), ProcessSamples("1", other), ProcessSamples("2", None))
    assert read(text) == expected(one, process="0") | expected(other, process="1")
    assert text.count("# TYPE hubweir_size_bytes ") == 1


def test_buckets_of_latencies_add_up_to_their_count() -> None:
    samples = Samples()
    latency = samples.latencies[SEND_LATENCY] = Latency()
    for bits, times in ((0, 1), (6, 2), (7, 3), (24, 4), (30, 5)):
        latency.buckets[bits] += times
    latency.sum_s = 2.5
    for process, labels in (("", {}), ("3", {"process": "3"})):
        found = read(written(ProcessSamples(process, samples)))
        name, own = SEND_LATENCY.name, frozenset(labels.items())
        buckets = {float(dict(its)["le"]): value for (each, its), value in found.items() if each == f"{name}_bucket"}
        assert buckets[64e-6] == 3 and buckets[128e-6] == 6 and buckets[2**23 / 1e6] == 6 and buckets[2**24 / 1e6] == 10
        assert buckets[float("inf")] == 15 and len(buckets) == 20
        assert found[f"{name}_count", own] == 15 and found[f"{name}_sum", own] == 2.5


def test_a_namespace_alone_hears_of_nothing_else() -> None:
    samples = everything()
    for namespace in ("shop", "other"):
        samples[INCOMING_MESSAGES][namespace, "orders"] += 1
        samples[ACTIVE_CONNECTIONS][(namespace,)] += 1
        samples[READER_LAG][namespace, "orders", "0", "g"] += 1
    found = read(written(ProcessSamples("", samples), namespace="shop"))
    assert {name for name, _ in found} == {INCOMING_MESSAGES.shown, ACTIVE_CONNECTIONS.name, READER_LAG.name}
    assert all(("namespace", "shop") in labels for _, labels in found) and len(found) == 3


def test_a_later_scrape_says_what_is_then_and_nothing_of_what_is_gone() -> None:
    writer, before, now = ExpositionWriter(), Samples(), Samples()
    for number in range(3 * LINES_AT_ONCE):
        before[SIZE]["shop", f"queue-{number}"] += 1
        before[READER_LAG]["shop", "orders", str(number), "g"] += 1
    now[SIZE]["shop", "queue-7"] += 5
    now[SIZE]["shop", "new"] += 6
    assert len(read(written(ProcessSamples("", before), writer=writer))) == 6 * LINES_AT_ONCE
    assert read(written(ProcessSamples("", now), writer=writer)) == expected(now)
    assert max(len(texts) for texts in writer._texts.values()) < 10, "the texts of what is gone are gone, too"
    assert max(len(lines.told) for lines in writer._lines.values()) < 10


def test_much_comes_in_several_steps() -> None:
    samples = Samples()
    for number in range(LINES_AT_ONCE + 1):
        samples[SIZE]["shop", str(number)] += 1
        samples[INCOMING_MESSAGES]["shop", str(number)] += 1
    steps = list(ExpositionWriter().families([ProcessSamples("", samples)], is_open_metrics=True))
    assert len(steps) == 3 and read("".join(steps)) == expected(samples)


def test_a_page_is_the_same_however_often_it_is_asked_for() -> None:
    """With what was kept: of one process and of two, when labels come in another order, when some come and go."""
    writer, names = ExpositionWriter(), [f"queue {number}" for number in range(2 * LINES_AT_ONCE + 3)]
    others = names[1:], [*names, "new"], ["new", *names], list[str](), names[:LINES_AT_ONCE]
    for number, its in enumerate((names, names, names[::-1], *others, names)):
        one, other = Samples(), Samples()
        for place, name in enumerate(its):
            one[SIZE]["shop", name] += number * 10_000 + place
            one[INCOMING_MESSAGES]["shop", name] += place / 7
        other[SIZE]["shop", "orders"] += number
        told = ProcessSamples("0", one), ProcessSamples("1", other)
        assert read(written(*told, writer=writer)) == expected(one, process="0") | expected(other, process="1")


def test_what_one_namespace_asks_changes_no_page_of_the_others() -> None:
    writer, samples = ExpositionWriter(), Samples()
    for namespace in ("shop", "100 %"):
        samples[SIZE][namespace, "orders"] += len(namespace)
    for namespace in ("", "100 %", "shop", ""):
        found = read(written(ProcessSamples("", samples), writer=writer, namespace=namespace))
        its = {key: value for key, value in expected(samples).items() if ("namespace", namespace) in key[1]}
        assert found == (its if namespace else expected(samples))


def test_no_step_is_longer_than_two_pieces() -> None:
    samples = Samples()
    for number in range(5 * LINES_AT_ONCE):
        samples[READER_LAG]["shop", "orders", str(number), "g"] += 1
    steps = [*ExpositionWriter().families([ProcessSamples("", samples)], is_open_metrics=True)]
    assert max(step.count("\n") for step in steps) < 2 * LINES_AT_ONCE
