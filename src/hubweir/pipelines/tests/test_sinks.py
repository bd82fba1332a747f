"""Options of the sink out of a description: the source's namespace, never its hub."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from hubweir.pipelines.description import describe
from hubweir.pipelines.job import Job
from hubweir.pipelines.sinks import hub_options, without_entity

TEXT = "Endpoint=sb://h;SharedAccessKeyName=r;SharedAccessKey=k"


def job(sink: dict[str, str], source: dict[str, str]) -> Job:
    raw = {"pipeline": "per-key-state", "source": source, "sink": sink}
    return Job(None, describe(raw, "test"))  # type: ignore[arg-type]


def test_the_sink_is_in_the_sources_namespace_unless_it_says_another() -> None:
    source = {"eventhubs.connectionString": f"{TEXT};EntityPath=in", "caFile": "/ca.pem"}
    assert hub_options(job({"eventHub": "out"}, source)) == {
        "connectionString": TEXT, "eventHub": "out", "exactlyOnce": "auto", "caFile": "/ca.pem",
    }  # fmt: skip
    other = hub_options(job({"eventHub": "out", "connectionString": "Endpoint=sb://x"}, source))
    assert other == {"connectionString": "Endpoint=sb://x", "eventHub": "out", "exactlyOnce": "auto"}


def test_the_hub_is_taken_out_of_a_connection_string() -> None:
    assert without_entity(f"{TEXT}; entitypath=in") == TEXT == without_entity(TEXT)
