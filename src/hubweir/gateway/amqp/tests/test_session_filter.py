"""The session that an attach wants, and the attach that grants one, in the form in which each client asks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hubweir.amqp.messaging.terminus import Source
from hubweir.amqp.transport.sender_link import SenderLink
from hubweir.amqp.types.encode import encode
from hubweir.amqp.types.values import Described, Long, Symbol, UInt, ULong
from hubweir.errors import ServiceError
from hubweir.gateway.amqp.session_filter import (
    LOCKED_UNTIL,
    SESSION_FILTER,
    TIMEOUT,
    WAIT_LIMIT_MS,
    WAIT_MS,
    grant_session,
    session_wish,
)
from hubweir.testing.frames import RECEIVE_LINK
from hubweir.testing.served import served

GO_DESCRIPTOR = ULong(0x137000000C)


def attached(filters: dict[Symbol, object] | None, properties: dict[Symbol, object] | None = None) -> SenderLink:
    source = replace(RECEIVE_LINK.source or Source(), address="q", filter=filters)
    side = served(attach=replace(RECEIVE_LINK, source=source, properties=properties), accepts=False)
    link = side.link(RECEIVE_LINK.name)
    assert isinstance(link, SenderLink)
    return link


def test_without_the_filter_no_session_is_wanted() -> None:
    assert session_wish(attached(None)) is None
    assert session_wish(attached({Symbol("other"): "s"})) is None


@pytest.mark.parametrize("session_id", ["s", "", "ß" * 128, None])
def test_a_string_is_a_session_and_null_the_next_free_one(session_id: str | None) -> None:
    wish = session_wish(attached({SESSION_FILTER: session_id}))
    assert wish is not None
    assert (wish.session_id, wish.wait_ms, wish.descriptor) == (session_id, WAIT_MS, None)


def test_the_wait_is_the_clients_of_any_integer_type() -> None:
    for asked in (UInt(2_961), ULong(2_961), 2_961):
        wish = session_wish(attached({SESSION_FILTER: None}, {TIMEOUT: asked}))
        assert wish is not None and wish.wait_ms == 2_961
        assert type(wish.wait_ms) is int  # a command to another process holds nothing else
    wish = session_wish(attached({SESSION_FILTER: Symbol("s")}, {TIMEOUT: ULong(2**64 - 1)}))
    assert wish is not None and (type(wish.session_id), wish.wait_ms) == (str, WAIT_LIMIT_MS)
    wish = session_wish(attached({SESSION_FILTER: None}, {TIMEOUT: "soon"}))
    assert wish is not None and wish.wait_ms == WAIT_MS


@pytest.mark.parametrize("value", [1, b"s", "x" * 129, "ß" * 129, Described(GO_DESCRIPTOR, 5)])
def test_what_is_no_session_id_is_refused(value: object) -> None:
    with pytest.raises(ServiceError) as refused:
        session_wish(attached({SESSION_FILTER: value}))
    assert refused.value.condition.symbol == "com.microsoft:argument-error"


def test_the_grant_echoes_the_filter_as_it_came_and_tells_ticks() -> None:
    plain = session_wish(attached({SESSION_FILTER: None}))
    described = session_wish(attached({SESSION_FILTER: Described(GO_DESCRIPTOR, None), Symbol("other"): 1}))
    assert plain is not None and described is not None
    source, properties = grant_session(plain, "s", 0)
    assert (source.address, source.filter) == ("q", {SESSION_FILTER: "s"})
    # 1970 began so many ticks of 100 ns after year 1; clients read the raw 8 bytes.
    assert properties == {LOCKED_UNTIL: Long(621_355_968_000_000_000)}
    assert encode(properties[LOCKED_UNTIL])[:1] == b"\x81"
    source, properties = grant_session(described, "", 1_500)
    assert source.filter == {SESSION_FILTER: Described(GO_DESCRIPTOR, ""), Symbol("other"): 1}
    assert properties == {LOCKED_UNTIL: Long(621_355_968_015_000_000)}
