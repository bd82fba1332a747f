"""The error value that frames and outcomes carry."""

import pytest

from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.types.composite import encode_composite, read_composite
from hubweir.amqp.types.decode import decode
from hubweir.amqp.types.encode import encode
from hubweir.amqp.types.values import Described, Symbol, ULong
from hubweir.errors import DecodeError, EncodeError


def test_three_fields_are_written_and_the_description_is_never_null() -> None:
    assert encode_composite(AmqpError(condition="x")).hex() == "00531dc00703a30178a10040"
    with_info = AmqpError(condition="x", description="y", info={Symbol("k"): 1})
    assert encode_composite(with_info).hex() == "00531d" + "c00f03" + "a30178" + "a10179" + "c10602a3016b5501"


def test_an_error_without_description_is_read() -> None:
    for fields in ([Symbol("x")], [Symbol("x"), None], [Symbol("x"), None, None]):
        value = decode(encode(Described(ULong(0x1D), fields)))[0]
        assert read_composite(AmqpError, value.value) == AmqpError(condition=Symbol("x"))


def test_the_condition_is_a_symbol_and_mandatory() -> None:
    for fields in ([], [None, "text"], ["amqp:not-found"]):
        with pytest.raises(DecodeError, match="amqp:error:list field condition"):
            read_composite(AmqpError, fields)
    with pytest.raises(EncodeError, match="amqp:error:list field condition"):
        encode_composite(AmqpError(condition="é"))
