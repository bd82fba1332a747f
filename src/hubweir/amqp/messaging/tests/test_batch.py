"""Batches: the bytes that Azure's Python client 5.15 sends, and ours."""

import pytest

from hubweir.amqp.messaging.batch import BATCH_FORMAT, MESSAGE_FORMAT, pack_batch, unpack_batch
from hubweir.amqp.messaging.message import (
    DataBody,
    Header,
    Message,
    SequenceBody,
    ValueBody,
    body_bytes,
    decode_message,
    encode_message,
)
from hubweir.errors import DecodeError

# Captured from the client: events "one" and "two", the second with the application property k=v.
ONE = "005375a0036f6e65"
TWO = "005374c10702a1016ba10176 005375a00374776f"
NO_KEY = bytes.fromhex(f"005375a008 {ONE} 005375a014 {TWO}")
HEADER_AND_KEY = "005370c00705560140404040 005372c11b02a313782d6f70742d706172746974696f6e2d6b6579a103706b31"
WITH_KEY = bytes.fromhex(f"{HEADER_AND_KEY} 005375a034 {HEADER_AND_KEY} {ONE} 005375a040 {HEADER_AND_KEY} {TWO}")
ONE_EVENT = bytes.fromhex("005375a007005375a0027031")


def test_the_captured_batches_have_the_sizes_the_client_reported() -> None:
    assert (len(NO_KEY), len(WITH_KEY)) == (38, 170)


def test_a_batch_without_key_is_unpacked_and_packed_to_the_same_bytes() -> None:
    messages = unpack_batch(NO_KEY)
    assert messages == [bytes.fromhex(ONE), bytes.fromhex(TWO)]
    assert [body_bytes(decode_message(message)) for message in messages] == [b"one", b"two"]
    assert decode_message(messages[1]).application_properties == {"k": "v"}
    assert pack_batch(map(bytes, messages)) == NO_KEY
    assert unpack_batch(ONE_EVENT) == [bytes.fromhex("005375a0027031")]


def test_a_batch_with_key_carries_it_on_the_envelope_and_on_each_message() -> None:
    envelope = decode_message(WITH_KEY)
    assert envelope.header == Header(durable=True, priority=4)
    assert envelope.message_annotations == {"x-opt-partition-key": "pk1"}
    for message, body in zip(unpack_batch(WITH_KEY), [b"one", b"two"], strict=True):
        opened = decode_message(message)
        assert opened.message_annotations == {"x-opt-partition-key": "pk1"}
        assert opened.header is not None and opened.header.durable
        assert opened.body == DataBody((body,))


def test_we_pack_the_key_as_the_client_does() -> None:
    packed = pack_batch([b"x"], annotations={"x-opt-partition-key": "pk1"})
    assert packed == bytes.fromhex(HEADER_AND_KEY)[12:] + bytes.fromhex("005375a00178")


def test_large_and_small_messages_share_a_batch() -> None:
    messages = [encode_message(Message(body=DataBody((b"x" * size,)))) for size in (0, 1, 244, 245, 255, 70_000)]
    assert unpack_batch(pack_batch(messages)) == messages


def test_an_unpacked_message_is_a_view_into_the_payload() -> None:
    payload = bytearray(NO_KEY)
    (first, _) = unpack_batch(payload)
    payload[-len(NO_KEY) + 10] = ord("O")
    assert bytes(first[-3:]) == b"One"


def test_an_envelope_without_messages_is_an_empty_batch() -> None:
    assert unpack_batch(b"") == []
    assert pack_batch([]) == b""


@pytest.mark.parametrize("body", [ValueBody(b"x"), SequenceBody(([1],))])
def test_an_envelope_with_another_body_is_refused(body: ValueBody | SequenceBody) -> None:
    with pytest.raises(DecodeError, match="body that is not data"):
        unpack_batch(encode_message(Message(body=body)))


@pytest.mark.parametrize("payload", [NO_KEY, WITH_KEY])
def test_a_truncated_batch_has_whole_messages_or_is_refused(payload: bytes) -> None:
    whole = unpack_batch(payload)
    for length in range(len(payload)):
        try:
            messages = unpack_batch(payload[:length])
        except DecodeError:
            continue
        assert messages == whole[: len(messages)]


def test_the_format_numbers_are_those_of_the_clients() -> None:
    assert (MESSAGE_FORMAT, BATCH_FORMAT) == (0, 2147563264)
