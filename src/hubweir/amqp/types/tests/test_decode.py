"""Decoding: every legal form is read, everything else is a DecodeError within limits."""

import contextlib
import struct
import time
from collections.abc import Callable
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubweir.amqp.types.decode import (
    DEPTH_LIMIT,
    ENTRIES_LIMIT,
    UUID_KEYS_LIMIT,
    ZERO_WIDTH_LIMIT,
    decode,
)
from hubweir.amqp.types.format_codes import BY_CODE, AmqpType
from hubweir.amqp.types.values import (
    Array,
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Described,
    Float,
    Int,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)
from hubweir.errors import DecodeError

A_UUID = UUID("00112233-4455-6677-8899-aabbccddeeff")

# Every constructor by hand, so that the encoder is not the decoder's only witness.
LEGAL = [
    ("40", None),
    ("41", True),
    ("42", False),
    ("43", UInt(0)),
    ("44", ULong(0)),
    ("45", []),
    ("50ff", UByte(255)),
    ("51ff", Byte(-1)),
    ("5280", UInt(128)),
    ("5380", ULong(128)),
    ("5480", Int(-128)),
    ("5580", -128),
    ("5600", False),
    ("5601", True),
    ("60fffe", UShort(65534)),
    ("61fffe", Short(-2)),
    ("70fffffffe", UInt(2**32 - 2)),
    ("71fffffffe", Int(-2)),
    ("723fc00000", Float(1.5)),
    ("730001f600", Char("\U0001f600")),
    ("7401020304", Decimal32(b"\1\2\3\4")),
    ("80fffffffffffffffe", ULong(2**64 - 2)),
    ("81fffffffffffffffe", -2),
    ("823ff8000000000000", 1.5),
    ("83ffffffffffffffff", Timestamp(-1)),
    ("840102030405060708", Decimal64(b"\1\2\3\4\5\6\7\x08")),
    ("94" + "07" * 16, Decimal128(b"\7" * 16)),
    ("9800112233445566778899aabbccddeeff", A_UUID),
    ("a0020001", b"\0\1"),
    ("a102c3a9", "é"),
    ("a30178", Symbol("x")),
    ("b0000000020001", b"\0\1"),
    ("b100000002c3a9", "é"),
    ("b30000000178", Symbol("x")),
    ("c00100", []),
    ("c003024041", [None, True]),
    ("d00000000400000000", []),
    ("d000000006000000024041", [None, True]),
    ("c10100", {}),
    ("c10602a3016b5207", {Symbol("k"): UInt(7)}),
    ("d10000000900000002a3016b5207", {Symbol("k"): UInt(7)}),
    ("e00402500102", Array(AmqpType.UBYTE, (UByte(1), UByte(2)))),
    ("f00000000700000002500102", Array(AmqpType.UBYTE, (UByte(1), UByte(2)))),
    ("e0020040", Array(AmqpType.NULL, ())),
    ("e0020052", Array(AmqpType.UINT, ())),
    ("e00100", Array(AmqpType.NULL, ())),
    ("e0020341", Array(AmqpType.BOOLEAN, (True, True, True))),
    ("e00802c0020140020141", Array(AmqpType.LIST, ([None], [True]))),
    ("e00802e0020040020141", Array(AmqpType.ARRAY, (Array(AmqpType.NULL, ()), Array(AmqpType.BOOLEAN, (True,))))),
    ("00530740", Described(ULong(7), None)),
    ("0080000000000000000740", Described(ULong(7), None)),
    ("00a3016440", Described(Symbol("d"), None)),
    ("00530700530841", Described(ULong(7), Described(ULong(8), True))),
    ("e0050200530741", Array(AmqpType.BOOLEAN, (True, True), (ULong(7),))),
]


@pytest.mark.parametrize("encoded, value", LEGAL, ids=[pair[0] for pair in LEGAL])
def test_every_legal_form_is_read(encoded: str, value: object) -> None:
    data = bytes.fromhex(encoded)
    for buffer in (data, bytearray(data), memoryview(data)):
        found, position = decode(buffer)
        assert (found, type(found), position) == (value, type(value), len(data))


def test_the_legal_forms_above_cover_every_constructor() -> None:
    assert {int(encoded[:2], 16) for encoded, _ in LEGAL} == set(BY_CODE) | {0x00}


@pytest.mark.parametrize("encoded, value", LEGAL, ids=[pair[0] for pair in LEGAL])
def test_every_truncation_is_a_decode_error(encoded: str, value: object) -> None:
    data = bytes.fromhex(encoded)
    for length in range(len(data)):
        with pytest.raises(DecodeError, match="byte"):
            decode(data[:length])
        # The bytes are there, but end says that they are somebody else's.
        with pytest.raises(DecodeError, match="byte"):
            decode(data + data, 0, length)


def test_a_value_in_the_middle_is_read_from_start_to_the_position_after_it() -> None:
    assert decode(b"\x41\x52\x07\x40", 1) == (7, 3)


@pytest.mark.parametrize("code", sorted(set(range(256)) - set(BY_CODE) - {0}))
def test_a_byte_that_is_no_constructor_is_refused(code: int) -> None:
    with pytest.raises(DecodeError, match=f"{code:#04x}"):
        decode(bytes([code]) + bytes(40))


@pytest.mark.parametrize(
    "encoded, complaint",
    [
        ("5602", "a boolean holds 2"),
        ("730000d800", "no Unicode character"),
        ("7300110000", "no Unicode character"),
        ("a102c328", "not UTF-8 at byte 2"),
        ("a101ff", "not UTF-8"),
        ("a301e9", "not ASCII"),
        ("c00101", "1 entries cannot stand in 0 bytes"),
        ("c0024040", "64 entries cannot stand in 1 bytes"),
        ("d0000000040fffffff", "entries cannot stand in 0 bytes"),
        ("d0ffffffff00000001", "the bytes end"),
        ("f0ffffffff00000001", "the bytes end"),
        ("b0ffffffff00", "the bytes end"),
        ("e003ff5001", "255 elements cannot stand in 1 bytes"),
        ("e00300ff01", "no type has the constructor 0xff"),
        ("c1020140", "odd number"),
        ("c1030240", "the bytes end"),
        ("c003014040", "ends at byte 4 where its size says 5"),
        ("c00401c0020140", "the bytes end"),
        ("e00401500102", "ends at byte 5 where its size says 6"),
        ("c10704520140530140", "stands twice"),
        ("c103024540", "not a scalar"),
        ("c10502c0010040", "not a scalar"),
        ("004540", "it is a symbol or a ulong"),
        ("00005301400040", "it is a symbol or a ulong"),
        ("00c0010040", "it is a symbol or a ulong"),
    ],
)
def test_a_malformed_value_is_refused_with_its_reason(encoded: str, complaint: str) -> None:
    with pytest.raises(DecodeError, match=complaint):
        decode(bytes.fromhex(encoded))


def test_lists_nest_up_to_the_limit_and_no_deeper() -> None:
    def nested(depth: int) -> bytes:
        data = b"\x40"
        for _ in range(depth):
            data = b"\xd0" + struct.pack(">II", len(data) + 4, 1) + data
        return data

    value, _ = decode(nested(DEPTH_LIMIT))
    for _ in range(DEPTH_LIMIT):
        (value,) = value
    assert value is None
    with pytest.raises(DecodeError, match="deeper than 32"):
        decode(nested(DEPTH_LIMIT + 1))


def test_descriptors_nest_up_to_the_limit_and_no_deeper() -> None:
    assert type(decode(b"\x00\x53\x01" * DEPTH_LIMIT + b"\x40")[0]) is Described
    with pytest.raises(DecodeError, match="deeper than 32"):
        decode(b"\x00\x53\x01" * (DEPTH_LIMIT + 1) + b"\x40")
    with pytest.raises(DecodeError, match="deeper than 32"):
        decode(array_of(1, b"\x00\x53\x01" * (DEPTH_LIMIT + 1) + b"\x41", b""))


def array_of(count: int, constructor: bytes, elements: bytes) -> bytes:
    return b"\xf0" + struct.pack(">II", 4 + len(constructor) + len(elements), count) + constructor + elements


def list_of(count: int, entries: bytes) -> bytes:
    return b"\xd0" + struct.pack(">II", 4 + len(entries), count) + entries


def map_of(count: int, entries: bytes) -> bytes:
    return b"\xd1" + struct.pack(">II", 4 + len(entries), count) + entries


def test_a_list_has_the_most_entries_allowed_and_not_one_more() -> None:
    assert len(decode(list_of(ENTRIES_LIMIT, b"\x40" * ENTRIES_LIMIT))[0]) == ENTRIES_LIMIT
    with pytest.raises(DecodeError, match="more than 4096"):
        decode(list_of(ENTRIES_LIMIT + 1, b"\x40" * (ENTRIES_LIMIT + 1)))


def test_a_map_has_the_most_keys_allowed_and_not_one_more() -> None:
    def keys(count: int) -> bytes:
        return b"".join(b"\x60" + struct.pack(">H", key) + b"\x40" for key in range(count))

    assert len(decode(map_of(2 * ENTRIES_LIMIT, keys(ENTRIES_LIMIT)))[0]) == ENTRIES_LIMIT
    with pytest.raises(DecodeError, match="more than 4096"):
        decode(map_of(2 * ENTRIES_LIMIT + 2, keys(ENTRIES_LIMIT + 1)))


@pytest.mark.parametrize("code", [0x40, 0x41, 0x42, 0x43, 0x44, 0x45])
def test_an_array_of_elements_without_bytes_stops_at_the_limit(code: int) -> None:
    value, _ = decode(array_of(ZERO_WIDTH_LIMIT, bytes([code]), b""))
    assert len(value.items) == ZERO_WIDTH_LIMIT
    with pytest.raises(DecodeError, match="more than 1024"):
        decode(array_of(ZERO_WIDTH_LIMIT + 1, bytes([code]), b""))


def test_elements_without_bytes_are_counted_over_all_arrays_of_a_value() -> None:
    half = array_of(ZERO_WIDTH_LIMIT // 2, b"\x40", b"")
    assert len(decode(list_of(2, half * 2))[0]) == 2
    with pytest.raises(DecodeError, match="more than 1024"):
        decode(list_of(3, half * 2 + array_of(1, b"\x40", b"")))
    with pytest.raises(DecodeError, match="more than 1024"):
        decode(array_of(5, b"\xe0", b"\x02\xff\x40" * 5))


def test_an_array_with_bytes_may_be_longer_than_a_list() -> None:
    value, _ = decode(array_of(10_000, b"\x50", bytes(10_000)))
    assert len(value.items) == 10_000


@pytest.mark.parametrize(
    "bomb",
    [
        array_of(0xFFFF_FFFF, b"\x40", b""),
        array_of(0xFFFF_FFFF, b"\x50", b"\x01"),
        list_of(0xFFFF_FFFF, b"\x40"),
        map_of(0xFFFF_FFFE, b"\x40\x40"),
        bytes(262_000),
        b"\x00" * 262_000 + b"\x40",
        b"\x00\x53\x01" * 87_000 + b"\x40",
        (b"\xd0" + struct.pack(">II", 200_000, 1)) * 20_000,
        b"\xe0\xff\xff\xe0" * 65_000,
        array_of(60_000, b"\xe0", b"\x02\xff\x40" * 60_000),
    ],
    ids=["nulls", "bytes", "list", "map", "zeros", "zeros-null", "descriptors", "lists", "arrays", "arrays-of-nulls"],
)
def test_a_bomb_is_refused_at_once(bomb: bytes) -> None:
    begun = time.process_time()
    with pytest.raises(DecodeError):
        decode(bomb)
    assert time.process_time() - begun < 1


def test_uuid_keys_that_share_a_hash_cannot_pile_up() -> None:
    def keys(count: int) -> bytes:
        # Python reduces an int by 2**61 - 1 to hash it, so these keys all hash alike.
        return b"".join(b"\x98" + ((2**61 - 1) * number).to_bytes(16, "big") + b"\x40" for number in range(count))

    assert len(decode(map_of(2 * UUID_KEYS_LIMIT, keys(UUID_KEYS_LIMIT)))[0]) == UUID_KEYS_LIMIT
    with pytest.raises(DecodeError, match="uuid"):
        decode(map_of(2 * UUID_KEYS_LIMIT + 2, keys(UUID_KEYS_LIMIT + 1)))


def only_decode_errors(read: Callable[[bytes], object], data: bytes) -> None:
    with contextlib.suppress(DecodeError):
        read(data)


CONSTRUCTORS = [0, *BY_CODE]
ALMOST_LEGAL = st.lists(
    st.one_of(
        st.sampled_from(CONSTRUCTORS).map(lambda code: bytes([code])),
        st.integers(0, 9).map(lambda number: bytes([number])),
        st.integers(0, 40).map(lambda number: struct.pack(">I", number)),
        st.binary(max_size=4),
    ),
    max_size=40,
).map(b"".join)


@settings(max_examples=400, deadline=None)
@given(ALMOST_LEGAL)
def test_bytes_of_any_kind_raise_nothing_but_decode_errors(data: bytes) -> None:
    only_decode_errors(decode, data)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_changed_byte_in_a_legal_value_raises_nothing_but_decode_errors(data: st.DataObject) -> None:
    original = bytearray.fromhex(data.draw(st.sampled_from(LEGAL))[0])
    original[data.draw(st.integers(0, len(original) - 1))] = data.draw(st.integers(0, 255))
    only_decode_errors(decode, bytes(original))
