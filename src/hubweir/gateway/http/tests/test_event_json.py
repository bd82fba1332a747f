"""Batches as JSON."""

import json

import pytest

from hubweir.errors import ServiceError
from hubweir.gateway.http.event_json import read_batch


def test_a_batch_is_read_in_order_with_its_properties_and_its_key() -> None:
    item = {"Body": "\u00e9", "UserProperties": {"n": 1, "t": None}, "BrokerProperties": {"PartitionKey": "k"}}
    batch = read_batch(json.dumps([item, {"Body": "", "BrokerProperties": {"PartitionKey": "k"}}]).encode())
    assert batch.key == "k"
    assert [(event.body, event.properties) for event in batch.events] == [
        ("\u00e9".encode(), {"n": 1, "t": None}),
        (b"", {}),
    ]


@pytest.mark.parametrize(
    ("items", "why"),
    [
        (["x"], "Event 0 of the batch .* members"),
        ([{"Body": "x", "BrokerProperties": "k"}], "BrokerProperties"),
        ([{"Body": "x", "BrokerProperties": {"PartitionKey": "a"}}, {"Body": "y"}], "one partition key"),
    ],
)
def test_what_is_no_batch_is_refused_with_the_place(items: object, why: str) -> None:
    with pytest.raises(ServiceError, match=why):
        read_batch(json.dumps(items).encode())
