import pytest

from hubweir.amqp.messaging.message import DataBody, decode_message
from hubweir.client.event_batch import KEY_LIMIT_CHARACTERS, EventBatch, batches_of, envelope_head
from hubweir.errors import ARGUMENT_OUT_OF_RANGE, MESSAGE_TOO_LARGE, ServiceError


def bodies_in(payload: bytes) -> list[bytes]:
    """The bodies of the events in an envelope."""
    envelope = decode_message(payload).body
    assert isinstance(envelope, DataBody)
    events = [decode_message(part).body for part in envelope.parts]
    return [b"".join(body.parts) for body in events if isinstance(body, DataBody)]


def test_bytes_are_those_of_the_official_client() -> None:
    # Contract vector: what azure-eventhub 5.15 writes for the events `one`, and `two` with the property k=v.
    batch = EventBatch(1_000)
    assert batch.try_add(b"one")
    assert batch.try_add(b"two", {"k": "v"})
    assert batch.payload().hex() == (
        "005375a008005375a0036f6e65" + "005375a014005374c10702a1016ba10176005375a00374776f"
    )
    assert batch.size_bytes == len(batch.payload()) == 38


def test_key_stands_once_in_the_envelope() -> None:
    batch = EventBatch(1_000, partition_key="pk1")
    assert batch.try_add(b"one")
    assert batch.payload().startswith(bytes.fromhex("005372c11b02a313782d6f70742d706172746974696f6e2d6b6579a103706b31"))
    assert bodies_in(batch.payload()) == [b"one"]


def test_batch_takes_events_up_to_the_very_limit_and_not_one_byte_more() -> None:
    room = len(b"\x00\x53\x75\xa0\x00" + b"\x00\x53\x75\xa0\x00") + 100
    assert EventBatch(room).try_add(bytes(100))
    assert not EventBatch(room - 1).try_add(bytes(100))


def test_refused_event_leaves_the_batch_as_it_was() -> None:
    batch = EventBatch(64)
    assert batch.try_add(b"small")
    before = batch.payload()
    assert not batch.try_add(bytes(64))
    assert (batch.payload(), batch.count) == (before, 1)


def test_bodies_are_cut_into_batches_in_order() -> None:
    bodies = [b"%03d" % number * 100 for number in range(10)]
    batches = list(batches_of(bodies, 1_000))
    assert [batch.count for batch in batches] == [3, 3, 3, 1]
    assert [body for batch in batches for body in bodies_in(batch.payload())] == bodies


def test_body_that_fits_no_batch_is_refused_with_the_limit_in_the_text() -> None:
    with pytest.raises(ServiceError, match="limit of 1000 bytes") as refused:
        list(batches_of([bytes(2_000)], 1_000))
    assert refused.value.condition is MESSAGE_TOO_LARGE


def test_key_may_have_128_characters_and_not_129() -> None:
    assert EventBatch(1_000, partition_key="k" * KEY_LIMIT_CHARACTERS).try_add(b"x")
    with pytest.raises(ServiceError, match="129 characters") as refused:
        EventBatch(1_000, partition_key="k" * (KEY_LIMIT_CHARACTERS + 1))
    assert refused.value.condition is ARGUMENT_OUT_OF_RANGE


def test_a_payload_is_the_envelopes_head_and_the_events() -> None:
    batch = EventBatch(10_000, partition_key="k")
    assert batch.try_add(b"a") and batch.try_add(b"b")
    assert batch.payload() == envelope_head("k") + batch.events()
    assert envelope_head(None) == b"" and EventBatch(100).payload() == b""
    assert bodies_in(envelope_head("k", {"x-more": 1}) + batch.events()) == [b"a", b"b"]
