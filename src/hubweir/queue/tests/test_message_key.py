"""The keys that are read of records are those that the kernel finds in deliveries."""

from __future__ import annotations

from array import array
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from hubweir.amqp.types.values import ULong
from hubweir.kernels import find_message_keys, hash_key
from hubweir.kernels.contract import K_HASH, K_WHERE, KEY_MESSAGE, KEY_NONE, KEY_WIDTH
from hubweir.queue.message_key import content_of_id, keys_in
from hubweir.queue.tests.conftest import message, run_of

TEXTS = st.sampled_from([None, "", "a", "häng", "x" * 128])
IDS = st.sampled_from([None, "id", "y" * 128, b"id", UUID(int=5), ULong(0), ULong(7), ULong(2**63)])


@given(st.lists(st.tuples(IDS, TEXTS, TEXTS), min_size=1, max_size=6), st.booleans())
def test_records_say_the_keys_of_their_messages(parts: list[tuple[object, str, str]], takes_ids: bool) -> None:
    """What has a session id and another partition key is never stored, and is left out here."""
    messages = [
        message("body", message_id=each, session=session, key=key)
        for each, session, key in parts
        if session is None or key in (None, session)
    ]
    rows, at = array("q"), 0
    for each in messages:
        rows.extend((0, at, len(each), 0, 0))
        at += len(each)
    table = array("q", bytes(8 * KEY_WIDTH * len(messages)))
    find_message_keys(b"".join(messages), rows, 0, len(messages), takes_ids, 1, table)
    found = keys_in(run_of(*messages, size=4), takes_ids=takes_ids)
    assert [KEY_NONE if key is None else KEY_MESSAGE for key in found] == list(table[K_WHERE::KEY_WIDTH])
    assert [0 if key is None else hash_key(key) for key in found] == list(table[K_HASH::KEY_WIDTH])


def test_the_first_of_session_id_partition_key_and_message_id_is_the_key() -> None:
    run = run_of(
        message("a", message_id="id", session="s", key="s"), message("b", message_id="id", key="k"),
        message("c", message_id="id"), message("d"), message("e", session=""), message("f", message_id="id", key=""),
    )  # fmt: skip
    assert keys_in(run, takes_ids=True) == [b"s", b"k", b"id", None, b"", b"id"]
    assert keys_in(run, takes_ids=False) == [b"s", b"k", None, None, b"", None]


def test_a_partition_key_counts_as_a_binary_too() -> None:
    """As the official Python client sends the one that it received."""
    assert keys_in(run_of(message("a", key=b"k"), message("b", key="k")), takes_ids=False) == [b"k", b"k"]  # type: ignore[arg-type]


def test_an_id_has_one_content_however_it_is_encoded() -> None:
    def of(encoded: bytes) -> bytes:
        return content_of_id(encoded, 0, len(encoded))

    assert of(b"\xa1\x02ab") == of(b"\xb1\x00\x00\x00\x02ab") == of(b"\xa0\x02ab") == b"ab"
    assert of(b"\x53\x07") == of(b"\x80" + bytes(7) + b"\x07") == bytes(7) + b"\x07" and of(b"\x44") == bytes(8)
