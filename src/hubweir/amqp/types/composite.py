"""A described list declared as a table of fields: type, mandatory, default (part 1, section 1.4).

    @composite
    class Detach(Composite):
        CODE: ClassVar[int] = 0x16
        NAME: ClassVar[str] = "amqp:detach:list"
        handle: int = amqp_field(UINT)                         # mandatory
        closed: bool = amqp_field(BOOLEAN, default=False)      # null, or left out, reads as False
        error: AmqpError | None = amqp_field(composite_type(AmqpError), default=None)

The class becomes a frozen slotted dataclass, made by keyword; its order of fields is the order on the wire.

Written strictly, read leniently. Written: the descriptor as 00 53 XX, a list8 or list32 with every field, trailing
nulls kept, list0 only for a composite that has no fields: one client's decoder reads by position and knows no other
form. Read: symbolic and wide descriptors, trimmed lists, list0, null in every optional place.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Final, Generic, TypeVar, dataclass_transform

from hubweir.amqp.types import format_codes as code_of
from hubweir.amqp.types.decode import decode
from hubweir.amqp.types.field_types import FieldType, WrongType
from hubweir.amqp.types.read_scalar import Buffer
from hubweir.amqp.types.values import Described, Symbol, ULong, type_name
from hubweir.amqp.types.write_scalar import write_compound
from hubweir.errors import DecodeError, EncodeError

_METADATA_KEY: Final = "amqp"


@dataclasses.dataclass(frozen=True, slots=True)
class CompositeField:
    """One line of a composite's table. default: what null, or a list that ends before, stands for."""

    name: str
    type: FieldType
    mandatory: bool
    default: object


class Composite:
    """The base of every composite: its descriptor, as number and as symbol, and its table of fields."""

    __slots__ = ()
    CODE: ClassVar[int]
    NAME: ClassVar[str]
    FIELDS: ClassVar[tuple[CompositeField, ...]]


C = TypeVar("C", bound=Composite)


def amqp_field(field_type: FieldType, *, default: Any = dataclasses.MISSING) -> Any:
    """Declare one field: mandatory unless there is a default, None for "null means absent"."""
    return dataclasses.field(default=default, metadata={_METADATA_KEY: field_type})


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(amqp_field,))
def composite(cls: type[C]) -> type[C]:
    """Make the class a frozen slotted dataclass and give it FIELDS from its declarations."""
    made = dataclasses.dataclass(frozen=True, slots=True, kw_only=True)(cls)
    made.FIELDS = tuple(
        CompositeField(
            field.name,
            field.metadata[_METADATA_KEY],
            field.default is dataclasses.MISSING,
            None if field.default is dataclasses.MISSING else field.default,
        )
        for field in dataclasses.fields(made)  # type: ignore[arg-type]  # made by the line above
    )
    return made


def encode_composite(value: Composite) -> bytes:
    """The bytes of a composite, descriptor included."""
    out = bytearray()
    encode_composite_into(out, value)
    return bytes(out)


def encode_composite_into(out: bytearray, value: Composite) -> None:
    """Append the bytes of a composite, descriptor included; EncodeError for a value that its field cannot hold."""
    out += bytes((code_of.DESCRIBED, code_of.SMALL_ULONG, value.CODE))
    if not value.FIELDS:
        out.append(code_of.LIST0)
        return
    body = bytearray()
    for field in value.FIELDS:
        entry = getattr(value, field.name)
        if entry is not None:
            try:
                field.type.write(body, entry)
            except (EncodeError, AttributeError, TypeError) as error:
                # The last two: our own code put a value of the wrong Python type there.
                raise EncodeError(f"{value.NAME} field {field.name}: {error}") from error
        elif field.mandatory:
            raise EncodeError(f"{value.NAME} field {field.name} is mandatory and missing")
        else:
            body.append(code_of.NULL)
    write_compound(out, code_of.LIST8, code_of.LIST32, len(value.FIELDS), body)


def read_composite(cls: type[C], fields: object) -> C:
    """Make a composite of the list that stood behind its descriptor.

    Raises DecodeError that names the composite and the field for: not a list, more entries than fields, a value of the
    wrong type, null or nothing where a field is mandatory.
    """
    if type(fields) is not list:
        raise DecodeError(f"{cls.NAME} holds a {type_name(fields)}, not a list")
    table = cls.FIELDS
    present = len(fields)
    if present > len(table):
        raise DecodeError(f"{cls.NAME} has {present} fields; it has at most {len(table)}")
    values: dict[str, object] = {}
    for index, field in enumerate(table):
        value = fields[index] if index < present else None
        if value is not None:
            try:
                values[field.name] = field.type.read(value)
            except WrongType:
                raise DecodeError(
                    f"{cls.NAME} field {field.name} holds a {type_name(value)}; it takes {field.type.name}"
                ) from None
        elif field.mandatory:
            raise DecodeError(f"{cls.NAME} field {field.name} is mandatory and missing")
        else:
            values[field.name] = field.default
    return cls(**values)


class CompositeTable(Generic[C]):
    """The composites that can stand in one place, found by descriptor. what: that place, for error texts."""

    __slots__ = ("_by_descriptor", "_what")

    def __init__(self, what: str, classes: tuple[type[C], ...]) -> None:
        self._what = what
        self._by_descriptor: dict[object, type[C]] = {}
        for cls in classes:
            self._by_descriptor[cls.CODE] = cls
            self._by_descriptor[cls.NAME] = cls

    def find(self, descriptor: object) -> type[C] | None:
        """The class with this descriptor, a ulong or a symbol."""
        if type(descriptor) is not ULong and type(descriptor) is not Symbol:
            return None
        return self._by_descriptor.get(descriptor)

    def read(self, value: object) -> C:
        """Make the composite that a decoded described list is; DecodeError when it belongs to none of the table."""
        if type(value) is not Described:
            raise DecodeError(f"a {type_name(value)} stands where a {self._what} is needed")
        cls = self.find(value.descriptor)
        if cls is None:
            raise DecodeError(f"the descriptor {value.descriptor!r} stands where a {self._what} is needed")
        return read_composite(cls, value.value)

    def decode(self, buffer: Buffer, start: int = 0, end: int | None = None) -> tuple[C, int]:
        """Decode the composite that starts at start, and return it with the position after it."""
        limit = len(buffer) if end is None else min(end, len(buffer))
        if limit - start > 3 and buffer[start] == code_of.DESCRIBED and buffer[start + 1] == code_of.SMALL_ULONG:
            # The form nearly everybody writes: the list is read without the descriptor around it.
            cls = self._by_descriptor.get(buffer[start + 2])
            if cls is not None:
                fields, position = decode(buffer, start + 3, limit)
                return read_composite(cls, fields), position
        value, position = decode(buffer, start, limit)
        return self.read(value), position


def composite_type(*classes: type[Composite], otherwise: FieldType | None = None) -> FieldType:
    """The type of a field that holds one of these composites.

    otherwise: what else may stand there, with its own reading and writing; nothing when left out.
    """
    by_descriptor: dict[object, type[Composite]] = {}
    for cls in classes:
        by_descriptor[cls.CODE] = cls
        by_descriptor[cls.NAME] = cls

    def read(value: Any) -> Any:
        if type(value) is Described and type(value.descriptor) in (ULong, Symbol):
            cls = by_descriptor.get(value.descriptor)
            if cls is not None:
                return read_composite(cls, value.value)
        if otherwise is None:
            raise WrongType
        return otherwise.read(value)

    def write(out: bytearray, value: Any) -> None:
        if isinstance(value, classes):
            encode_composite_into(out, value)
        elif otherwise is None:
            raise EncodeError(f"a {type(value).__name__} cannot stand here")
        else:
            otherwise.write(out, value)

    name = " or ".join(cls.NAME for cls in classes)
    return FieldType(name if otherwise is None else f"{name} or {otherwise.name}", read, write)
