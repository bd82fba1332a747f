"""Declare and discharge: the layouts of the standard, what clients write, and what is no request."""

from __future__ import annotations

import pytest

from hubweir.amqp.messaging.message import DataBody, Message, ValueBody, decode_message, encode_message
from hubweir.amqp.transactions.requests import Declare, Discharge, Request, message_of, request_of
from hubweir.amqp.types.composite import encode_composite
from hubweir.amqp.types.values import Described, Symbol, ULong
from hubweir.errors import DecodeError


@pytest.mark.parametrize(
    "request_, encoded",
    [
        (Declare(), "005331c0020140"),
        (Discharge(txn_id=b"ab"), "005332c00602a002616242"),
        (Discharge(txn_id=b"ab", fail=True), "005332c00602a002616241"),
    ],
)
def test_a_request_is_written_as_the_standard_lays_it_out(request_: Request, encoded: str) -> None:
    assert encode_composite(request_).hex() == encoded
    assert encode_message(message_of(request_)).hex() == "005377" + encoded


@pytest.mark.parametrize(
    "value, request_",
    [
        (Described(ULong(0x31), []), Declare()),
        (Described(Symbol("amqp:declare:list"), [None]), Declare()),
        (Described(ULong(0x32), [b"ab"]), Discharge(txn_id=b"ab", fail=False)),
        (Described(Symbol("amqp:discharge:list"), [b"ab", True]), Discharge(txn_id=b"ab", fail=True)),
    ],
)
def test_a_request_is_read_in_the_forms_that_clients_write(value: Described, request_: Request) -> None:
    assert request_of(decode_message(encode_message(Message(body=ValueBody(value))))) == request_


@pytest.mark.parametrize(
    "body",
    [
        DataBody((b"x",)),
        ValueBody(None),
        ValueBody("declare"),
        ValueBody(Described(ULong(0x33), [b"ab"])),
        ValueBody(Described(ULong(0x32), [])),
        ValueBody(Described(ULong(0x32), [b"ab", "yes"])),
        ValueBody(Described(ULong(0x31), ["global"])),
    ],
)
def test_what_is_no_request_is_a_decode_error(body: DataBody | ValueBody) -> None:
    with pytest.raises(DecodeError):
        request_of(Message(body=body))


def test_what_proton_writes_is_read() -> None:
    proton = pytest.importorskip("proton", reason="python-qpid-proton is not installed: it needs a C compiler")
    for descriptor, fields, request_ in (
        ("amqp:declare:list", [None], Declare()),
        ("amqp:discharge:list", [b"ab", True], Discharge(txn_id=b"ab", fail=True)),
    ):
        body = proton.Described(proton.symbol(descriptor), fields)
        assert request_of(decode_message(proton.Message(body=body).encode())) == request_
