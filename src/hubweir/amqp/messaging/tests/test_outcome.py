"""Delivery states: the bytes that clients need, and those they send."""

from typing import Any

import pytest

from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.messaging.outcome import (
    DELIVERY_STATE,
    OUTCOME,
    Accepted,
    Declared,
    DeliveryState,
    Modified,
    Received,
    Rejected,
    Released,
    TransactionalState,
)
from hubweir.amqp.types.composite import encode_composite
from hubweir.amqp.types.decode import decode
from hubweir.amqp.types.encode import encode
from hubweir.amqp.types.field_types import WrongType
from hubweir.amqp.types.values import Described, Symbol, ULong

ERROR = AmqpError(condition=Symbol("amqp:not-found"), description="no such hub")


@pytest.mark.parametrize(
    "state, encoded",
    [
        (Accepted(), "00532445"),
        (Released(), "00532645"),
        (Rejected(), "005325c0020140"),
        (Modified(), "005327c00403424240"),
        (Modified(delivery_failed=True, undeliverable_here=True), "005327c00403414140"),
        (Received(section_number=1, section_offset=0), "005323c00402520144"),
        (Declared(txn_id=b"ab"), "005333c00501a0026162"),
        (TransactionalState(txn_id=b"ab", outcome=Accepted()), "005334c00902a002616200532445"),
        (Rejected(error=AmqpError(condition="x")), "005325c00d01" + "00531dc00703a30178a10040"),
    ],
)
def test_a_state_is_written_in_the_form_every_client_reads(state: Any, encoded: str) -> None:
    assert encode_composite(state).hex() == encoded


@pytest.mark.parametrize(
    "state",
    [
        Accepted(),
        Released(),
        Rejected(),
        Rejected(error=ERROR),
        Modified(delivery_failed=True, message_annotations={Symbol("x"): 1}),
        Received(section_number=2, section_offset=1 << 40),
        Declared(txn_id=b"one"),
        TransactionalState(txn_id=b"one", outcome=Rejected(error=ERROR)),
        TransactionalState(txn_id=b"one"),
        Described(ULong(0x99), [b"unknown", Described(ULong(0x24), [])]),
    ],
)
def test_a_state_is_read_back(state: DeliveryState) -> None:
    out = bytearray()
    DELIVERY_STATE.write(out, state)
    assert DELIVERY_STATE.read(decode(out)[0]) == state


@pytest.mark.parametrize("descriptor", [ULong(0x24), Symbol("amqp:accepted:list")])
@pytest.mark.parametrize("fields", ["45", "c00100", "d00000000400000000"])
def test_accepted_is_read_in_every_form(descriptor: object, fields: str) -> None:
    data = b"\0" + encode(descriptor) + bytes.fromhex(fields)
    assert DELIVERY_STATE.read(decode(data)[0]) == OUTCOME.read(decode(data)[0]) == Accepted()


def test_a_value_without_a_descriptor_is_no_state() -> None:
    for value in ([], "accepted", {}):
        with pytest.raises(WrongType):
            DELIVERY_STATE.read(value)


def test_received_is_a_state_but_no_outcome() -> None:
    value = Described(ULong(0x23), [1, 2])
    assert type(DELIVERY_STATE.read(value)) is Received
    assert type(OUTCOME.read(value)) is Described
