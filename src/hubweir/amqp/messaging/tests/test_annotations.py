"""The names that have a meaning."""

from hubweir.amqp.messaging import annotations
from hubweir.amqp.messaging.annotations import EVENT_ANNOTATIONS, LINK_PROPERTIES, RUNTIME_METRICS
from hubweir.amqp.types.format_codes import AmqpType
from hubweir.amqp.types.values import Symbol


def test_every_name_is_a_symbol_and_stands_once() -> None:
    rows = EVENT_ANNOTATIONS + RUNTIME_METRICS + LINK_PROPERTIES
    assert len({row.name for row in rows}) == len(rows) == 20
    assert all(type(row.name) is Symbol and row.name.isascii() and row.meaning for row in rows)


def test_a_delivered_event_carries_the_types_that_clients_cast_to() -> None:
    types = {row.name: row.type for row in EVENT_ANNOTATIONS}
    assert types["x-opt-sequence-number"] is AmqpType.LONG
    assert types["x-opt-offset"] is AmqpType.STRING
    assert types["x-opt-enqueued-time"] is AmqpType.TIMESTAMP


def test_the_three_descriptors_of_the_position_filter_are_known() -> None:
    assert annotations.SELECTOR_FILTER_DESCRIPTORS == (
        "apache.org:selector-filter:string",
        0x0000468C00000004,
        0x000000137000000A,
    )
