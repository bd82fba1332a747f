from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from hubweir.amqp.messaging.message import Message, Properties, decode_message, encode_message
from hubweir.amqp.messaging.terminus import Source, Target
from hubweir.amqp.response_routes import (
    HELD_RESPONSES_LIMIT,
    ResponseRoutes,
    correlation_of,
    node_of,
)
from hubweir.amqp.transport.performatives import Attach, Flow
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.amqp.transport.sender_link import SenderLink
from hubweir.amqp.types.values import ULong
from hubweir.testing.endpoint_pair import Side
from hubweir.testing.frames import BEGIN, frame
from hubweir.testing.served import feed, served

REQUEST = Attach(
    name="ask",
    handle=0,
    role=False,
    source=Source(address="me"),
    target=Target(address="$cbs"),
    initial_delivery_count=0,
)
ANSWER = Attach(name="answers", handle=1, role=True, source=Source(address="$cbs"), target=Target(address="inbox"))


def request(reply_to: str | None = None, message_id: object = "1") -> Message:
    return Message(properties=Properties(message_id=message_id, reply_to=reply_to))


def cbs(*answers: Attach) -> tuple[Side, ReceiverLink]:
    side = served(attach=REQUEST)
    for attach in answers:
        feed(side, frame(attach))
    link = side.link("ask")
    assert isinstance(link, ReceiverLink)
    return side, link


@pytest.mark.parametrize("address", ["$cbs", "/$cbs", "$CBS/", "amqps://host:5671/$cbs", "sb://host/$cbs/"])
def test_all_forms_of_an_address_name_one_node(address: str) -> None:
    assert node_of(address) == "$cbs"


def test_the_answer_goes_to_the_link_whose_target_or_name_was_asked_or_to_the_only_one() -> None:
    other = replace(ANSWER, name="inbox2", handle=2, target=Target(address="answers"))
    side, link = cbs(ANSWER, other)
    routes = ResponseRoutes()
    assert routes.reply_link(request("inbox"), link) is side.link("answers"), "by target address"
    assert routes.reply_link(request("answers"), link) is side.link("inbox2"), "target before name"
    assert routes.reply_link(request("inbox2"), link) is side.link("inbox2"), "by link name"
    assert routes.reply_link(request(), link) is None, "two could be meant"
    side, link = cbs(ANSWER)
    assert routes.reply_link(request(), link) is side.link("answers")
    assert routes.reply_link(request("unknown"), link) is side.link("answers")


def test_the_only_link_of_the_session_comes_before_the_only_one_of_the_connection() -> None:
    side, link = cbs()
    routes = ResponseRoutes()
    feed(side, frame(BEGIN, channel=5) + frame(replace(ANSWER, name="far"), channel=5))
    assert routes.reply_link(request(), link) is side.link("far")
    feed(side, frame(ANSWER))
    assert routes.reply_link(request(), link) is side.link("answers")


def test_a_link_that_reads_another_node_or_is_gone_is_never_chosen() -> None:
    hub = replace(ANSWER, source=Source(address="hub/ConsumerGroups/$Default/Partitions/0"))
    side, link = cbs(hub)
    assert ResponseRoutes().reply_link(request("inbox"), link) is None
    side, link = cbs(ANSWER)
    side.link("answers").detach()
    assert ResponseRoutes().reply_link(request("inbox"), link) is None


@pytest.mark.parametrize("message_id", [UUID(int=7), "text", ULong(7), b"bytes"])
def test_the_correlation_id_keeps_the_type_of_the_request(message_id: object) -> None:
    asked = decode_message(encode_message(request(message_id=message_id)))
    found = correlation_of(asked)
    assert (found, type(found)) == (message_id, type(message_id))
    assert correlation_of(Message()) is None


def test_an_answer_waits_for_credit_and_comes_one_for_one() -> None:
    side, _ = cbs(ANSWER)
    link = side.link("answers")
    assert isinstance(link, SenderLink)
    routes = ResponseRoutes()
    for number in range(3):
        routes.respond(link, b"answer %d" % number)
    assert side.drain() == b""
    for number in range(3):
        flow = Flow(
            next_incoming_id=1 + number, incoming_window=9, next_outgoing_id=0, outgoing_window=9, handle=1,
            delivery_count=number, link_credit=1,
        )  # fmt: skip
        feed(side, frame(flow))
        routes.on_credit(link)
        assert b"answer %d" % number in side.drain()
    assert link.credit == 0


def test_a_client_that_never_reads_its_answers_loses_the_link() -> None:
    side, _ = cbs(ANSWER)
    link = side.link("answers")
    assert isinstance(link, SenderLink)
    routes = ResponseRoutes()
    for _ in range(HELD_RESPONSES_LIMIT):
        routes.respond(link, b"x")
    assert link.is_attached
    routes.respond(link, b"x")
    assert not link.is_attached
    assert b"amqp:resource-limit-exceeded" in side.drain()
