"""What receivers say of messages that one call sent to several links: in one piece, and told apart where it must be."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.messaging.outcome import Accepted, DeliveryState, Modified, Outcome, Rejected, TransactionalState
from hubweir.amqp.transport.events import SettledTogether
from hubweir.amqp.transport.performatives import Detach, Disposition
from hubweir.amqp.types.values import Symbol
from hubweir.broker.commands.fragment import MessagesSettled, SettleMessages
from hubweir.broker.commands.process import Refusal
from hubweir.broker.commands.testcontrol import FaultRates, OrderedFaults
from hubweir.broker.commands.transaction import CommitTransaction
from hubweir.errors import INTERNAL_ERROR, SERVER_BUSY, ServiceError
from hubweir.gateway.amqp.tests.controller import Controller, told
from hubweir.gateway.amqp.tests.queue_world import answers, counts, create_queue, performatives, queue_world
from hubweir.gateway.amqp.tests.test_joint_deliveries import NAMES, bodies, send_in_turn
from hubweir.gateway.amqp.tests.test_queue_receiver_node import accept_session
from hubweir.gateway.amqp.tests.world import Peer, World
from hubweir.gateway.faults import FORCED, Faults
from hubweir.namespace.delivery_settings import DeliverySettings

KEY = Symbol("k")
DEAD_LETTER = Rejected(error=AmqpError(condition=Symbol("com.microsoft:dead-letter"), description="no"))


@pytest.fixture
def world() -> World:
    world = queue_world()
    create_queue(world, "sessions", delivery=DeliverySettings(requires_session=True))
    return world


def links_with_messages(peer: Peer, credit: int = 5, sender: Peer | None = None) -> list[Any]:
    """Links a, b, c, d, of which the first one got message 0 by itself, and the others 1 to 4 by one call: b two."""
    links = [accept_session(peer, name, credit=credit) for name in NAMES]
    send_in_turn(sender or peer, "a1", "b1", "b2", "c1", "d1")
    assert bodies(peer, links) == [["a1"], ["b1", "b2"], ["c1"], ["d1"]]
    return links


def say(peer: Peer, first: int, last: int, state: DeliveryState, *, settled: bool = False) -> None:
    """One disposition, of links whosever they are; it goes out with what else is written in this turn."""
    peer.session().write(Disposition(role=True, first=first, last=last, settled=settled, state=state))


def heard(peer: Peer, first: int, last: int, state: DeliveryState) -> list[tuple[int, int, str]]:
    """How one disposition was answered."""
    begun = len(peer.came)
    say(peer, first, last, state)
    peer.run()
    return sorted((first, last, told(state)) for first, last, state in answers(peer, begun))


def tokens_of(world: World) -> list[int]:
    """How many each command settled."""
    return [len(command.tokens) // 16 for command in world.gate.sent(SettleMessages)]


def late_answers(world: World, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """The broker settles, and its answers come when the function is called that this returns."""
    submit, late = world.gate.submit, list[Callable[[], None]]()

    def submit_now(command: Any, on_answer: Any) -> None:
        is_settling = isinstance(command, SettleMessages)
        submit(command, (lambda answer: late.append(lambda: on_answer(answer))) if is_settling else on_answer)

    def answer_now() -> None:
        for each in late:
            each()

    monkeypatch.setattr(world.gate, "submit", submit_now)
    return answer_now


@pytest.mark.parametrize("outcome", [Accepted(), Modified(delivery_failed=True), Modified(undeliverable_here=True)])
def test_one_disposition_of_several_links_is_one_command_and_one_answer(
    world: World, peer: Peer, outcome: Outcome
) -> None:
    links_with_messages(peer, credit=2)
    assert heard(peer, 1, 4, outcome) == [(1, 4, told(outcome))]
    assert tokens_of(world) == [4]


def test_a_part_of_what_was_sent_is_settled_and_no_other(world: World, peer: Peer) -> None:
    """b2 and c1, then d1, then b1; ids wrap."""
    links = [accept_session(peer, name, credit=5) for name in NAMES]
    [session] = peer.server.sessions
    session.next_delivery_id = 2**32 - 3
    send_in_turn(peer, "a1", "b1", "b2", "c1", "d1")
    for first, last in ((2**32 - 1, 0), (1, 1), (2**32 - 2, 2**32 - 2)):
        assert heard(peer, first, last, Accepted()) == [(first, last, "accepted")]
    assert [node.link.unsettled_count for node in peer.host.nodes] == [1, 0, 0, 0]
    for link in links:
        link.detach()
    peer.run()
    assert bodies(peer, [accept_session(peer, name, credit=5) for name in NAMES]) == [["a1"], [], [], []]


@pytest.mark.parametrize(("outcome", "left"), [(DEAD_LETTER, 1), (Modified(message_annotations={KEY: "v"}), 5)])
def test_what_is_said_beside_the_outcome_is_of_each_link(world: World, peer: Peer, outcome: Outcome, left: int) -> None:
    links_with_messages(peer, credit=2)
    answer = told(outcome) if left == 5 else "rejected"
    assert heard(peer, 1, 4, outcome) == [(1, 2, answer), (3, 3, answer), (4, 4, answer)]
    assert tokens_of(world) == [2, 1, 1]
    assert counts(world, "sessions").active == left


def test_what_one_link_lost_is_told_that_link_alone(world: World, peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    links_with_messages(peer)
    submit = world.gate.submit

    def third_lost(command: Any, on_answer: Any) -> None:
        if isinstance(command, SettleMessages):
            on_answer(MessagesSettled(b"\0\0\1\0"))
        else:
            submit(command, on_answer)

    monkeypatch.setattr(world.gate, "submit", third_lost)
    assert [each[:2] for each in heard(peer, 1, 4, Accepted())] == [(1, 2), (3, 3), (4, 4)]
    assert [each[2] == "accepted" for each in heard(peer, 0, 0, Accepted())] == [True]


def test_a_refusal_is_told_to_each_of_the_links(world: World, peer: Peer) -> None:
    links_with_messages(peer)
    world.gate.refuse[SettleMessages] = Refusal(SERVER_BUSY, "later")
    busy = "com.microsoft:server-busy"
    assert heard(peer, 1, 4, Accepted()) == [(1, 2, busy), (3, 3, busy), (4, 4, busy)]


def test_a_receiver_that_settles_itself_hears_nothing(world: World, peer: Peer) -> None:
    links_with_messages(peer)
    begun = len(peer.came)
    say(peer, 1, 4, Accepted(), settled=True)
    peer.run()
    assert answers(peer, begun) == [] and counts(world, "sessions").active == 1


def test_what_was_sent_on_a_link_that_is_over_is_settled_no_more(world: World, peer: Peer) -> None:
    """c is over: what b and d got is settled, and who settles c1 hears that its lock is lost."""
    links = links_with_messages(peer)
    links[2].detach()
    peer.run()
    found = heard(peer, 1, 4, Accepted())
    assert [each[:2] for each in found if each[2] == "accepted"] == [(1, 2), (4, 4)]
    assert [each[:2] for each in found if each[2] != "accepted"] == [(3, 3)]
    assert counts(world, "sessions").active == 2
    assert bodies(peer, [accept_session(peer, "c", credit=1)]) == [["c1"]]


def test_a_link_that_ends_before_the_answer_comes_hears_nothing_and_others_do(
    world: World, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    links = links_with_messages(peer)
    answer_now = late_answers(world, monkeypatch)
    begun = len(peer.came)
    say(peer, 1, 4, Accepted())
    peer.run()
    links[2].detach()
    peer.run()
    answer_now()
    peer.run()
    assert [(first, last) for first, last, _ in answers(peer, begun)] == [(1, 2), (4, 4)]
    assert counts(world, "sessions").active == 1


@pytest.mark.parametrize("is_connection", [False, True])
def test_nobody_hears_on_a_session_or_a_connection_that_ended(
    world: World, peer: Peer, is_connection: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    links_with_messages(peer)
    answer_now = late_answers(world, monkeypatch)
    begun = len(peer.came)
    say(peer, 1, 4, Accepted())
    peer.run()
    if is_connection:
        peer.host.close(ServiceError(INTERNAL_ERROR, "over"))
    else:
        peer.session().end()
        peer.run()
    answer_now()
    peer.run()
    assert answers(peer, begun) == [] and counts(world, "sessions").active == 1


def test_in_a_transaction_each_link_settles_its_own(world: World, peer: Peer) -> None:
    links_with_messages(peer)
    controller = Controller(peer)
    txn_id = controller.declare()
    found = heard(peer, 1, 4, TransactionalState(txn_id=txn_id, outcome=Accepted()))
    assert found == [(1, 2, "accepted"), (3, 3, "accepted"), (4, 4, "accepted")]
    assert counts(world, "sessions").active == 5 and tokens_of(world) == []
    assert controller.commit(txn_id) == "accepted"
    assert counts(world, "sessions").active == 1 and len(world.gate.sent(CommitTransaction)) == 1


def test_links_that_had_no_room_go_on(world: World) -> None:
    """Two may be unsettled on a link, and b and c have credit for more."""
    sender = world.trusted_peer()
    world.connections._settings = replace(world.connections._settings, max_unsettled=2)
    peer = world.trusted_peer()
    links = links_with_messages(peer, sender=sender)
    send_in_turn(sender, "b3", "c2", "c3")
    assert bodies(peer, links) == [["a1"], ["b1", "b2"], ["c1", "c2"], ["d1"]]
    assert heard(peer, 1, 3, Accepted()) == [(1, 3, "accepted")]
    assert bodies(peer, links) == [["a1"], ["b1", "b2", "b3"], ["c1", "c2", "c3"], ["d1"]]


def test_a_link_whose_messages_are_settled_was_used(world: World, peer: Peer) -> None:
    links_with_messages(peer, credit=2)
    peer.run(1_000)
    say(peer, 1, 3, Accepted())
    peer.run()
    used = [node.last_used_ms for node in peer.host.nodes]
    assert used[1] == used[2] > max(used[0], used[3])
    idle = [node.is_idle() for node in peer.host.nodes]
    assert idle == [False, True, False, False], "a, c and d have credit or hold a message"


def test_a_fault_that_was_ordered_strikes_the_links_one_by_one(world: World, peer: Peer) -> None:
    links_with_messages(peer)
    world.gateway.faults = Faults(OrderedFaults(1, FaultRates(detach=0.5, seed=3)), world.env, 0)
    begun = len(peer.came)
    say(peer, 1, 4, Accepted())
    peer.run()
    world.gateway.faults = None
    struck = len(performatives(peer, begun, Detach))
    told_of = sum(last - first + 1 for first, last, state in answers(peer, begun) if state == Accepted())
    assert 0 < struck < 3 and 0 < told_of < 4


def test_a_link_that_is_over_is_not_kept_for_what_others_have_not_settled(world: World, peer: Peer) -> None:
    links = links_with_messages(peer)
    node = weakref.ref(next(each for each in peer.host.nodes if getattr(each, "session_id", None) == "c"))
    sent_on = weakref.ref(peer.server.sessions[0].settlement.sent._owners[-1].links[2])  # type: ignore[union-attr]
    assert heard(peer, 3, 3, Accepted()) == [(3, 3, "accepted")]
    links[2].detach()
    peer.run()
    assert node() is None and sent_on() is None
    assert heard(peer, 1, 4, Accepted())[0] == (1, 2, "accepted")


def test_what_is_said_on_a_link_that_the_service_ends_in_the_same_read_is_not_handed_over(
    world: World, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another frame of that read makes the service end link c; then the disposition of all is handled."""
    links_with_messages(peer)
    host = peer.host
    on_event = host.on_event

    def ends_c_first(event: Any) -> None:
        if isinstance(event, SettledTogether):
            host.detach(next(each for each in host.nodes if getattr(each, "session_id", None) == "c"), FORCED)
        on_event(event)

    monkeypatch.setattr(host, "on_event", ends_c_first)
    found = heard(peer, 1, 4, Accepted())
    assert [each[:2] for each in found if each[2] == "accepted"] == [(1, 2), (4, 4)]
    assert sum(tokens_of(world)) == 3 and counts(world, "sessions").active == 2
