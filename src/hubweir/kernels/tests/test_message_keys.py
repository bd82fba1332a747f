"""What chooses the fragments of messages, found by both twins alike; an envelope's messages go to one fragment."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubweir.errors import KernelRefusal
from hubweir.kernels.contract import (
    BATCH_FORMAT,
    K_HASH,
    K_LENGTH,
    K_START,
    K_WHERE,
    KEY_MALFORMED,
    KEY_MESSAGE,
    KEY_NONE,
    KEY_SCATTERED,
    KEY_WIDTH,
)
from hubweir.kernels.keys.keys import hash_key
from hubweir.kernels.tests import legal_bytes as legal
from hubweir.kernels.tests.legal_bytes import annotations, compound, data_section, envelope, section, string, table
from hubweir.kernels.tests.test_check_messages import properties
from hubweir.kernels.tests.test_keys import deliveries, grouped_ids
from hubweir.kernels.tests.test_twins import MANY, SEEDS, agreed

BODY = data_section(b"body")
NULL = b"\x40"
ID = string("id")


def keyed(key: str, **fields: bytes) -> bytes:
    return annotations({"x-opt-partition-key": string(key)}) + properties(**fields) + BODY


def key_rows(
    kernels: SimpleNamespace, *payloads: bytes, message_format: int = 0, takes_ids: bool = False, fragments: int = 16
) -> list[tuple[int, int]]:
    """K_WHERE and K_HASH of each delivery."""
    data, rows = deliveries(*((message_format, payload) for payload in payloads))
    keys = table(len(payloads), KEY_WIDTH)
    without, refused = kernels.find_message_keys(data, rows, 0, len(payloads), takes_ids, fragments, keys)
    found = list(zip(keys[K_WHERE::KEY_WIDTH], keys[K_HASH::KEY_WIDTH], strict=True))
    wheres = [where for where, _ in found]
    assert without == wheres.count(KEY_NONE)
    assert refused == wheres.count(KEY_MALFORMED) + wheres.count(KEY_SCATTERED)
    assert not any(keys[K_START::KEY_WIDTH]) and not any(keys[K_LENGTH::KEY_WIDTH])
    return found


def of(key: bytes) -> tuple[int, int]:
    return KEY_MESSAGE, hash_key(key)


def test_a_session_comes_first_then_the_partition_key_then_the_id_where_it_counts(kernels: SimpleNamespace) -> None:
    session = string("s")
    found = key_rows(
        kernels,
        keyed("s", group_id=session, message_id=ID), keyed("k", message_id=ID), properties(message_id=ID) + BODY, BODY,
        keyed("k", group_id=NULL), properties(group_id=string("")), keyed("", message_id=ID),
    )  # fmt: skip
    none = (KEY_NONE, 0)
    assert found == [of(b"s"), of(b"k"), none, none, of(b"k"), of(b""), none]
    with_ids = [properties(message_id=ID) + BODY, keyed("k", message_id=ID), keyed("", message_id=ID), BODY]
    assert key_rows(kernels, *with_ids, takes_ids=True) == [of(b"id"), of(b"k"), of(b"id"), none]


def test_a_partition_key_has_one_fragment_as_a_string_and_as_a_binary(kernels: SimpleNamespace) -> None:
    ways = (string("key"), string("key", wide=True), b"\xa0\x03key", b"\xb0\0\0\0\x03key")
    found = key_rows(kernels, *(annotations({"x-opt-partition-key": each}) + BODY for each in ways))
    assert found == [of(b"key")] * 4


def test_an_id_has_one_key_however_it_is_encoded(kernels: SimpleNamespace) -> None:
    uuid = bytes(range(16))
    ids = [
        (string("id"), b"id"), (string("id", wide=True), b"id"), (b"\xa0\x02id", b"id"), (b"\x98" + uuid, uuid),
        (b"\x53\x07", bytes(7) + b"\x07"), (b"\x80" + bytes(7) + b"\x07", bytes(7) + b"\x07"), (b"\x44", bytes(8)),
        (b"\x80" + bytes(range(1, 9)), bytes(range(1, 9))), (string(""), b""),
    ]  # fmt: skip
    found = key_rows(kernels, *(properties(message_id=each) for each, _ in ids), takes_ids=True)
    assert found == [of(key) for _, key in ids]
    assert key_rows(kernels, properties(message_id=NULL), takes_ids=True) == [(KEY_NONE, 0)]


def test_messages_of_an_envelope_go_to_one_fragment_or_nowhere(kernels: SimpleNamespace) -> None:
    keys = [f"k{number}" for number in range(400)]
    here = [key for key in keys if abs(hash_key(key.encode())) % 16 == 3]
    there = next(key for key in keys if abs(hash_key(key.encode())) % 16 == 4)
    together, apart = [BODY, keyed(here[0]), BODY, keyed(here[1])], [keyed(here[0]), keyed(there), keyed(here[0])]
    found = key_rows(
        kernels, envelope(together), envelope(apart), envelope([BODY, BODY], key="envelope"), envelope([]),
        message_format=BATCH_FORMAT,
    )  # fmt: skip
    assert found == [of(here[0].encode()), (KEY_SCATTERED, 0), (KEY_NONE, 0), (KEY_NONE, 0)]
    assert key_rows(kernels, envelope(apart), message_format=BATCH_FORMAT, fragments=1) == [of(here[0].encode())]
    bad = annotations({"x-opt-partition-key": b"\x54\x01"})
    broken = [envelope([*apart, bad]), envelope([bad, *apart])]
    assert key_rows(kernels, *broken, message_format=BATCH_FORMAT) == [(KEY_MALFORMED, 0)] * 2


@pytest.mark.parametrize(
    "message",
    [
        b"\x00\x53\x75", properties(message_id=b"\x41"), properties(group_id=b"\x54\x01"),
        annotations({"x-opt-partition-key": b"\x54\x01"}), annotations({"x-opt-via-partition-key": b"\x54\x01"}),
        section(0x73, compound(0xC0, [NULL] * 14)),
    ],
)  # fmt: skip
def test_a_message_whose_keys_cannot_be_read_has_none(kernels: SimpleNamespace, message: bytes) -> None:
    assert key_rows(kernels, BODY, message, takes_ids=True) == [(KEY_NONE, 0), (KEY_MALFORMED, 0)]
    assert key_rows(kernels, BODY, message_format=3) == [(KEY_MALFORMED, 0)]


def test_scattered_deliveries_stand_behind_all_fragments(kernels: SimpleNamespace) -> None:
    apart = envelope([keyed(f"k{number}") for number in range(9)])
    data, rows = deliveries((BATCH_FORMAT, apart), (0, keyed("k1")), (0, b"x"), (0, BODY))
    keys = table(4, KEY_WIDTH)
    assert kernels.find_message_keys(data, rows, 0, 4, False, 2, keys) == (1, 2)
    groups = grouped_ids(kernels, rows, keys, [1], 2)
    assert groups[2] == [100, 102] and sorted(groups[0] + groups[1]) == [101, 103] and 103 in groups[1]


def test_rows_in_the_middle_of_a_table_are_found_and_bad_calls_refused(kernels: SimpleNamespace) -> None:
    data, rows = deliveries(*((0, keyed(f"k{number}")) for number in range(4)))
    keys = table(3, KEY_WIDTH)
    assert kernels.find_message_keys(data, rows, 1, 3, False, 16, keys) == (0, 0)
    assert [hash_key(b"k1"), hash_key(b"k2")] == list(keys[K_HASH : 2 * KEY_WIDTH : KEY_WIDTH])
    assert keys[2 * KEY_WIDTH :] == table(1, KEY_WIDTH)
    for first, last, fragments in ((0, 4, 16), (2, 1, 16), (0, 5, 16), (0, 1, 0)):
        with pytest.raises(KernelRefusal):
            kernels.find_message_keys(data, rows, first, last, False, fragments, keys)


def random_keyed(rng: Random) -> bytes:
    """A message with some of what chooses fragments, of any type and width."""
    values = [NULL, string("a"), string("bb", wide=True), string(""), b"\xa0\x01b", b"\x44", b"\x53\x09", b"\x54\x01"]
    values += [b"\x98" + rng.randbytes(16), b"\x80" + rng.randbytes(8), legal.random_value(rng)]
    fields = {name: rng.choice(values) for name in ("message_id", "group_id") if rng.random() < 0.6}
    parts = [properties(**fields)] if fields else []
    names = ["x-opt-partition-key", "x-opt-via-partition-key", "x-other"]
    parts += [annotations({name: rng.choice(values[:4]) for name in names if rng.random() < 0.5})]
    parts += [BODY] * rng.randrange(2)
    rng.shuffle(parts)
    return b"".join(parts)


@MANY
@given(seed=SEEDS, takes_ids=st.booleans(), fragments=st.sampled_from([1, 2, 3, 16]))
def test_the_twins_agree(compiled: SimpleNamespace, seed: int, takes_ids: bool, fragments: int) -> None:
    rng = Random(seed)
    payloads = []
    for _ in range(rng.randrange(1, 5)):
        if rng.random() < 0.5:
            payloads.append((0, random_keyed(rng)))
        else:
            payloads.append((BATCH_FORMAT, envelope([random_keyed(rng) for _ in range(rng.randrange(4))])))
    if rng.random() < 0.4:
        payloads = [(each, legal.mutated(rng, payload)) for each, payload in payloads]
    data, rows = deliveries(*payloads)
    keys = table(len(payloads), KEY_WIDTH)
    agreed(compiled, "find_message_keys", data, rows, 0, len(payloads), takes_ids, fragments, keys)
