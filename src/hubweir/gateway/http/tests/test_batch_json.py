"""Batches as JSON, of events and of messages."""

import json

import pytest

from hubweir.errors import ServiceError
from hubweir.gateway.http.batch_json import BATCH_MEDIA_TYPE, BatchItem, batch_items, is_batch


@pytest.mark.parametrize(
    ("content_type", "batch"),
    [
        (BATCH_MEDIA_TYPE, True), (f"{BATCH_MEDIA_TYPE}; charset=utf-8", True), (BATCH_MEDIA_TYPE.upper(), True),
        (None, False), ("application/json", False), (f"{BATCH_MEDIA_TYPE}x", False), ("", False),
    ],
)  # fmt: skip
def test_one_media_type_means_a_batch(content_type: str | None, batch: bool) -> None:
    assert is_batch(content_type) is batch


def test_items_are_read_in_order_with_what_they_say() -> None:
    item = {"Body": "\u00e9", "UserProperties": {"n": 1, "t": None}, "BrokerProperties": [1]}
    assert batch_items(json.dumps([item, {"Body": ""}]).encode(), "message") == [
        BatchItem("\u00e9".encode(), {"n": 1, "t": None}, [1], "Message 0 of the batch"),
        BatchItem(b"", {}, None, "Message 1 of the batch"),
    ]


@pytest.mark.parametrize(
    ("items", "why"),
    [
        ([], "at least one event"),
        ({"Body": "x"}, "at least one event"),
        (["x"], "Event 0 of the batch .* members"),
        ([{"Body": "x"}, {"body": "x"}], "Event 1 of the batch .* members"),
        ([{"Body": 1}], "its Body must be a string"),
        ([{}], "its Body must be a string"),
        ([{"Body": "x", "UserProperties": []}], "UserProperties must be an object"),
        ([{"Body": "x", "UserProperties": {"a": [1]}}], "its property 'a'"),
        ([{"Body": "x", "UserProperties": {"a": "x" * 40_000}}], "32768 bytes each"),
    ],
)
def test_what_is_no_batch_is_refused_with_the_place(items: object, why: str) -> None:
    with pytest.raises(ServiceError, match=why):
        batch_items(json.dumps(items).encode(), "event")
