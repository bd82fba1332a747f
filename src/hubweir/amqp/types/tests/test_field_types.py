"""What may stand in a field of each type, and how it is written."""

from typing import Any
from uuid import UUID

import pytest

from hubweir.amqp.types import field_types as of
from hubweir.amqp.types.encode import encode
from hubweir.amqp.types.field_types import FieldType, WrongType
from hubweir.amqp.types.format_codes import AmqpType
from hubweir.amqp.types.values import (
    Array,
    Byte,
    Described,
    Int,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)

SYMBOL = Symbol("s")
INTEGERS = [UByte(5), UShort(5), UInt(5), ULong(5), Byte(5), Short(5), Int(5), 5]
# One value of every type that a peer could put anywhere.
SAMPLES: list[Any] = [
    *INTEGERS,
    True,
    1.5,
    b"b",
    "s",
    SYMBOL,
    Timestamp(5),
    UUID(int=5),
    [],
    {},
    {"key": 1},
    {Symbol("key"): 1},
    {ULong(5): 1},
    {Symbol("key"): 1, 5: 1},
    Array(AmqpType.SYMBOL, (SYMBOL,)),
    Array(AmqpType.STRING, ("s",)),
    Array(AmqpType.NULL, ()),
    Described(ULong(5), []),
]
SYMBOL_KEYED: list[Any] = [{}, {Symbol("key"): 1}]
ACCEPTED: list[tuple[FieldType, list[Any]]] = [
    (of.BOOLEAN, [True]),
    (of.UBYTE, INTEGERS),
    (of.USHORT, INTEGERS),
    (of.UINT, INTEGERS),
    (of.ULONG, INTEGERS),
    (of.STRING, ["s"]),
    (of.SYMBOL, [SYMBOL]),
    (of.BINARY, [b"b"]),
    (of.TIMESTAMP, [Timestamp(5)]),
    (of.MAP, [*SYMBOL_KEYED, {"key": 1}, {ULong(5): 1}, {Symbol("key"): 1, 5: 1}]),
    (of.FIELDS, SYMBOL_KEYED),
    (of.NAMED, [*SYMBOL_KEYED, {"key": 1}]),
    (of.ANNOTATIONS, [*SYMBOL_KEYED, {ULong(5): 1}]),
    (of.APPLICATION_PROPERTIES, [{}, {"key": 1}]),
    (of.SYMBOLS, [SYMBOL, Array(AmqpType.SYMBOL, (SYMBOL,)), Array(AmqpType.NULL, ())]),
    (of.MESSAGE_ID, [*INTEGERS, "s", b"b", UUID(int=5)]),
]


def same(left: object, right: object) -> bool:
    return type(left) is type(right) and encode(left) == encode(right)


@pytest.mark.parametrize("field_type, accepted", ACCEPTED, ids=lambda value: getattr(value, "name", ""))
def test_a_field_takes_its_own_types_and_refuses_all_others(field_type: FieldType, accepted: list[Any]) -> None:
    for value in SAMPLES:
        if any(same(value, legal) for legal in accepted):
            field_type.read(value)
        else:
            with pytest.raises(WrongType):
                field_type.read(value)


@pytest.mark.parametrize("field_type, bits", [(of.UBYTE, 8), (of.USHORT, 16), (of.UINT, 32), (of.ULONG, 64)])
def test_an_integer_of_another_type_is_taken_up_to_the_range_of_the_field(field_type: FieldType, bits: int) -> None:
    assert field_type.read((1 << bits) - 1) == (1 << bits) - 1
    for value in (1 << bits, -1):
        with pytest.raises(WrongType):
            field_type.read(value)


def test_one_symbol_and_an_array_of_symbols_read_alike_and_are_written_as_an_array() -> None:
    assert of.SYMBOLS.read(SYMBOL) == of.SYMBOLS.read(Array(AmqpType.SYMBOL, (SYMBOL,))) == (SYMBOL,)
    out = bytearray()
    of.SYMBOLS.write(out, ("s",))
    assert bytes(out) == encode(Array(AmqpType.SYMBOL, (SYMBOL,)))
    of.SYMBOLS.write(out, ())
    assert out[-1:] == b"\x40"


def test_a_plain_name_is_read_as_a_symbol() -> None:
    [(name, value)] = of.NAMED.read({"key": "value"}).items()
    assert (type(name), name, value) == (Symbol, "key", "value")


@pytest.mark.parametrize("field_type", [of.FIELDS, of.NAMED, of.ANNOTATIONS])
def test_a_plain_name_is_written_as_a_symbol(field_type: FieldType) -> None:
    out = bytearray()
    field_type.write(out, {"key": "value"})
    assert bytes(out) == encode({Symbol("key"): "value"})


@pytest.mark.parametrize("value", [ULong(7), UInt(7), UUID(int=7), b"7", "7"])
def test_a_message_id_is_written_with_the_type_it_came_with(value: object) -> None:
    out = bytearray()
    of.MESSAGE_ID.write(out, of.MESSAGE_ID.read(value))
    assert bytes(out) == encode(value)


def test_a_plain_int_as_message_id_is_a_ulong() -> None:
    out = bytearray()
    of.MESSAGE_ID.write(out, 7)
    assert bytes(out) == encode(ULong(7))
    with pytest.raises(WrongType):
        of.MESSAGE_ID.read(-7)
