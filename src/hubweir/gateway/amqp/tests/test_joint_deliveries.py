"""Links in message sessions that are given messages in one turn: one call sends them, and each link its own.

Long because it has one bench for all that may become of what a link is given.
"""

from __future__ import annotations

from typing import Any

import pytest

from hubweir.amqp.messaging.message import Properties
from hubweir.amqp.messaging.outcome import Accepted, Modified
from hubweir.amqp.types.values import Symbol
from hubweir.broker.commands.fragment import CancelReceive, CloseReceiver, SettleMessages
from hubweir.gateway.amqp import joint_deliveries
from hubweir.gateway.amqp.joint_deliveries import JointDeliveries
from hubweir.gateway.amqp.tests.queue_world import (
    counts,
    create_queue,
    queue_world,
    settle,
)
from hubweir.gateway.amqp.tests.test_queue_receiver_node import accept_session
from hubweir.gateway.amqp.tests.test_traced_links import Notes
from hubweir.gateway.amqp.tests.world import Peer, World, event
from hubweir.gateway.amqp.turn_share import TurnShare
from hubweir.namespace.delivery_settings import DeliverySettings

NAMES = "abcd"


@pytest.fixture
def world() -> World:
    world = queue_world()
    create_queue(world, "sessions", delivery=DeliverySettings(requires_session=True))
    return world


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """How many messages each call was to send, by link."""
    found: list[list[int]] = []
    send_jointly = joint_deliveries.send_jointly

    def watched(links: Any, its: Any, *given: Any, **named: Any) -> Any:
        found.append(its.tolist())
        return send_jointly(links, its, *given, **named)

    monkeypatch.setattr(joint_deliveries, "send_jointly", watched)
    return found


def send_in_turn(peer: Peer, *texts: str) -> None:
    """Messages in one run; the first letter of each names its session. "z" is a session without a holder."""
    link = peer.sender("sessions")
    for text in texts:
        link.send(event(text.encode(), properties=Properties(group_id=text[0])), settled=False)
    peer.run()
    link.detach()
    peer.run()


def bodies(peer: Peer, links: list[Any]) -> list[list[str]]:
    return [[body.decode() for body in peer.bodies(link)] for link in links]


def test_one_call_sends_what_all_links_get_and_each_settles_its_own(
    world: World, peer: Peer, calls: list[list[int]]
) -> None:
    links = [accept_session(peer, name, credit=5) for name in NAMES]
    before = world.process.counters["gateway.messages_delivered"]
    send_in_turn(peer, "a1", "b1", "c1", "b2", "d1")
    assert bodies(peer, links) == [["a1"], ["b1", "b2"], ["c1"], ["d1"]]
    assert calls == [[1], [2, 1, 1]], "the log is read for the first one alone"
    assert world.process.counters["gateway.messages_delivered"] - before == 5
    traffic = world.gateway.traffic.of("sessions")
    assert traffic.messages_out == 5 and traffic.bytes_out == sum(len(each) for each in frames(peer))
    for first, last, link in ((1, 2, links[1]), (0, 0, links[0]), (4, 4, links[3])):
        assert settle(peer, link, first, last, Accepted()) == [(first, last, Accepted())]
    assert counts(world, "sessions").active == 1
    links[2].detach()
    peer.run()
    assert bodies(peer, [accept_session(peer, "c", credit=1)]) == [["c1"]]


def frames(peer: Peer) -> list[bytes]:
    """The transfer frames that came, as they came."""
    data, found, at = bytes(peer.came), [], 0
    at = data.index(b"AMQP\x00\x01\x00\x00") + 8
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        if data[at + 8 : at + 11] == b"\x00\x53\x14":
            found.append(data[at : at + size])
        at += size
    return found


def test_the_settlement_of_deliveries_whose_ids_wrap_is_of_the_right_messages(
    world: World, peer: Peer, calls: list[list[int]]
) -> None:
    links = [accept_session(peer, name, credit=5) for name in NAMES]
    [session] = peer.server.sessions
    session.next_delivery_id = 2**32 - 2
    send_in_turn(peer, "a1", "b1", "c1", "d1")
    assert calls == [[1], [1, 1, 1]]
    for link, delivery in zip(links[1:3], (2**32 - 1, 0), strict=True):
        assert settle(peer, link, delivery, delivery, Accepted()) == [(delivery, delivery, Accepted())]
    assert counts(world, "sessions").active == 2
    for link in links:
        link.detach()
    peer.run()
    again = [accept_session(peer, name, credit=5) for name in NAMES]
    assert bodies(peer, again) == [["a1"], [], [], ["d1"]]


def test_a_message_without_an_id_has_the_same_one_as_often_as_it_comes(peer: Peer) -> None:
    links = [accept_session(peer, name, credit=5) for name in NAMES]
    send_in_turn(peer, "a1", "b1", "c1")
    [parts] = peer.host.joint._parts.values()
    prefix = next(iter(parts.values())).id_prefix.decode()
    ids = [message.properties.message_id for link in links[:3] for message in peer.received(link)]
    assert len(set(ids)) == 3 and all(str(each).startswith(prefix) for each in ids)


def test_what_was_given_goes_out_at_once(peer: Peer) -> None:
    """Of two links each; nothing else happens on the connection meanwhile."""
    links = [accept_session(peer, name, credit=5) for name in NAMES]
    peer.tick_ms = 3_600_000
    peer.run()
    send_in_turn(peer.world.trusted_peer(), "a1", "b1", "c1", "d1")
    assert bodies(peer, links) == [["a1"], ["b1"], ["c1"], ["d1"]]


def test_messages_do_not_pass_those_that_are_kept(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is room again, and the link's turn to send has not come yet."""
    link = accept_session(peer, "a", credit=5)
    with monkeypatch.context() as patch:
        patch.setattr(TurnShare, "_go_on", lambda share: None)
        with monkeypatch.context() as full:
            full.setattr(TurnShare, "left_bytes", lambda share, wanted_bytes=0: 0)
            send_in_turn(peer, "a1")
        assert bodies(peer, [link]) == [[]]
        send_in_turn(peer, "a2")
    assert bodies(peer, [link]) == [["a1", "a2"]]


def test_a_link_asks_again_when_it_got_all_that_it_has_credit_for(peer: Peer, calls: list[list[int]]) -> None:
    first, second = [accept_session(peer, name, credit=2) for name in "ab"]
    send_in_turn(peer, "a1", "b1")
    send_in_turn(peer, "a2", "b2")
    send_in_turn(peer, "a3", "b3")
    assert bodies(peer, [first, second]) == [["a1", "a2"], ["b1", "b2"]]
    first.grant(5)
    peer.run()
    assert bodies(peer, [first, second]) == [["a1", "a2", "a3"], ["b1", "b2"]]
    send_in_turn(peer, "a4", "b4", "a5")
    assert bodies(peer, [first]) == [["a1", "a2", "a3", "a4", "a5"]]


def test_a_drain_ends_the_credit_of_a_link_that_was_given_some(peer: Peer) -> None:
    link = accept_session(peer, "a", credit=5)
    send_in_turn(peer, "a1")
    link.grant(4, drain=True)
    peer.run()
    assert link.credit == 0
    send_in_turn(peer, "a2")
    assert bodies(peer, [link]) == [["a1"]]
    link.grant(1)
    peer.run()
    assert bodies(peer, [link]) == [["a1", "a2"]]


@pytest.mark.parametrize("is_full", [False, True])
def test_what_came_counts_for_what_is_asked_and_less_credit_gives_up_the_rest(
    world: World, peer: Peer, is_full: bool
) -> None:
    """A full transport: what came is kept, and counts all the same."""
    links = [accept_session(peer, name, credit=5) for name in "ab"]
    if is_full:
        peer.host.on_writing_paused()
    send_in_turn(world.trusted_peer(), "a1", "b1", "b2")
    if is_full:
        peer.host.on_writable()
        peer.run()
    links[1].grant(3)
    peer.run()
    assert world.gate.sent(CancelReceive) == []
    links[1].grant(2)
    peer.run()
    assert len(world.gate.sent(CancelReceive)) == 1
    send_in_turn(world.trusted_peer(), "a2", "b3", "b4", "b5")
    assert bodies(peer, links) == [["a1", "a2"], ["b1", "b2", "b3", "b4"]]


def test_nothing_is_expected_nor_closed_where_the_broker_went_away(world: World, peer: Peer) -> None:
    """The number of the receiver may be another's when the broker is back."""
    accept_session(peer, "a", credit=5)
    peer.host.broker_gone(world.gate)
    peer.run()
    assert not peer.host.joint._parts
    assert world.gate.sent(CloseReceiver) == []


def test_a_full_transport_keeps_messages_in_their_order(peer: Peer) -> None:
    links = [accept_session(peer, name, credit=5) for name in "ab"]
    other = peer.world.trusted_peer()
    peer.host.on_writing_paused()
    for texts in (("a1", "b1"), ("a2", "b2"), ("b3",)):
        send_in_turn(other, *texts)
    assert bodies(peer, links) == [[], []]
    peer.host.on_writable()
    peer.run()
    assert bodies(peer, links) == [["a1", "a2"], ["b1", "b2", "b3"]]
    send_in_turn(other, "a3")
    assert bodies(peer, links) == [["a1", "a2", "a3"], ["b1", "b2", "b3"]]
    assert settle(peer, links[1], 4, 4, Accepted()) == [(4, 4, Accepted())]


def test_what_a_shut_window_kept_goes_out_when_it_opens(world: World, peer: Peer) -> None:
    """The links wait for more messages meanwhile, and have credit for them."""
    links = [accept_session(peer, name, credit=5) for name in "ab"]
    [session] = peer.server.sessions
    session.window.remote_window = 0
    send_in_turn(world.trusted_peer(), "a1", "b1")
    assert bodies(peer, links) == [[], []]
    links[1].grant(5)
    peer.run()
    assert bodies(peer, links) == [["a1"], ["b1"]]


@pytest.mark.parametrize("is_full", [True, False])
def test_messages_behind_those_that_were_given_back_are_given_back_too(world: World, peer: Peer, is_full: bool) -> None:
    """The receiver takes its credit back and grants it again, while its broker gives it a message more."""
    link = accept_session(peer, "a", credit=5)
    other = world.trusted_peer()
    peer.host.on_writing_paused()
    send_in_turn(other, "a1", "a2")
    commands = CancelReceive, SettleMessages
    world.gate.hold |= {command: [] for command in commands}
    for credit in (0, 5):
        link.grant(credit)
        peer.run()
    if not is_full:
        peer.host.on_writable()
    send_in_turn(other, "a3")
    peer.host.on_writable()
    peer.run()
    assert bodies(peer, [link]) == [[]]
    for command in commands:
        world.gate.release(command)
    peer.run()
    assert bodies(peer, [link]) == [["a1", "a2", "a3"]]
    send_in_turn(other, "a4")
    assert bodies(peer, [link]) == [["a1", "a2", "a3", "a4"]]


def test_messages_that_receivers_changed_are_kept_with_their_changes(peer: Peer) -> None:
    """The record of one that was changed lies behind those of the messages that follow it."""
    link = accept_session(peer, "a", credit=5)
    send_in_turn(peer, "a1", "a2")
    peer.host.on_writing_paused()
    changed = Modified(delivery_failed=True, message_annotations={Symbol("k"): "v"})
    link.settle(0, 0, changed, settled=False)
    link.settle(1, 1, Modified(delivery_failed=True), settled=False)
    peer.run()
    assert bodies(peer, [link]) == [["a1", "a2"]]
    peer.host.on_writable()
    peer.run()
    assert bodies(peer, [link]) == [["a1", "a2", "a1", "a2"]]
    assert [each.application_properties for each in peer.received(link)] == [None, None, {"k": "v"}, None]


def test_what_the_turn_has_no_room_for_goes_out_in_the_next_one(
    peer: Peer, calls: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    links = [accept_session(peer, name, credit=5) for name in NAMES]
    left = TurnShare.left_bytes
    room, wanted = iter([1 << 20, 600]), list[int]()

    def little(share: TurnShare, wanted_bytes: int = 0) -> int:
        wanted.append(wanted_bytes)
        return next(room, None) or left(share, wanted_bytes)

    monkeypatch.setattr(TurnShare, "left_bytes", little)
    send_in_turn(peer, "a1", "b" + "1" * 100, "b" + "2" * 100, "b" + "3" * 100, "c1", "d1")
    assert calls == [[1], [3, 1, 1]] and wanted[1] > 300
    assert [[len(each) for each in its] for its in bodies(peer, links)] == [[2], [101] * 3, [2], [2]]
    answers = [settle(peer, link, first, last, Accepted()) for first, last, link in sent_ranges(peer, links)]
    assert all(state == Accepted() for its in answers for _, _, state in its)
    assert counts(peer.world, "sessions").active == 0


def sent_ranges(peer: Peer, links: list[Any]) -> list[tuple[int, int, Any]]:
    """What each link may settle."""
    ranges = peer.endpoint.sessions[0].settlement.received
    return [(each.first, each.last, each.owner) for each in ranges if each.owner in links]


def test_messages_for_a_link_that_is_over_are_passed_over_and_others_go_out(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker of another process had sent them when the link ended."""
    links = [accept_session(peer, name, credit=5) for name in NAMES]
    came = JointDeliveries.came

    def without_one(joint: JointDeliveries, push: Any) -> None:
        [parts] = joint._parts.values()
        receiver_id = sorted(parts)[2]
        joint.forget(receiver_id, parts[receiver_id].place)
        monkeypatch.undo()
        monkeypatch.setattr(JointDeliveries, "came", came)
        joint.came(push)

    def first_alone(joint: JointDeliveries, push: Any) -> None:
        monkeypatch.setattr(JointDeliveries, "came", without_one)
        came(joint, push)

    monkeypatch.setattr(JointDeliveries, "came", first_alone)
    send_in_turn(peer, "a1", "b1", "c1", "d1")
    assert bodies(peer, links) == [["a1"], ["b1"], [], ["d1"]]


def test_links_of_two_sessions_of_a_connection_get_their_own(peer: Peer, calls: list[list[int]]) -> None:
    own = peer.session()
    second = peer.endpoint.begin_session()
    links = []
    for name in NAMES:
        peer._session = second if name in "bd" else own
        links.append(accept_session(peer, name, credit=5))
    peer._session = own
    send_in_turn(peer, "a1", "c1", "b1", "d1")
    assert bodies(peer, links) == [["a1"], ["b1"], ["c1"], ["d1"]]
    assert calls == [[1], [1], [1, 1]]


def test_nothing_is_expected_for_links_that_are_over(world: World, peer: Peer) -> None:
    first, _ = [accept_session(peer, name, credit=5) for name in "ab"]
    assert len(peer.host.joint._parts) == 1
    first.detach()
    peer.run()
    [parts] = peer.host.joint._parts.values()
    assert len(parts) == 1
    world.run_for(60_000)  # the lock of the other session ends
    assert not peer.host.joint._parts
    accept_session(peer, "c", credit=5)
    host = peer.host
    peer.cut()
    world.run_for(50)
    assert not host.joint._parts


def test_traced_messages_are_delivered_when_the_last_one_is_out(world: World, peer: Peer) -> None:
    links = [accept_session(peer, name, credit=5) for name in "ab"]
    notes = Notes(world)
    for each in peer.host.nodes:
        for part in getattr(each, "_parts", ()):
            part._tracer = notes
    peer.host.on_writing_paused()
    other = world.trusted_peer()
    send_in_turn(other, "a tea")
    send_in_turn(other, "a more tea")
    [told] = notes.named("deliver")
    assert (told.entity, told.ends) == ("sessions", [])
    peer.host.on_writable()
    peer.run()
    assert told.ends == [""] and bodies(peer, links) == [["a tea", "a more tea"], []]


def test_links_that_are_traced_send_for_themselves(world: World) -> None:
    notes, peer = Notes(world), world.trusted_peer()
    links = [accept_session(peer, name, credit=5) for name in "ab"]
    send_in_turn(peer, "a tea", "b tea", "b more tea")
    assert bodies(peer, links) == [["a tea"], ["b tea", "b more tea"]]
    assert [told.ends for told in notes.named("deliver")] == [[""], [""]]


def test_what_is_kept_behind_messages_that_were_given_back_has_a_span_of_its_own(world: World, peer: Peer) -> None:
    link = accept_session(peer, "a", credit=5)
    notes = Notes(world)
    [part] = next(iter(peer.host.joint._parts.values())).values()
    part._tracer = notes  # type: ignore[attr-defined]
    peer.host.on_writing_paused()
    send_in_turn(world.trusted_peer(), "a tea")
    for credit in (0, 5):
        link.grant(credit)
        peer.run()
    peer.host.on_writable()
    peer.run()
    assert bodies(peer, [link]) == [["a tea"]]
    assert [told.ends for told in notes.named("deliver")] == [[], [""]]
