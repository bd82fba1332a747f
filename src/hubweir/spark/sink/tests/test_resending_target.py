from array import array
from collections.abc import Callable
from contextlib import closing

from hubweir.client.blocking import BlockingEventHubClient
from hubweir.spark.sink.resending_target import ResendingTarget
from hubweir.spark.sink.row_targets import EventRows
from hubweir.spark.sink.sink_columns import variable
from hubweir.spark.sink.tests.sink_rows import rows, stored
from hubweir.spark.sink.unsettled import Unsettled
from hubweir.spark.sink.write_options import parse_write_options


async def lose_connection(client: BlockingEventHubClient) -> None:
    (await client.inner.connection())._abort()


def test_rows_are_stored_by_partition_and_by_publisher(
    new_hub: Callable[..., str],
    client_of: Callable[[str], BlockingEventHubClient],
    options_of: Callable[..., dict[str, str]],
) -> None:
    hub = new_hub(partition_count=1)
    client, options = client_of(hub), parse_write_options(options_of(hub))
    unsettled = Unsettled()
    batch = rows(range(20))
    keys = variable(batch.column(0).cast("string"))
    found = EventRows(20, variable(batch.column(0)), keys, None, 1)
    with closing(ResendingTarget(client, options, unsettled, partition_id="0")) as target:
        target.put(found, array("q", range(19, -1, -1)), 0, 15)
        unsettled.settle()
    with closing(ResendingTarget(client, options, unsettled, publisher="meter")) as target:
        target.put(found, array("q", range(5)), 0, 5)  # without the keys: the publisher is the key
        client.thread.run(lose_connection(client))  # attaches again by itself
        unsettled.settle()
    assert stored(client)[0][:15] == list(range(19, 4, -1)) and set(stored(client)[0][15:]) == set(range(5))
    run = client.receiver("0").receive(max_wait_s=5)
    assert run is not None
