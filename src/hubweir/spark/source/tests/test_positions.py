import json

import pytest

from hubweir.event_hub.event_position import EARLIEST, LATEST, EventPosition, PositionKind
from hubweir.spark.errors import IllegalOption
from hubweir.spark.source.positions import Positions, parse_positions

NOON_MS = 1_769_860_800_000  # 2026-01-31T12:00:00Z


def number(value: int, inclusive: bool = True) -> EventPosition:
    return EventPosition(PositionKind.SEQUENCE_NUMBER, value, inclusive)


def at(value: int, inclusive: bool = True) -> EventPosition:
    return EventPosition(PositionKind.ENQUEUED_TIME, value, inclusive)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("earliest", EARLIEST),
        (" Latest ", LATEST),
        ("4711", number(4711)),
        ("2026-01-31T12:00:00Z", at(NOON_MS)),
        ("2026-01-31 12:00", at(NOON_MS)),
        ("2026-01-31T14:00:00.0001+02:00", at(NOON_MS + 1)),  # whole milliseconds: the first that is not before
        ('{"offset": "-1", "seqNo": -1, "enqueuedTime": null, "isInclusive": true}', EARLIEST),
        ('{"offset": "@latest", "seqNo": -1, "isInclusive": false}', LATEST),
        ('{"offset": null, "seqNo": 7, "enqueuedTime": null, "isInclusive": false}', number(7, False)),
        ('{"offset": "1234", "seqNo": -1, "isInclusive": true}', EventPosition(PositionKind.OFFSET, 1234, True)),
        ('{"offset": null, "seqNo": -1, "enqueuedTime": "2026-01-31T12:00:00.000Z"}', at(NOON_MS)),
    ],
)
def test_position_is_read_in_both_dialects(text: str, position: EventPosition) -> None:
    assert parse_positions("startingPosition", text, LATEST) == Positions(position)


def test_partitions_have_positions_of_their_own_and_the_rest_the_default() -> None:
    found = parse_positions("startingPositions", '{"0": 17, "01": "latest", "2": {"seqNo": 3}}', EARLIEST)
    assert [found.of(each) for each in "0123"] == [number(17), LATEST, number(3), EARLIEST]


def test_keys_of_the_jvm_connector_name_partitions() -> None:
    key = json.dumps({"ehName": "orders", "partitionId": 1})
    found = parse_positions("startingPositions", json.dumps({key: {"offset": "@latest"}}), EARLIEST)
    assert (found.of("0"), found.of("1")) == (EARLIEST, LATEST)
    assert parse_positions("startingPositions", json.dumps({key: "latest"}), EARLIEST, hub="Orders").of("1") == LATEST


def test_a_key_of_the_jvm_connector_for_another_hub_is_refused() -> None:
    """The connector left such positions out, and began somewhere else than was asked."""
    text = json.dumps({json.dumps({"ehName": "bills", "partitionId": 1}): {"seqNo": 7}})
    with pytest.raises(IllegalOption, match="^startingPositions: .*bills.* of another event hub than 'orders'"):
        parse_positions("startingPositions", text, EARLIEST, hub="orders")


@pytest.mark.parametrize(
    "text",
    [
        "yesterday",
        "-5",
        "{",
        '{"0": true}',
        '{"0": [1]}',
        '{"a": 1}',
        '{"seqNo": "7"}',
        '{"offset": "x"}',
        '{"offset": "1", "isInclusive": 1}',
        '{"0": {"sequence": 1}}',
        '{"{": 1}',
    ],
)
def test_what_is_no_position_is_refused_with_the_option_and_a_way_out(text: str) -> None:
    with pytest.raises(IllegalOption, match="^startingPosition") as refused:
        parse_positions("startingPosition", text, LATEST)
    assert "\n" not in str(refused.value)


def test_partition_that_the_hub_lacks_is_named() -> None:
    positions = parse_positions("startingPositions", '{"0": 1, "9": 1}', EARLIEST)
    with pytest.raises(IllegalOption, match="partition 9 of event hub 'orders', which has only 0, 1"):
        positions.check(("0", "1"), "orders")
    positions.check(("0", "9"), "orders")
