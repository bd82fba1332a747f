"""A Spark driver of its own, to be killed: reads a hub from `latest` and dies in batch 0 the first time.

latest_driver.py CONNECTION_STRING HUB FOLDER: writes the rows of each batch to FOLDER/<batch id>.txt, whole. The first
run writes FOLDER/reading when batch 0 begins and then waits to be killed.
"""

import sys
import time
from pathlib import Path

from hubweir.spark import session

connection_string, hub, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
spark = session(master="local[2]", settings={"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"})
source = spark.readStream.format("eventhubs").options(connectionString=connection_string, eventHub=hub)
events = source.schema("partition string, sequenceNumber long").load()
started = Path(folder / "reading")


def keep(batch, batch_id):  # type: ignore[no-untyped-def]
    if not started.exists():
        started.write_text(str(batch_id))
        time.sleep(600)
    rows = sorted((row.partition, row.sequenceNumber) for row in batch.collect())
    unfinished = folder / f"{batch_id}.new"
    unfinished.write_text("".join(f"{partition} {number}\n" for partition, number in rows))
    unfinished.replace(folder / f"{batch_id}.txt")


query = events.writeStream.foreachBatch(keep).option("checkpointLocation", str(folder / "checkpoint"))
query.trigger(processingTime="0 seconds").start().awaitTermination()
