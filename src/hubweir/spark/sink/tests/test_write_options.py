import logging
import pickle

import pytest

from hubweir.spark.errors import IllegalOption
from hubweir.spark.sink.write_options import ExactlyOnce, parse_write_options

KEY = "c2VjcmV0LXNlY3JldC1zZWNyZXQ="
TEXT = f"Endpoint=sb://localhost;SharedAccessKeyName=Root;SharedAccessKey={KEY};UseDevelopmentEmulator=true"
LEAST = {"connectionString": TEXT, "eventHub": "orders"}


def test_defaults() -> None:
    found = parse_write_options(LEAST)
    assert (found.event_hub, found.exactly_once, found.sort_by) == ("orders", ExactlyOnce.AUTO, ())
    assert (found.query_id, found.batch_id, found.operation_timeout_s, found.ca_file) == (None, None, 300.0, None)


def test_all_are_read_with_prefix_and_in_any_case() -> None:
    given = {
        "eventhubs.ExactlyOnce": "Require",
        "sortby": " region , id,",
        "queryId": "copy",
        "batchid": "7",
        "operationTimeout": "PT1M",
        "caFile": "ca.pem",
    }
    found = parse_write_options({**LEAST, **given})
    assert (found.exactly_once, found.sort_by) == (ExactlyOnce.REQUIRE, ("region", "id"))
    assert (found.query_id, found.batch_id, found.operation_timeout_s, found.ca_file) == ("copy", 7, 60.0, "ca.pem")


def test_options_of_the_source_may_stand_there(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        parse_write_options(
            {**LEAST, "consumerGroup": "g", "startingPosition": "no position", "maxEventsPerTrigger": "x"}
        )
    assert not caplog.records


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"exactlyOnce": "yes"}, "auto, require or off, not 'yes'"),
        ({"queryId": "copy"}, "belong together"),
        ({"batchId": "1"}, "belong together"),
        ({"queryId": "copy", "batchId": "-1"}, "batchId is a whole number of at least 0"),
        ({"eventHub": ""}, "no event hub is named"),
        ({"exactlyOnec": "auto"}, "exactlyonec is not known: .* exactlyOnce"),
        ({"kafka.bootstrap.servers": "x"}, "not Kafka's"),
    ],
)
def test_what_cannot_be_read_is_refused(more: dict[str, str], text: str) -> None:
    with pytest.raises(IllegalOption, match=text):
        parse_write_options({**LEAST, **more})


def test_they_travel_and_show_no_secret() -> None:
    found = parse_write_options(LEAST)
    assert pickle.loads(pickle.dumps(found)) == found and KEY not in repr(found)
