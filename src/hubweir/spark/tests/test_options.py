import logging
import pickle

import pytest

from hubweir.event_hub.event_position import EARLIEST, LATEST, EventPosition, PositionKind
from hubweir.spark import options as options_module
from hubweir.spark.errors import IllegalOption
from hubweir.spark.event_columns import COLUMN_NAMES
from hubweir.spark.options import DEFAULT_PREFETCH, parse_options, parse_seconds

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


def test_options_of_the_jvm_connector_that_mean_nothing_are_warned_about_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(options_module, "_warned", set())
    more = {"eventhubs.threadPoolSize": "4", "maxSilentTime": "PT5M"}
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            parse_options({**LEAST, **more}, is_stream=True)
    assert [record.getMessage() for record in caplog.records] == [
        "ignored, for they mean nothing to this source: maxSilentTime, threadPoolSize"
    ]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("60s", 60), ("1.5 m", 90), ("2 minutes", 120), ("1h", 3600), ("250ms", 0.25), ("PT5M", 300), ("pt0.5s", 0.5)],
)
def test_durations_of_both_dialects(text: str, seconds: float) -> None:
    assert parse_seconds("receiverTimeout", text) == seconds


@pytest.mark.parametrize("text", ["", "5", "PT", "P1D", "fast", "5 weeks", "PT1.2.3S"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(IllegalOption, match="receiverTimeout is a duration"):
        parse_seconds("receiverTimeout", text)
