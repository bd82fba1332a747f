"""What $cbs and $management share: a message is opened, settled, counted, answered; what is no message is refused."""

from __future__ import annotations

from typing import Any

import pytest

from hubweir.amqp.messaging.message import Message, Properties, encode_message
from hubweir.gateway.amqp.request_node import REQUEST_LIMIT_BYTES, ReplyNode, text_property
from hubweir.gateway.amqp.tests.world import Peer, World, status_of


@pytest.fixture
def world() -> World:
    return World(hubs={"hub": 1})


def request(**more: Any) -> Message:
    said = {"operation": "READ", "type": "com.microsoft:eventhub", "name": "hub", **more}
    return Message(properties=Properties(message_id="m"), application_properties=said)


@pytest.mark.parametrize("settled", [False, True])
def test_a_request_is_settled_as_its_sender_wants_and_answered_either_way(peer: Peer, settled: bool) -> None:
    reply, ask = peer.receiver("$management", credit=10), peer.sender("$management")
    ask.send(encode_message(request()), settled=settled)
    peer.run(200)
    assert [status_of(answer)[0] for answer in peer.received(reply)] == [200]
    assert [outcome for _, _, outcome in peer.outcomes(ask)] == ([] if settled else ["accepted"])


def test_an_answer_says_its_code_and_text_in_both_spellings(peer: Peer) -> None:
    said = peer.request("$management", request(name="absent")).application_properties or {}
    assert said["status-code"] == said["statusCode"] == 404
    assert said["status-description"] == said["statusDescription"]
    assert said["error-condition"] == "amqp:not-found"
    assert "error-condition" not in (peer.request("$management", request()).application_properties or {})


@pytest.mark.parametrize("settled", [False, True])
def test_what_is_no_message_is_rejected_and_the_link_goes_on(world: World, peer: Peer, settled: bool) -> None:
    reply, ask = peer.receiver("$management", credit=10), peer.sender("$management")
    ask.send(b"\x00\x53\x99 no section", settled=settled)
    ask.send(encode_message(request()), settled=False)
    peer.run(200)
    expected = ["accepted"] if settled else ["amqp:decode-error", "accepted"]
    assert [outcome for _, _, outcome in sorted(peer.outcomes(ask))] == expected
    assert len(peer.received(reply)) == 1
    assert peer.is_attached(ask)
    assert world.process.budget.used == 0


def test_a_request_over_the_limit_is_rejected_and_the_link_goes_on(peer: Peer) -> None:
    reply, ask = peer.receiver("$management", credit=10), peer.sender("$management")
    assert ask.remote_max_message_size == REQUEST_LIMIT_BYTES
    ask.send(encode_message(request(fill="x" * REQUEST_LIMIT_BYTES)), settled=False)
    ask.send(encode_message(request()), settled=False)
    peer.run(500)
    outcomes = [outcome for _, _, outcome in sorted(peer.outcomes(ask))]
    assert outcomes == ["amqp:link:message-size-exceeded", "accepted"]
    assert len(peer.received(reply)) == 1


def test_a_request_without_a_link_for_its_answer_is_done_and_harms_nothing(world: World, peer: Peer) -> None:
    ask = peer.sender("$management")
    ask.send(encode_message(request()), settled=False)
    peer.run(200)
    assert [outcome for _, _, outcome in peer.outcomes(ask)] == ["accepted"]
    assert peer.is_attached(ask)
    assert world.process.budget.used == 0


def test_credit_is_topped_up_so_that_a_client_may_ask_for_ever(world: World, peer: Peer) -> None:
    reply, ask = peer.receiver("$management", credit=2_000), peer.sender("$management")
    for _ in range(5 * world.process.link_settings.request_credit):
        assert ask.sendable
        ask.send(encode_message(request()), settled=True)
        peer.run(1)
    peer.run(200)
    assert len(peer.received(reply)) == 5 * world.process.link_settings.request_credit
    assert world.process.budget.used == 0


@pytest.mark.parametrize("payload", [b"\x00\x53\x99 no section", bytes(REQUEST_LIMIT_BYTES + 1)])
def test_credit_comes_again_behind_what_is_no_request(world: World, peer: Peer, payload: bytes) -> None:
    ask = peer.sender("$management")
    for _ in range(world.process.link_settings.request_credit + 5):
        assert ask.sendable
        ask.send(payload, settled=False)
        peer.run()


def test_only_text_is_a_text_property() -> None:
    message = Message(application_properties={"text": "yes", "number": 7, "bytes": b"no"})
    assert [text_property(message, name) for name in ("text", "number", "bytes", "absent")] == ["yes", None, None, None]
    assert text_property(Message(), "text") is None


def reply_nodes(peer: Peer) -> list[ReplyNode]:
    return [node for node in peer.host.nodes if isinstance(node, ReplyNode)]


@pytest.mark.parametrize("address", ["$cbs", "$management", "hub/$management"])
def test_a_receiver_on_a_node_of_requests_gets_a_link_for_answers(peer: Peer, address: str) -> None:
    link = peer.receiver(address)
    assert peer.is_attached(link)
    assert len(reply_nodes(peer)) == 1


def test_a_link_for_answers_sends_nothing_of_its_own_accord(peer: Peer) -> None:
    link = peer.receiver("$management", credit=100)
    peer.run(5_000)
    assert peer.received(link) == []


def test_answers_wait_for_credit_and_come_in_their_order_as_far_as_it_goes(peer: Peer) -> None:
    reply, ask = peer.receiver("$management"), peer.sender("$management")
    for name in ("hub", "absent", "hub"):
        ask.send(encode_message(request(name=name)), settled=True)
    peer.run(200)
    assert peer.received(reply) == []
    codes = []
    for _ in range(3):
        reply.grant(1)
        peer.run()
        codes.append([(answer.application_properties or {})["status-code"] for answer in peer.received(reply)])
    assert codes == [[200], [200, 404], [200, 404, 200]]


def test_answers_go_with_their_link_and_the_next_link_starts_empty(peer: Peer) -> None:
    reply, ask = peer.receiver("$management"), peer.sender("$management")
    ask.send(encode_message(request()), settled=True)
    peer.run(200)
    reply.detach()
    peer.run()
    assert reply_nodes(peer) == []
    later = peer.receiver("$management", credit=10)
    peer.run(200)
    assert peer.received(later) == []
    ask.send(encode_message(request()), settled=True)
    peer.run(200)
    assert len(peer.received(later)) == 1
