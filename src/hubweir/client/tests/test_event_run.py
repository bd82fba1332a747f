from array import array

import pytest

from hubweir.amqp.messaging.annotations import ENQUEUED_TIME, OFFSET, PARTITION_KEY, SEQUENCE_NUMBER
from hubweir.amqp.messaging.message import DataBody, Message, ValueBody, encode_message
from hubweir.amqp.types.values import Long, Symbol, Timestamp
from hubweir.client.event_run import Event, EventRun


def delivered(number: int, *, key: str | None = None, body: DataBody | ValueBody | None = None) -> bytes:
    annotations: dict[Symbol, object] = {
        SEQUENCE_NUMBER: Long(number),
        OFFSET: str(number * 100),
        ENQUEUED_TIME: Timestamp(1_700_000_000_000 + number),
    }
    if key is not None:
        annotations[PARTITION_KEY] = key
    return encode_message(
        Message(
            message_annotations=annotations,
            application_properties={"place": number},
            body=body or DataBody((b"event %d" % number,)),
        )
    )


def run_of(*messages: bytes) -> EventRun:
    data, rows = b"", array("q")
    for delivery_id, message in enumerate(messages):
        rows.extend((delivery_id, len(data), len(message), 1, 0))
        data += message
    return EventRun(data, rows, len(messages))


def test_columns_hold_what_the_service_wrote() -> None:
    run = run_of(delivered(7, key="a"), delivered(8))
    assert len(run) == 2
    assert list(run.sequence_numbers()) == [7, 8]
    assert list(run.offsets()) == [700, 800]
    assert list(run.enqueued_times_ms()) == [1_700_000_000_007, 1_700_000_000_008]
    assert run.partition_keys() == ["a", None]
    assert [bytes(body) for body in run.bodies()] == [b"event 7", b"event 8"]


def test_iterating_makes_one_event_each() -> None:
    first, second = run_of(delivered(0, key="ключ"), delivered(1))
    assert first == Event(0, "0", 1_700_000_000_000, "ключ", b"event 0")
    assert second.partition_key is None


def test_body_of_another_kind_is_none_and_the_message_can_be_opened() -> None:
    run = run_of(delivered(0, body=ValueBody([1, "two"])))
    assert run[0].body is None
    assert run.open_message(0).body == ValueBody([1, "two"])
    assert bytes(run.bodies()[0]) == b""


def test_properties_of_one_event_are_read_when_asked() -> None:
    assert run_of(delivered(3), delivered(4)).properties(1) == {"place": 4}


def test_place_outside_the_run_is_an_index_error() -> None:
    with pytest.raises(IndexError, match="event 2 of a run of 2"):
        run_of(delivered(0), delivered(1))[2]


def test_last_number_is_told_without_looking_at_the_others() -> None:
    run = run_of(b"no message", delivered(41), delivered(42))
    assert run.last_sequence_number == 42
    assert run.delivery_count == 3


def test_events_end_before_one_that_is_no_message() -> None:
    run = run_of(delivered(41), b"no message", delivered(43))
    assert (run.count, len(run), run.delivery_count) == (1, 1, 3)
    assert list(run.sequence_numbers()) == [41]
    assert [event.sequence_number for event in run] == [41]
    with pytest.raises(IndexError):
        run[1]


def test_last_number_is_of_the_last_event_when_what_follows_is_no_message() -> None:
    assert run_of(delivered(41), delivered(42), b"no message").last_sequence_number == 42
