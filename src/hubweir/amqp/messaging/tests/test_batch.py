"""Batches: the bytes that Azure's Python client 5.15 sends, and ours."""

from hubweir.amqp.messaging.batch import BATCH_FORMAT, MESSAGE_FORMAT, pack_batch
from hubweir.amqp.messaging.message import (
    DataBody,
    Header,
    Message,
    decode_message,
    encode_message,
)

# Captured from the client: events "one" and "two", the second with the application property k=v.
ONE = "005375a0036f6e65"
TWO = "005374c10702a1016ba10176 005375a00374776f"
NO_KEY = bytes.fromhex(f"005375a008 {ONE} 005375a014 {TWO}")
HEADER_AND_KEY = "005370c00705560140404040 005372c11b02a313782d6f70742d706172746974696f6e2d6b6579a103706b31"
WITH_KEY = bytes.fromhex(f"{HEADER_AND_KEY} 005375a034 {HEADER_AND_KEY} {ONE} 005375a040 {HEADER_AND_KEY} {TWO}")
ONE_EVENT = bytes.fromhex("005375a007005375a0027031")


def unpacked(payload: bytes) -> list[bytes]:
    """The messages in an envelope: each is one data section of its body."""
    body = decode_message(payload).body
    assert isinstance(body, DataBody)
    return list(body.parts)


def test_the_captured_batches_have_the_sizes_the_client_reported() -> None:
    assert (len(NO_KEY), len(WITH_KEY)) == (38, 170)


def test_a_batch_without_key_is_unpacked_and_packed_to_the_same_bytes() -> None:
    messages = unpacked(NO_KEY)
    assert messages == [bytes.fromhex(ONE), bytes.fromhex(TWO)]
    assert [decode_message(message).body for message in messages] == [DataBody((b"one",)), DataBody((b"two",))]
    assert decode_message(messages[1]).application_properties == {"k": "v"}
    assert pack_batch(messages) == NO_KEY
    assert unpacked(ONE_EVENT) == [bytes.fromhex("005375a0027031")]


def test_a_batch_with_key_carries_it_on_the_envelope_and_on_each_message() -> None:
    envelope = decode_message(WITH_KEY)
    assert envelope.header == Header(durable=True, priority=4)
    assert envelope.message_annotations == {"x-opt-partition-key": "pk1"}
    for message, body in zip(unpacked(WITH_KEY), [b"one", b"two"], strict=True):
        opened = decode_message(message)
        assert opened.message_annotations == {"x-opt-partition-key": "pk1"}
        assert opened.header is not None and opened.header.durable
        assert opened.body == DataBody((body,))


def test_we_pack_the_key_as_the_client_does() -> None:
    packed = pack_batch([b"x"], annotations={"x-opt-partition-key": "pk1"})
    assert packed == bytes.fromhex(HEADER_AND_KEY)[12:] + bytes.fromhex("005375a00178")


def test_large_and_small_messages_share_a_batch() -> None:
    messages = [encode_message(Message(body=DataBody((b"x" * size,)))) for size in (0, 1, 244, 245, 255, 70_000)]
    assert unpacked(pack_batch(messages)) == messages


def test_an_envelope_without_messages_is_an_empty_batch() -> None:
    assert pack_batch([]) == b""


def test_the_format_numbers_are_those_of_the_clients() -> None:
    assert (MESSAGE_FORMAT, BATCH_FORMAT) == (0, 2147563264)
