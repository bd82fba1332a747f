import pickle

import pytest

from hubweir.event_hub.event_position import EARLIEST, LATEST, EventPosition, PositionKind
from hubweir.spark.errors import IllegalOption
from hubweir.spark.event_columns import COLUMN_NAMES
from hubweir.spark.source.read_options import DEFAULT_PREFETCH, parse_options

KEY = "c2VjcmV0LXNlY3JldC1zZWNyZXQ="
TEXT = f"Endpoint=sb://localhost;SharedAccessKeyName=Root;SharedAccessKey={KEY};UseDevelopmentEmulator=true"
LEAST = {"connectionString": TEXT, "eventHub": "orders"}


def test_defaults_of_streams_and_batches() -> None:
    stream, batch = (parse_options(LEAST, is_stream=is_stream) for is_stream in (True, False))
    assert (stream.starting.default, batch.starting.default, batch.ending.default) == (LATEST, EARLIEST, LATEST)
    assert (batch.event_hub, batch.consumer_group, batch.columns) == ("orders", "$Default", COLUMN_NAMES)
    assert (batch.fail_on_data_loss, batch.use_exclusive_receiver) == (True, False)
    assert (batch.prefetch_count, batch.max_events_per_trigger, batch.min_partitions) == (DEFAULT_PREFETCH, None, None)


def test_names_are_taken_with_prefix_and_in_any_case() -> None:
    found = parse_options(
        {
            "EVENTHUBS.connectionstring": f"{TEXT};EntityPath=orders",
            "eventhubs.consumerGroup": "spark",
            "maxeventspertrigger": "5000",
            "eventhubs.minEventsPerTrigger": "10",
            "maxTriggerDelay": "PT1M30S",
            "minPartitions": "8",
            "FailOnDataLoss": "False",
            "receiverTimeout": "500 ms",
            "columns": "sequencenumber, body",
            "eventhubs.startingPosition": '{"offset": "-1"}',
            "startingPositions": '{"1": 7}',
        },
        is_stream=True,
    )
    assert (found.event_hub, found.consumer_group) == ("orders", "spark")
    assert (found.max_events_per_trigger, found.min_events_per_trigger, found.max_trigger_delay_s) == (5000, 10, 90.0)
    assert (found.min_partitions, found.fail_on_data_loss, found.receiver_timeout_s) == (8, False, 0.5)
    assert found.columns == ("sequenceNumber", "body")
    assert found.starting.of("0") == EARLIEST
    assert found.starting.of("1") == EventPosition(PositionKind.SEQUENCE_NUMBER, 7, True)


def test_repr_shows_no_secret_and_a_task_gets_all_of_it() -> None:
    found = parse_options(LEAST, is_stream=False)
    assert KEY not in repr(found) and TEXT not in str(found)
    assert pickle.loads(pickle.dumps(found)) == found


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"connectionString": ""}, "connectionString is missing"),
        ({"connectionString": f"Endpoint=nonsense;SharedAccessKey={KEY}"}, "connectionString: "),
        ({"eventHub": ""}, "no event hub is named"),
        ({"connectionString": f"{TEXT};EntityPath=other"}, "for 'other'"),
        ({"maxEventsPerTrigger": "0"}, "at least 1"),
        ({"maxEventsPerTrigger": "many"}, "maxEventsPerTrigger is a whole number"),
        ({"failOnDataLoss": "yes"}, "true or false"),
        ({"receiverTimeout": "60"}, "such as 60s"),
        ({"columns": "body, nothing"}, "no column 'nothing'"),
        ({"columns": "body,body"}, "twice"),
        ({"eventhubs.eventHub": "another"}, "given twice"),
        ({"startingOffsets": "earliest"}, "use startingPosition"),
        ({"subscribe": "orders"}, "use eventHub"),
        ({"kafka.bootstrap.servers": "x"}, "not Kafka's source"),
        ({"maxRatesPerPartition": "{}"}, "use maxEventsPerTrigger"),
        (
            {"startingPositions": '{"{\\"ehName\\": \\"other\\", \\"partitionId\\": 0}": {"offset": "-1"}}'},
            "is a partition of another event hub than 'orders'",
        ),
        ({"format": "json"}, "with_json_value"),
        ({"useAadAuth": "true"}, "use a connection string"),
        ({"credential": "jobs.tokens"}, "credential is not taken here: a connection string carries the proof"),
        ({"prefetch": "7"}, "is not known: there are connectionString"),
    ],
)
def test_what_is_not_right_is_refused_in_one_line_without_the_secret(more: dict[str, str], why: str) -> None:
    with pytest.raises(IllegalOption, match=why) as refused:
        parse_options({**LEAST, **more}, is_stream=False)
    assert KEY not in str(refused.value) and "\n" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_stream_has_no_end() -> None:
    with pytest.raises(IllegalOption, match="availableNow"):
        parse_options({**LEAST, "endingPosition": "latest"}, is_stream=True)
