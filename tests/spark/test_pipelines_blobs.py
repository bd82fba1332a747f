"""Capture on Spark into a real storage account's stand-in, and a replay out of it: each event once."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
import obstore
import pyarrow.dataset as ds
import pytest
from obstore.store import AzureStore

from hubweir.pipelines.errors import PipelineFailed
from tests.capture.azurite import ACCOUNT, INSTALL_S, KEY, Azurite, azurite
from tests.spark.live_hub import Hub
from tests.spark.pipeline_runs import repeat_last_batch, run_once
from tests.spark.test_stream import expire

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONTAINER, PLACE = "films", "az://films/of/us"


def blobs(account: Azurite) -> dict[str, bytes]:
    store = AzureStore(
        CONTAINER, account_name=ACCOUNT, account_key=KEY, endpoint=account.endpoint, client_options={"allow_http": True}
    )
    names = [found["path"] for page in obstore.list(store) for found in page]
    return {name: bytes(obstore.get(store, name).bytes()) for name in names}


@pytest.mark.slow
@pytest.mark.timeout(INSTALL_S + 240)
def test_what_is_captured_to_blobs_is_replayed_from_them_each_event_once(
    spark: SparkSession, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first half has gone from the hub; a batch of each is repeated as after a crash; the account is away once."""
    monkeypatch.delenv("HUBWEIR_CAPTURE_STORAGE", raising=False)
    with azurite(tmp_path / "azurite") as account:
        account.make_container(CONTAINER)
        wrong = {"path": "az://nowhere", "storage": account.connection_string}
        with pytest.raises(PipelineFailed, match="ContainerNotFound"):
            run_once(spark, "capture", hub, tmp_path, sink=wrong)
        captured: dict[str, Any] = {"sink": {"path": PLACE, "storage": account.connection_string}}
        hub.send("0", 200)
        run_once(spark, "capture", hub, tmp_path, **captured)
        first = blobs(account)
        assert len(first) == 2 and all(name.startswith("of/us/127-0-0-1/") for name in first)
        expire(hub, "0")
        hub.send("0", 200, start=200)
        hub.send("1", 100)
        repeat_last_batch(tmp_path / "checkpoint-capture")
        account.stop()
        with pytest.raises(PipelineFailed):
            run_once(spark, "capture", hub, tmp_path, **captured, source={"failOnDataLoss": "false"})
        account.start()
        # The repeated batch's events have gone: what it captured stays as it was.
        run_once(spark, "capture", hub, tmp_path, **captured, source={"failOnDataLoss": "false"})
        after = blobs(account)
        numbers = [
            (name.split("/")[4], record["SequenceNumber"])
            for name, data in sorted(after.items())
            for record in fastavro.reader(io.BytesIO(data))
        ]
        monkeypatch.setenv("HUBWEIR_CAPTURE_STORAGE", account.connection_string)
        replayed: dict[str, Any] = {"parameters": {"captured": PLACE}, "sink": {"path": str(tmp_path / "table")}}
        run_once(spark, "replay", hub, tmp_path, **replayed)
        hub.send("1", 50, start=100)
        repeat_last_batch(tmp_path / "checkpoint-replay")
        run_once(spark, "replay", hub, tmp_path, **replayed)
    expected = [("0", number) for number in range(400)] + [("1", number) for number in range(100)]
    assert numbers == expected
    table = ds.dataset(tmp_path / "table", format="parquet", partitioning="hive").to_table()
    found = sorted(zip(table["partition"].to_pylist(), table["sequenceNumber"].to_pylist(), strict=True))
    assert found == sorted(expected + [("1", number) for number in range(100, 150)])
