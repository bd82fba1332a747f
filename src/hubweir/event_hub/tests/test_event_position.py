"""The filter texts of every client library, and texts that are none."""

import pytest

from hubweir.errors import ARGUMENT_ERROR, INVALID_FIELD, Condition, ServiceError
from hubweir.event_hub.event_position import (
    EARLIEST,
    LATEST,
    SELECTOR_LIMIT,
    EventPosition,
    PositionKind,
    parse_selector,
    selector_of,
)

OFFSET, SEQUENCE, TIME = PositionKind.OFFSET, PositionKind.SEQUENCE_NUMBER, PositionKind.ENQUEUED_TIME


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("amqp.annotation.x-opt-offset > '-1'", EARLIEST),
        ("amqp.annotation.x-opt-offset >= '-1'", EARLIEST),
        ("amqp.annotation.x-opt-offset > '@latest'", LATEST),
        ("amqp.annotation.x-opt-offset >= '@latest'", LATEST),
        ("amqp.annotation.x-opt-offset > @LATEST", LATEST),
        ("amqp.annotation.x-opt-offset > -1", EARLIEST),
        ("amqp.annotation.x-opt-offset > '4294967296'", EventPosition(OFFSET, 4294967296)),
        ("amqp.annotation.x-opt-offset >= 0", EventPosition(OFFSET, 0, inclusive=True)),
        ("amqp.annotation.x-opt-sequence-number > '42'", EventPosition(SEQUENCE, 42)),
        ("amqp.annotation.x-opt-sequence-number >= '42'", EventPosition(SEQUENCE, 42, inclusive=True)),
        ("amqp.annotation.x-opt-sequence-number>=42", EventPosition(SEQUENCE, 42, inclusive=True)),
        ("amqp.annotation.x-opt-sequence-number > '-1'", EventPosition(SEQUENCE, -1)),
        ("amqp.annotation.x-opt-enqueued-time > '1700000000000'", EventPosition(TIME, 1700000000000)),
        ("amqp.annotation.x-opt-enqueued-time >= '1700000000000'", EventPosition(TIME, 1700000000000, True)),
        ("amqp.annotation.x-opt-enqueued-time > '-62135596800000'", EventPosition(TIME, -62135596800000)),
        ("amqp.annotation.x-opt-enqueuedtimeutc > 1700000000000", EventPosition(TIME, 1700000000000)),
        ("AMQP.Annotation.X-Opt-Offset  >   '7'", EventPosition(OFFSET, 7)),
        (" amqp.annotation.x-opt-offset>'9223372036854775807' ", EventPosition(OFFSET, 2**63 - 1)),
    ],
)
def test_a_client_s_filter_means_its_position(text: str, expected: EventPosition) -> None:
    assert parse_selector(text) == expected


@pytest.mark.parametrize("kind", PositionKind)
@pytest.mark.parametrize("inclusive", [False, True])
def test_a_position_written_as_a_filter_reads_back_as_itself(kind: PositionKind, inclusive: bool) -> None:
    plain = {PositionKind.EARLIEST: EARLIEST, PositionKind.LATEST: LATEST}
    position = plain.get(kind, EventPosition(kind, 4711, inclusive))
    assert parse_selector(selector_of(position)) == position


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("", INVALID_FIELD),
        (">", INVALID_FIELD),
        ("amqp.annotation.x-opt-offset", INVALID_FIELD),
        ("amqp.annotation.x-opt-offset = '5'", INVALID_FIELD),
        ("amqp.annotation.x-opt-offset < '5'", INVALID_FIELD),
        ("amqp.annotation.x-opt-offset >", INVALID_FIELD),
        ("amqp.annotation.x-opt-offset >=", INVALID_FIELD),
        ("amqp.annotation.x-opt-offset > '5", INVALID_FIELD),
        ("amqp.annotation.x-opt-offset > 5'", INVALID_FIELD),
        ("amqp.annotation.x-opt-offset > '", INVALID_FIELD),
        ("amqp.annotation.x-opt-offset > '5'6'", INVALID_FIELD),
        ("x-opt-offset > '5'", INVALID_FIELD),
        ("amqp.annotation.x-opt-partition-key > '5'", INVALID_FIELD),
        ("amqp.annotation.x-opt-offset > '" + "5" * SELECTOR_LIMIT, INVALID_FIELD),
        ("amqp.annotation.x-opt-offset > ''", ARGUMENT_ERROR),
        ("amqp.annotation.x-opt-offset > 'abc'", ARGUMENT_ERROR),
        ("amqp.annotation.x-opt-offset > '-2'", ARGUMENT_ERROR),
        ("amqp.annotation.x-opt-offset > '2:-1:-1'", ARGUMENT_ERROR),
        ("amqp.annotation.x-opt-offset > '@latestx'", ARGUMENT_ERROR),
        ("amqp.annotation.x-opt-offset > '9223372036854775808'", ARGUMENT_ERROR),
        ("amqp.annotation.x-opt-sequence-number > '@latest'", ARGUMENT_ERROR),
        ("amqp.annotation.x-opt-sequence-number > '4_2'", ARGUMENT_ERROR),
        ("amqp.annotation.x-opt-sequence-number > '+42'", ARGUMENT_ERROR),
        ("amqp.annotation.x-opt-sequence-number > ' 42'", ARGUMENT_ERROR),
        ("amqp.annotation.x-opt-sequence-number > '--42'", ARGUMENT_ERROR),
        ("amqp.annotation.x-opt-sequence-number > '٤٢'", ARGUMENT_ERROR),
        ("amqp.annotation.x-opt-sequence-number > '4.2'", ARGUMENT_ERROR),
        ("amqp.annotation.x-opt-sequence-number > '" + "9" * 400 + "'", ARGUMENT_ERROR),
        ("amqp.annotation.x-opt-enqueued-time > '2026-11-21'", ARGUMENT_ERROR),
    ],
)
def test_what_is_no_position_is_refused_with_the_condition_that_clients_know(text: str, condition: Condition) -> None:
    with pytest.raises(ServiceError) as refused:
        parse_selector(text)
    assert refused.value.condition is condition


def test_a_filter_may_be_as_long_as_the_limit_and_no_longer() -> None:
    longest = "amqp.annotation.x-opt-offset > 5".ljust(SELECTOR_LIMIT)
    assert parse_selector(longest) == EventPosition(OFFSET, 5)
    with pytest.raises(ServiceError) as refused:
        parse_selector(longest + " ")
    assert refused.value.condition is INVALID_FIELD


def test_a_refused_filter_is_quoted_without_its_control_characters() -> None:
    with pytest.raises(ServiceError) as refused:
        parse_selector("amqp.annotation.x-opt-offset > 'a\r\nINFO forged\x1b[2J'")
    assert "a??INFO forged?[2J" in refused.value.text
    assert refused.value.text.isprintable()
