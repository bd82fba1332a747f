"""What several links of a connection settle in one turn: together at the broker, told apart for the receivers."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.messaging.message import Properties
from hubweir.amqp.messaging.outcome import Accepted, DeliveryState, Modified, Rejected
from hubweir.amqp.transport.events import Answered
from hubweir.amqp.types.values import Symbol
from hubweir.broker.commands.fragment import SettleMessages
from hubweir.broker.commands.process import Refusal
from hubweir.errors import SERVER_BUSY
from hubweir.gateway.amqp import turn_settlements
from hubweir.gateway.amqp.tests.queue_world import LOCK_MS, PEEK_LOCK, answers, counts, create_queue, queue_world, send
from hubweir.gateway.amqp.tests.test_queue_receiver_node import accept_session
from hubweir.gateway.amqp.tests.world import Peer, World
from hubweir.namespace.delivery_settings import DeliverySettings

DEAD_LETTER = Rejected(error=AmqpError(condition=Symbol("com.microsoft:dead-letter"), description="no"))


@pytest.fixture
def world() -> World:
    return queue_world()


def links_with_messages(peer: Peer, count: int, each: int = 1, session: Any = None) -> list[Any]:
    """Links that have got so many messages each, one link behind the other: delivery ids go on from link to link."""
    links = [peer.receiver("orders", session=session, **PEEK_LOCK) for _ in range(count)]
    send(peer, *(b"%d" % number for number in range(count * each)))
    for link in links:
        link.grant(each)
        peer.run()
        assert len(peer.bodies(link)) == each
    return links


def settle_together(peer: Peer, said: list[tuple[Any, int, int, DeliveryState]]) -> list[tuple[int, int, str]]:
    """Settle ranges of links in one turn; what was answered, by kind of state or condition."""
    begun = len(peer.came)
    for link, first, last, state in said:
        link.settle(first, last, state, settled=False)
    peer.run()
    return sorted((first, last, _short(state)) for first, last, state in answers(peer, begun))


def _short(state: Any) -> str:
    error = getattr(state, "error", None)
    return type(state).__name__.lower() if error is None else str(error.condition)


def test_links_of_a_connection_share_a_command_and_what_all_hear_is_said_at_once(world: World, peer: Peer) -> None:
    a, b, c = links_with_messages(peer, 3, each=2)
    said = [(a, 0, 1, Accepted()), (b, 2, 2, Accepted()), (c, 4, 5, Accepted()), (b, 3, 3, Modified())]
    assert settle_together(peer, said) == [
        (0, 2, "accepted"), (3, 3, "modified"), (4, 5, "accepted"),
    ]  # fmt: skip
    assert [len(command.tokens) // 16 for command in world.gate.sent(SettleMessages)] == [5, 1]
    assert counts(world).active == 1


def test_a_lock_that_is_lost_is_told_to_its_link_alone(world: World, peer: Peer) -> None:
    [early] = links_with_messages(peer, 1)
    peer.run(LOCK_MS // 2)
    late, latest = links_with_messages(peer, 2)
    peer.run(LOCK_MS // 2 + 1)
    lost = "com.microsoft:message-lock-lost"
    said = [(late, 1, 1, Accepted()), (early, 0, 0, Accepted()), (latest, 2, 2, Accepted())]
    assert settle_together(peer, said) == [(0, 0, lost), (1, 1, "accepted"), (2, 2, "accepted")]
    assert counts(world).active == 1


def test_what_a_link_said_in_pieces_is_told_it_as_one_where_a_lock_of_another_is_lost(world: World, peer: Peer) -> None:
    [early] = links_with_messages(peer, 1, each=2)
    peer.run(LOCK_MS // 2)
    [late] = links_with_messages(peer, 1, each=3)
    peer.run(LOCK_MS // 2 + 1)
    lost = "com.microsoft:message-lock-lost"
    said = [(late, 2, 2, Accepted()), (early, 0, 1, Accepted()), (late, 4, 4, Accepted()), (late, 3, 3, Accepted())]
    assert settle_together(peer, said) == [(0, 1, lost), (2, 4, "accepted")]
    assert [len(command.tokens) // 16 for command in world.gate.sent(SettleMessages)] == [5]


def test_abandoned_messages_are_answered_as_each_receiver_said(world: World, peer: Peer) -> None:
    a, b, c = links_with_messages(peer, 3)
    failed, only = Modified(delivery_failed=True), Modified()
    begun = len(peer.came)
    for link, number, state in ((a, 0, failed), (b, 1, only), (c, 2, failed)):
        link.settle(number, number, state, settled=False)
    peer.run()
    assert sorted(answers(peer, begun)) == [(0, 0, failed), (1, 1, only), (2, 2, failed)]
    assert [len(command.tokens) // 16 for command in world.gate.sent(SettleMessages)] == [2, 1]


def test_links_of_two_sessions_hear_it_each_on_theirs(world: World, peer: Peer) -> None:
    other = peer.endpoint.begin_session()
    here, there = links_with_messages(peer, 2), links_with_messages(peer, 2, session=other)
    said = [(link, number, number, Accepted()) for links in (here, there) for number, link in enumerate(links)]
    from_event = len(peer.side.events)
    assert settle_together(peer, said) == [(0, 1, "accepted"), (0, 1, "accepted")]
    assert len(world.gate.sent(SettleMessages)) == 1
    heard = [each.link for each in peer.side.events[from_event:] if isinstance(each, Answered)]
    assert sorted(heard, key=id) == sorted([*here, *there], key=id)


def test_a_link_that_is_over_and_one_that_does_not_wait_hear_nothing(world: World, peer: Peer) -> None:
    a, b, c, d = links_with_messages(peer, 4)
    begun = len(peer.came)
    for number, link in enumerate((a, b, c, d)):
        link.settle(number, number, Accepted(), settled=link is c)
    b.detach()
    peer.run()
    assert [(first, last) for first, last, _ in answers(peer, begun)] == [(0, 0), (3, 3)]
    assert counts(world).active == 0


def test_what_a_link_says_beside_its_outcome_is_its_own_command(world: World, peer: Peer) -> None:
    a, b = links_with_messages(peer, 2)
    assert settle_together(peer, [(a, 0, 0, DEAD_LETTER), (b, 1, 1, DEAD_LETTER)]) == [
        (0, 0, "rejected"), (1, 1, "rejected"),
    ]  # fmt: skip
    assert [len(command.tokens) // 16 for command in world.gate.sent(SettleMessages)] == [1, 1]


def test_a_refusal_is_told_to_all_whose_settlements_it_was(world: World, peer: Peer) -> None:
    a, b = links_with_messages(peer, 2)
    world.gate.refuse[SettleMessages] = Refusal(SERVER_BUSY, "later")
    busy = "com.microsoft:server-busy"
    assert settle_together(peer, [(a, 0, 0, Accepted()), (b, 1, 1, Accepted())]) == [(0, 0, busy), (1, 1, busy)]


def test_a_command_that_is_full_goes_and_another_one_begins(
    world: World, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_settlements, "TOGETHER_BYTES", 3 * 16)
    links = links_with_messages(peer, 5)
    said = [(link, number, number, Accepted()) for number, link in enumerate(links)]
    assert settle_together(peer, said) == [(0, 2, "accepted"), (3, 4, "accepted")]
    assert [len(command.tokens) // 16 for command in world.gate.sent(SettleMessages)] == [3, 2]


def test_what_is_settled_in_the_turn_in_which_the_link_ends_is_settled_before_its_session_is_free(
    world: World, peer: Peer
) -> None:
    create_queue(world, "sessions", delivery=DeliverySettings(requires_session=True))
    send(peer, b"a", b"b", queue="sessions", properties=Properties(group_id="s"))
    link = accept_session(peer, "s", credit=2)
    assert peer.bodies(link) == [b"a", b"b"]
    link.settle(0, 0, Accepted(), settled=False)
    link.detach()
    peer.run()
    assert counts(world, "sessions").active == 1
    assert peer.bodies(accept_session(peer, "s", credit=2)) == [b"b"]


def test_a_world_that_is_lost_while_its_settlements_wait_for_their_answer_is_freed() -> None:
    world = queue_world()
    peer = world.trusted_peer()
    [link] = links_with_messages(peer, 1)
    world.gate.hold[SettleMessages] = []
    assert settle_together(peer, [(link, 0, 0, Accepted())]) == []
    lost = weakref.ref(world)
    del world, peer, link
    gc.collect()
    assert lost() is None
