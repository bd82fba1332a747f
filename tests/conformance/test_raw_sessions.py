"""Message sessions frame by frame: how they are asked for, granted, lost, and what is sent with their ids."""

from __future__ import annotations

import time
from collections.abc import Callable
from uuid import UUID

import pytest

from hubweir.amqp.messaging.message import DataBody, Message, Properties, ValueBody, decode_message
from hubweir.amqp.messaging.outcome import Accepted
from hubweir.amqp.messaging.terminus import Source
from hubweir.amqp.transport.performatives import Attach, Detach, Flow
from hubweir.amqp.types.format_codes import AmqpType
from hubweir.amqp.types.values import Array, Described, Long, Symbol, UInt, ULong
from hubweir.testing.frames import frame
from tests.conformance.conftest import Doors
from tests.conformance.ordinary_pace import OrdinaryPace
from tests.conformance.raw_client import RawClient
from tests.conformance.test_raw_queues import LOCK, annotations, delivery, message, refusal, send
from tests.conformance.test_raw_queues import client as client  # a fixture

Make = Callable[..., str]
pytestmark = pytest.mark.conformance
SESSION_FILTER = Symbol("com.microsoft:session-filter")


@pytest.mark.sb(39)
def test_a_queue_of_sessions_takes_the_empty_id_and_none_without_one(client: RawClient, make_queue: Make) -> None:
    queue = make_queue(requires_session=True)
    without, with_one = message(b"none"), message(b"empty", properties=Properties(group_id=""))
    refused, accepted = send(client, queue, without, with_one)
    assert (refusal(refused), accepted) == ("amqp:not-allowed", Accepted())


@pytest.mark.sb(86)
@pytest.mark.parametrize("key", ["s", ""])
def test_a_partition_key_that_equals_the_session_s_id_comes_back_and_none_is_added(
    client: RawClient, queue: str, key: str
) -> None:
    annotation = Symbol("x-opt-partition-key")
    properties = Properties(group_id=key)
    keyed = message(b"keyed", properties=properties, message_annotations={annotation: key})
    assert send(client, queue, keyed, message(b"plain", properties=properties)) == [Accepted(), Accepted()]
    client.receiver(queue, credit=2, **LOCK)
    first, second = annotations(delivery(client)), annotations(delivery(client))
    assert (first[annotation], annotation in second) == (key, False)


@pytest.mark.sb(74, 76, 78)
@pytest.mark.parametrize("descriptor", [None, ULong(0x0000_0013_7000_000C)], ids=["plain", "described"])
def test_a_session_is_granted_in_the_form_that_was_asked(
    doors: Doors, client: RawClient, make_queue: Make, descriptor: ULong | None
) -> None:
    queue = make_queue(requires_session=True)
    send(client, queue, message(b"x", properties=Properties(group_id="s")))

    def attach(by: RawClient, value: object) -> Attach:
        wanted = value if descriptor is None else Described(descriptor, value)
        source = Source(address=queue, filter={SESSION_FILTER: wanted})
        by.attach(queue, sends=False, source=source, properties={Symbol("com.microsoft:timeout"): UInt(1_000)}, **LOCK)
        return by.expect(Attach)

    answer = attach(client, None)
    assert answer.source is not None
    assert answer.source.filter == {SESSION_FILTER: "s" if descriptor is None else Described(descriptor, "s")}
    ticks = (answer.properties or {})[Symbol("com.microsoft:locked-until-utc")]
    assert type(ticks) in (int, Long)  # a long
    left_ms = int(str(ticks)) / 10_000 - 62_135_596_800_000 - time.time() * 1_000
    assert 55_000 < left_ms <= 60_000
    with doors.raw() as other:
        assert attach(other.trusted(), "s").source is None
        error = other.expect(Detach).error
        assert error is not None
        assert error.condition == "com.microsoft:session-cannot-be-locked"
        begin = time.monotonic()
        assert attach(other, None).source is None
        assert 0.9 < time.monotonic() - begin < 20  # of the minute that it would wait by itself
        error = other.expect(Detach).error
        assert error is not None
        assert error.condition == "com.microsoft:timeout"


@pytest.mark.sb(81, 82)
def test_the_end_of_a_session_s_lock_detaches_and_counts_what_was_delivered(
    doors: Doors, client: RawClient, make_queue: Make
) -> None:
    queue = make_queue(requires_session=True, lock_duration_ms=5_000)
    send(client, queue, *(message(body, properties=Properties(group_id="s")) for body in (b"1", b"2")))

    def accept(by: RawClient, credit: int) -> int:
        return by.receiver(queue, source=Source(address=queue, filter={SESSION_FILTER: "s"}), credit=credit, **LOCK)

    handle = accept(client, 1)
    came = delivery(client)
    detach = client.expect(Detach, seconds=10)
    assert detach.closed and detach.error is not None
    assert detach.error.condition == "com.microsoft:session-lock-lost"
    client.write(frame(Detach(handle=handle, closed=True)))
    with doors.raw() as other:
        accept(other.trusted(), 2)
        again, second = decode_message(delivery(other).payload), decode_message(delivery(other).payload)
        assert [each.body for each in (again, second)] == [DataBody((b"1",)), DataBody((b"2",))]
        assert [each.header and each.header.delivery_count for each in (again, second)] == [1, 0]
        # The old token by the management node, for its link is gone.
        lost = Message(
            properties=Properties(message_id="m"),
            application_properties={"operation": "com.microsoft:update-disposition"},
            body=ValueBody(
                {
                    "lock-tokens": Array(AmqpType.UUID, (UUID(bytes_le=came.performative.delivery_tag),)),
                    "disposition-status": "completed",
                    "session-id": "s",
                }
            ),
        )
        said = client.request(f"{queue}/$management", lost).application_properties or {}
        assert said["statusCode"] == 410
        assert said["errorCondition"] == "com.microsoft:session-lock-lost"


@pytest.mark.sb(77)
def test_who_waits_for_a_session_in_vain_is_refused_at_the_time_that_was_asked_for(
    client: RawClient, doors: Doors, make_queue: Make
) -> None:
    queue = make_queue(requires_session=True)
    with doors.raw() as other:
        handle = other.trusted().receiver(make_queue(), **LOCK)

        def exchange_flows() -> None:
            other.grant(handle, 0, echo=True)
            other.expect(Flow)

        for asked_ms in (0, 700, 2_000):
            properties = {Symbol("com.microsoft:timeout"): UInt(asked_ms)}
            source = Source(address=queue, filter={SESSION_FILTER: None})
            with OrdinaryPace(exchange_flows) as pace:
                begin = time.monotonic()
                error = client.refused(queue, sends=False, source=source, properties=properties, **LOCK)
                took_s = time.monotonic() - begin
            assert error.condition == "com.microsoft:timeout"
            assert asked_ms / 1_000 - 0.3 < took_s < asked_ms / 1_000 + 0.3 + 2 * pace.slowest_s


@pytest.mark.sb(77)
@pytest.mark.timeout(120)
def test_who_asks_for_a_session_for_longer_than_a_minute_waits_so_long(
    client: RawClient, make_queue: Make, measure: Callable[[int], int]
) -> None:
    """With --all the 70 seconds that clients ask for; else it is still asked when two have passed."""
    queue = make_queue(requires_session=True)
    source = Source(address=queue, filter={SESSION_FILTER: None})
    client.attach(queue, sends=False, source=source, properties={Symbol("com.microsoft:timeout"): UInt(70_000)}, **LOCK)
    if measure(2) == 1:
        assert client.none_of(Attach, seconds=2)
        return
    begin = time.monotonic()
    assert client.expect(Attach, seconds=80).source is None
    assert time.monotonic() - begin > 65
    error = client.expect(Detach).error
    assert error is not None and error.condition == "com.microsoft:timeout"
