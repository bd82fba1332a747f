"""Composites: written in one strict form, read in every legal one."""

from typing import ClassVar

import pytest

from hubweir.amqp.types.composite import (
    Composite,
    CompositeTable,
    amqp_field,
    composite,
    composite_type,
    encode_composite,
    read_composite,
)
from hubweir.amqp.types.decode import decode
from hubweir.amqp.types.encode import encode, encode_into
from hubweir.amqp.types.field_types import BOOLEAN, STRING, SYMBOLS, UINT, FieldType
from hubweir.amqp.types.values import Described, Symbol, UInt, ULong
from hubweir.errors import DecodeError, EncodeError


@composite
class Lamp(Composite):
    """A composite with every kind of field."""

    CODE: ClassVar[int] = 0xE1
    NAME: ClassVar[str] = "test:lamp:list"
    colour: str | None = amqp_field(STRING, default=None)
    watts: int = amqp_field(UINT)
    lit: bool = amqp_field(BOOLEAN, default=True)
    tags: tuple[Symbol, ...] | None = amqp_field(SYMBOLS, default=None)


@composite
class Nothing(Composite):
    """A composite without fields."""

    CODE: ClassVar[int] = 0xE2
    NAME: ClassVar[str] = "test:nothing:list"


@composite
class Room(Composite):
    """A composite that holds others."""

    CODE: ClassVar[int] = 0xE3
    NAME: ClassVar[str] = "test:room:list"
    thing: Lamp | Nothing | None = amqp_field(composite_type(Lamp, Nothing), default=None)


TABLE: CompositeTable[Lamp | Nothing | Room] = CompositeTable("thing", (Lamp, Nothing, Room))


def test_a_table_of_fields_comes_out_of_the_declaration() -> None:
    assert [(field.name, field.type, field.mandatory, field.default) for field in Lamp.FIELDS] == [
        ("colour", STRING, False, None),
        ("watts", UINT, True, None),
        ("lit", BOOLEAN, False, True),
        ("tags", SYMBOLS, False, None),
    ]


def test_all_fields_are_written_with_trailing_nulls_kept() -> None:
    assert encode_composite(Lamp(watts=60)).hex() == "0053e1" + "c00604" + "40523c4140"


def test_a_composite_without_fields_is_written_as_an_empty_list() -> None:
    assert encode_composite(Nothing()).hex() == "0053e245"


def test_a_composite_that_does_not_fit_the_narrow_list_is_written_as_the_wide_one() -> None:
    def code(length: int) -> int:
        return encode_composite(Lamp(watts=1, colour="x" * length))[3]

    # 254 bytes of fields: 2 + 248 for the colour, 2 for watts, 1 each for lit and tags
    assert (code(248), code(249)) == (0xC0, 0xD0)
    assert TABLE.decode(encode_composite(Lamp(watts=1, colour="x" * 70_000)))[0] == Lamp(watts=1, colour="x" * 70_000)


LAMP = Lamp(watts=60, lit=True)
DESCRIPTORS = ["0053e1", "0080" + "00000000000000e1", "00a30e" + b"test:lamp:list".hex()]
DESCRIPTORS.append("00b30000000e" + b"test:lamp:list".hex())
LISTS = ["c0040240523c", "c00604" + "40523c4140", "c00a0440" + "700000003c" + "5601" + "40"]
LISTS += ["d00000000900000004" + "40523c4140", "c0050340" + "523c" + "41", "c0050340" + "553c" + "40"]


@pytest.mark.parametrize("descriptor", DESCRIPTORS)
@pytest.mark.parametrize("fields", LISTS)
def test_every_legal_form_of_a_composite_is_read(descriptor: str, fields: str) -> None:
    data = bytes.fromhex(descriptor + fields)
    assert TABLE.decode(b"\x40" + data + b"payload", 1) == (LAMP, len(data) + 1)
    assert TABLE.read(decode(data)[0]) == LAMP
    for length in range(len(data)):
        with pytest.raises(DecodeError):
            TABLE.decode(data[:length])


def test_list0_is_read_where_nothing_is_mandatory() -> None:
    assert TABLE.decode(bytes.fromhex("0053e345"))[0] == Room()
    assert TABLE.decode(bytes.fromhex("0053e2c00100"))[0] == Nothing()


@pytest.mark.parametrize(
    "fields, complaint",
    [
        ([], "test:lamp:list field watts is mandatory and missing"),
        (["red", None], "test:lamp:list field watts is mandatory and missing"),
        ([None, "60"], "test:lamp:list field watts holds a string; it takes uint"),
        ([b"red", UInt(60)], "test:lamp:list field colour holds a binary; it takes string"),
        ([None, UInt(60), UInt(1)], "test:lamp:list field lit holds a uint; it takes boolean"),
        ([None, 1 << 32], "field watts holds a long; it takes uint"),
        ([None, UInt(60), True, None, None], "test:lamp:list has 5 fields; it has at most 4"),
        ({}, "test:lamp:list holds a map, not a list"),
        (None, "test:lamp:list holds a null, not a list"),
    ],
)
def test_an_error_names_the_composite_and_the_field(fields: object, complaint: str) -> None:
    with pytest.raises(DecodeError, match=complaint):
        read_composite(Lamp, fields)
    with pytest.raises(DecodeError, match=complaint):
        TABLE.decode(encode(Described(ULong(Lamp.CODE), fields)))


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        Described(ULong(0xE9), []),
        Described(Symbol("test:other:list"), []),
        Described("test:lamp:list", [None, UInt(1)]),
        Described(UInt(Lamp.CODE), [None, UInt(1)]),
    ],
    ids=repr,
)
def test_what_is_not_in_the_table_is_refused(value: object) -> None:
    with pytest.raises(DecodeError, match="stands where a thing is needed"):
        TABLE.read(value)
    with pytest.raises(DecodeError, match="stands where a thing is needed"):
        TABLE.decode(encode(value))


def test_a_composite_inside_another_is_read_and_written() -> None:
    room = Room(thing=LAMP)
    assert TABLE.decode(encode_composite(room))[0] == room
    with pytest.raises(DecodeError, match="test:lamp:list field watts"):
        TABLE.decode(encode(Described(ULong(Room.CODE), [Described(ULong(Lamp.CODE), [])])))
    with pytest.raises(DecodeError, match="test:room:list field thing holds a described; it takes test:lamp:list or"):
        TABLE.decode(encode(Described(ULong(Room.CODE), [Described(ULong(Room.CODE), [])])))
    with pytest.raises(DecodeError, match="test:room:list field thing holds a long"):
        TABLE.decode(encode(Described(ULong(Room.CODE), [5])))


def test_a_place_for_composites_may_let_other_values_through() -> None:
    kept = FieldType("anything", lambda value: value, encode_into)
    place = composite_type(Lamp, otherwise=kept)
    assert place.read(Described(ULong(Lamp.CODE), [None, UInt(60)])) == LAMP
    stranger = Described(Symbol("stranger"), [1])
    assert place.read(stranger) == stranger
    out = bytearray()
    place.write(out, stranger)
    assert bytes(out) == encode(stranger)


@pytest.mark.parametrize(
    "value, complaint",
    [
        (Lamp(watts=-1), "test:lamp:list field watts: -1 is out of range for uint"),
        (Lamp(watts=None), "field watts is mandatory and missing"),  # type: ignore[arg-type]
        (Lamp(watts="60"), "test:lamp:list field watts"),  # type: ignore[arg-type]
        (Lamp(watts=1, colour=5), "test:lamp:list field colour"),  # type: ignore[arg-type]
        (Room(thing=5), "test:room:list field thing: a int cannot stand here"),  # type: ignore[arg-type]
    ],
    ids=repr,
)
def test_a_value_that_its_field_cannot_hold_is_an_encode_error(value: Composite, complaint: str) -> None:
    with pytest.raises(EncodeError, match=complaint):
        encode_composite(value)


def test_a_composite_is_frozen_and_made_by_keyword() -> None:
    with pytest.raises(AttributeError):
        LAMP.watts = 5  # type: ignore[misc]
    with pytest.raises(TypeError):
        Lamp("red", 60)  # type: ignore[call-arg, misc]
    with pytest.raises(TypeError):
        Lamp()  # type: ignore[call-arg]
