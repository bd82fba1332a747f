"""Which Python type stands for which AMQP type."""

from uuid import UUID

import pytest

from hubweir.amqp.types import values
from hubweir.amqp.types.format_codes import AmqpType
from hubweir.amqp.types.values import TYPE_OF, Array, Described, Symbol, Timestamp, UInt, ULong, type_name


def test_every_amqp_type_has_a_python_type() -> None:
    assert set(TYPE_OF.values()) == set(AmqpType)


def test_a_wrapped_value_equals_and_hashes_as_the_plain_one() -> None:
    assert {UInt(5): "a"}[5] == "a"
    assert {Symbol("x"): "a"}["x"] == "a"
    assert ULong(5) == UInt(5) and type(ULong(5)) is not type(UInt(5))


@pytest.mark.parametrize(
    "value, name",
    [
        (None, "null"),
        (True, "boolean"),
        (5, "long"),
        (UInt(5), "uint"),
        (Timestamp(5), "timestamp"),
        (UUID(int=5), "uuid"),
        (b"", "binary"),
        ("", "string"),
        (Symbol(""), "symbol"),
        ([], "list"),
        ({}, "map"),
        (Array(AmqpType.INT, ()), "array"),
        (Described(Symbol("d"), None), "described"),
        (object(), "object"),
    ],
)
def test_a_type_is_named_as_the_standard_names_it(value: object, name: str) -> None:
    assert type_name(value) == name


def test_values_cannot_grow_attributes() -> None:
    with pytest.raises(AttributeError):
        Array(AmqpType.INT, ()).items = (1,)  # type: ignore[misc]
    for wrapper in (values.Float(1.5), values.Char("x")):
        with pytest.raises(AttributeError):
            wrapper.unit = "ms"  # type: ignore[attr-defined]
