"""Blocks: their marker and their count."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from hubweir.capture.avro import long
from hubweir.pipelines.captured.blocks import CaptureBlocksDataSource, long_at, sync_marker
from hubweir.spark.errors import IllegalOption

TEXT = "Endpoint=sb://h;SharedAccessKeyName=r;SharedAccessKey=k"


def test_a_marker_is_a_partitions_own_and_stays() -> None:
    markers = {sync_marker(hub, partition) for hub in ("a", "b") for partition in "01"}
    assert len(markers) == 4 and {len(each) for each in markers} == {16}
    assert sync_marker("a", "0") == sync_marker("a", "0")


@pytest.mark.parametrize("value", [0, 1, 63, 64, 10_000, 2**40])
def test_the_count_that_a_block_begins_with_is_read(value: int) -> None:
    assert long_at(long(value) + b"\xff") == value


def test_a_partition_is_not_split() -> None:
    source = CaptureBlocksDataSource({"connectionString": TEXT, "eventHub": "o", "minPartitions": "4"})
    assert source.name() == "hubweir-capture-blocks"
    with pytest.raises(IllegalOption, match="minPartitions is not for capture"):
        source.streamReader(None)  # type: ignore[arg-type]
