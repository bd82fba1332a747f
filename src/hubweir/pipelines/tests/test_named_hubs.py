"""The hubs of a description: options for the sink, and a hub that is not there is found without Spark."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from hubweir.pipelines.description import Description, describe
from hubweir.pipelines.errors import IllegalDescription
from hubweir.pipelines.named_hubs import check_hubs, hub_options, without_entity
from hubweir.testing.running_namespace import RunningNamespace, running_namespace

TEXT = "Endpoint=sb://h;SharedAccessKeyName=r;SharedAccessKey=k"


@pytest.fixture(scope="module")
def namespace() -> Iterator[RunningNamespace]:
    with running_namespace() as running:
        running.create_event_hub("orders")
        running.create_queue("kitchen")
        yield running


def description(text: str, pipeline: str = "to-lake", hub: str = "orders", **more: Any) -> Description:
    return describe({"pipeline": pipeline, "source": {"connectionString": text, "eventHub": hub}, **more}, "test")


def test_the_sink_is_in_the_sources_namespace_unless_it_says_another() -> None:
    raw: dict[str, Any] = {
        "pipeline": "per-key-state",
        "source": {"eventhubs.connectionString": f"{TEXT};EntityPath=in", "caFile": "/ca.pem"},
        "sink": {"eventHub": "out"},
    }
    assert hub_options(describe(raw, "test")) == {
        "connectionString": TEXT, "eventHub": "out", "exactlyOnce": "auto", "caFile": "/ca.pem",
    }  # fmt: skip
    raw["sink"]["connectionString"] = "Endpoint=sb://x"
    other = {"connectionString": "Endpoint=sb://x", "eventHub": "out", "exactlyOnce": "auto"}
    assert hub_options(describe(raw, "test")) == other


def test_the_hub_is_taken_out_of_a_connection_string() -> None:
    assert without_entity(f"{TEXT}; entitypath=in") == TEXT == without_entity(TEXT)


def test_hubs_that_are_there_are_no_problem(namespace: RunningNamespace) -> None:
    text = namespace.connection_string()
    check_hubs(description(text, sink={"path": "lake"}))
    sink = {"eventHub": "ORDERS", "deadLetterHub": "orders"}
    check_hubs(description(f"{text};EntityPath=orders", "dead-letters", parameters={"schema": "tea int"}, sink=sink))


@pytest.mark.parametrize("hub", ["dishes", "kitchen"])
def test_a_hub_that_is_not_there_is_named_with_the_way_out(namespace: RunningNamespace, hub: str) -> None:
    """A queue of that name is none."""
    with pytest.raises(IllegalDescription) as refused:
        check_hubs(description(namespace.connection_string(), hub=hub, name="mine", sink={"path": "lake"}))
    assert str(refused.value) == (
        f"pipeline mine: source.eventHub: there is no event hub '{hub}' in sb://127.0.0.1:{namespace.port}: "
        f"make it with `hubweir eventhub create {hub}`, or name another"
    )


@pytest.mark.parametrize("key", ["eventHub", "deadLetterHub"])
def test_a_hub_of_the_sink_is_looked_for_as_well(namespace: RunningNamespace, key: str) -> None:
    sink = {"eventHub": "orders", "deadLetterHub": "orders", key: "dishes"}
    parameters = {"schema": "tea int"}
    with pytest.raises(IllegalDescription, match=f"sink.{key}: there is no event hub 'dishes'"):
        check_hubs(description(namespace.connection_string(), "dead-letters", parameters=parameters, sink=sink))


def test_a_hub_of_the_sink_is_looked_for_in_the_namespace_of_the_sink(namespace: RunningNamespace) -> None:
    with running_namespace() as other:
        other.create_event_hub("silences")
        for text, there in ((other.connection_string(), True), ("", False)):
            sink = {"eventHub": "silences", "connectionString": text}
            own = description(namespace.connection_string(), "per-key-state", sink=sink)
            if there:
                check_hubs(own)
            else:
                with pytest.raises(IllegalDescription, match="'silences'"):
                    check_hubs(own)


def test_over_tls_the_authority_of_the_source_is_trusted(namespace: RunningNamespace) -> None:
    """Without it nothing is known, so nothing is refused."""
    raw = {"connectionString": namespace.connection_string(plain=False), "eventHub": "dishes"}
    own = {"pipeline": "to-lake", "sink": {"path": "lake"}}
    check_hubs(describe({**own, "source": raw}, "test"))
    with pytest.raises(IllegalDescription, match="'dishes'"):
        check_hubs(describe({**own, "source": {**raw, "caFile": str(namespace.ca_file)}}, "test"))


@pytest.mark.parametrize(
    ("old", "new"), [("SAS_KEY_VALUE", "another"), (":{port}", ":9")], ids=["a key that is wrong", "nobody listens"]
)
def test_a_namespace_that_does_not_tell_is_a_matter_of_the_run(namespace: RunningNamespace, old: str, new: str) -> None:
    text = namespace.connection_string()
    old = old.format(port=namespace.port)
    assert old in text
    check_hubs(description(text.replace(old, new), hub="dishes", sink={"path": "lake"}))


def test_what_the_sink_of_a_program_of_ones_own_means_is_not_guessed(namespace: RunningNamespace) -> None:
    check_hubs(description(namespace.connection_string(), "mine:start", sink={"eventHub": 7}))


def test_looking_for_hubs_loads_neither_spark_nor_arrow() -> None:
    code = (
        "import sys, hubweir.pipelines.named_hubs; print(sorted({'pyspark', 'pyarrow', 'pandas'} & set(sys.modules)))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout == "[]\n"
