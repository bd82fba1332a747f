from __future__ import annotations

import pytest

from hubweir.amqp.security.sasl import (
    OK,
    SaslClient,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslServer,
    SaslState,
    bare_hostname,
)
from hubweir.amqp.types.composite import encode_composite
from hubweir.amqp.types.decode import decode
from hubweir.amqp.types.format_codes import AmqpType
from hubweir.amqp.types.values import Array, Described, Symbol
from hubweir.errors import DecodeError


def test_one_exchange_goes_through_both_sides() -> None:
    server, client = SaslServer(), SaslClient("PLAIN", b"\0u\0p", "host")
    init = server.receive_init(memoryview(client.receive_mechanisms(memoryview(server.mechanisms()))))
    assert (init.mechanism, init.initial_response, init.hostname) == ("PLAIN", b"\0u\0p", "host")
    assert server.state is SaslState.AWAIT_ANSWER
    assert client.receive_outcome(memoryview(server.answer(OK))) == OK
    assert (server.state, client.state) == (SaslState.DONE, SaslState.DONE)


def test_the_offer_is_an_array_of_symbols() -> None:
    offer, _ = decode(SaslServer().mechanisms())
    assert isinstance(offer, Described)
    assert offer.value == [Array(AmqpType.SYMBOL, tuple(map(Symbol, ("MSSBCBS", "PLAIN", "ANONYMOUS", "EXTERNAL"))))]


def test_a_client_takes_a_single_symbol_for_an_offer_and_refuses_one_without_its_mechanism() -> None:
    one = encode_composite(SaslMechanisms(sasl_server_mechanisms=(Symbol("PLAIN"),)))
    assert SaslClient("PLAIN", b"", None).receive_mechanisms(memoryview(one))
    single = b"\x00\x53\x40\xc0\x08\x01\xa3\x05PLAIN"
    assert SaslClient("PLAIN", b"", None).receive_mechanisms(memoryview(single))
    with pytest.raises(DecodeError, match="does not offer ANONYMOUS; it offers PLAIN"):
        SaslClient("ANONYMOUS", b"", None).receive_mechanisms(memoryview(one))


@pytest.mark.parametrize(
    "body", [b"", b"\x40", b"\x00\x53\x10\x45", encode_composite(SaslOutcome(code=0)), b"\x00\x53\x41\x45"]
)
def test_anything_but_init_is_refused_by_a_server(body: bytes) -> None:
    with pytest.raises(DecodeError):
        SaslServer().receive_init(memoryview(body))


def test_anything_but_an_outcome_is_refused_by_a_client() -> None:
    client = SaslClient("PLAIN", b"", None)
    with pytest.raises(DecodeError):
        client.receive_outcome(memoryview(encode_composite(SaslInit(mechanism=Symbol("PLAIN")))))


@pytest.mark.parametrize(
    ("said", "host"),
    [(None, None), ("h", "h"), ("h/$servicebus/websocket", "h"), ("h:5671", "h:5671"), ("/x", "")],
)
def test_a_hostname_ends_at_its_first_slash(said: str | None, host: str | None) -> None:
    assert bare_hostname(said) == host
