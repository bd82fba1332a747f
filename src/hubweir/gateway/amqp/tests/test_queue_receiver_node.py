"""Links that receive from a queue: credit, drain, locks, what settling does and what it is answered.

Long because the same few helpers say all that a receiver may do.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from uuid import UUID

import pytest

from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.messaging.message import Properties
from hubweir.amqp.messaging.outcome import Accepted, Modified, Rejected, Released, TransactionalState
from hubweir.amqp.messaging.terminus import Source, Target
from hubweir.amqp.transport.performatives import Disposition
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.amqp.types.format_codes import AmqpType
from hubweir.amqp.types.values import Array, Described, Symbol, ULong
from hubweir.broker.commands.fragment import ReceiveMessages, SettleMessages
from hubweir.broker.commands.process import Refusal
from hubweir.errors import SERVER_BUSY, TIMED_OUT
from hubweir.gateway.amqp.session_filter import LOCKED_UNTIL, SESSION_FILTER, TIMEOUT
from hubweir.gateway.amqp.tests.queue_world import (
    LOCK_MS,
    PEEK_LOCK,
    RECEIVE_AND_DELETE,
    answers,
    ask,
    counts,
    create_queue,
    flows,
    queue_world,
    send,
    settle,
    switch,
    transfers,
)
from hubweir.gateway.amqp.tests.world import Peer, World
from hubweir.namespace.delivery_settings import DeliverySettings
from hubweir.namespace.entity import Availability
from hubweir.namespace.queue_description import QueueDescription

DEAD_LETTERS = "orders/$DeadLetterQueue"
LOCK_TOKEN = Symbol("x-opt-lock-token")


@pytest.fixture
def world() -> World:
    return queue_world()


def accept_session(
    peer: Peer, session_id: object, *, wait_ms: int = 1_000, credit: int = 0, queue: str = "sessions"
) -> ReceiverLink:
    name = peer.name("session")
    link: ReceiverLink = peer.session().attach_receiver(
        name,
        source=Source(address=queue, filter={SESSION_FILTER: session_id}),
        target=Target(address=f"to-{name}"),
        properties={TIMEOUT: wait_ms},
        **PEEK_LOCK,
    )
    if credit:
        link.grant(credit)
    peer.run()
    return link


def test_no_more_come_than_there_is_credit_for_and_each_is_locked(world: World, peer: Peer) -> None:
    send(peer, *(b"%d" % number for number in range(5)))
    begun = len(peer.came)
    link = peer.receiver("orders", credit=2, **PEEK_LOCK)
    assert peer.bodies(link) == [b"0", b"1"]
    sent = transfers(peer, begun)
    assert [part.settled for part in sent] == [False, False]
    first = peer.received(link)[0]
    assert first.delivery_annotations is not None
    assert first.delivery_annotations[LOCK_TOKEN] == UUID(bytes_le=bytes(sent[0].delivery_tag or b""))
    link.grant(2)
    peer.run()
    assert peer.bodies(link) == [b"0", b"1", b"2", b"3"]
    other = peer.receiver("orders", credit=5, **PEEK_LOCK)
    assert peer.bodies(other) == [b"4"]


def test_no_more_are_locked_than_may_be_unsettled_whatever_the_credit_is(world: World) -> None:
    send(world.trusted_peer(), *(b"%d" % number for number in range(4)))
    world.connections._settings = replace(world.connections._settings, max_unsettled=2)
    peer = world.trusted_peer()
    link = peer.receiver("orders", credit=10, **PEEK_LOCK)
    assert peer.bodies(link) == [b"0", b"1"]
    assert peer.bodies(peer.receiver("orders", credit=1, **PEEK_LOCK)) == [b"2"]
    settle(peer, link, 0, 0, Accepted())
    assert peer.bodies(link) == [b"0", b"1", b"3"]


def test_a_receiver_that_waits_gets_a_message_when_it_is_sent(peer: Peer) -> None:
    link = peer.receiver("orders", credit=1, **PEEK_LOCK)
    peer.run(30_000)
    send(peer, b"late")
    assert peer.bodies(link) == [b"late"]


def test_the_first_messages_of_a_queue_have_the_numbers_from_1_on(peer: Peer) -> None:
    link = peer.receiver("orders", credit=4, **PEEK_LOCK)
    for body in (b"a", b"b", b"c", b"d"):
        send(peer, body)
    numbers = [(m.message_annotations or {})[Symbol("x-opt-sequence-number")] for m in peer.received(link)]
    assert numbers == [1, 2, 3, 4]


def test_complete_is_answered_in_kind_and_the_message_is_gone(world: World, peer: Peer) -> None:
    send(peer, b"a", b"b")
    link = peer.receiver("orders", credit=2, **PEEK_LOCK)
    assert settle(peer, link, 0, 1, Accepted()) == [(0, 1, Accepted())]
    assert counts(world).active == 0


def test_what_is_settled_already_is_done_and_not_answered(world: World, peer: Peer) -> None:
    send(peer, b"a")
    link = peer.receiver("orders", credit=1, **PEEK_LOCK)
    begun = len(peer.came)
    link.settle(0, 0, Accepted())
    peer.run()
    assert (answers(peer, begun), counts(world).active) == ([], 0)


def test_abandon_is_answered_modified_and_the_message_comes_again_with_a_higher_count(peer: Peer) -> None:
    send(peer, b"a")
    link = peer.receiver("orders", credit=2, **PEEK_LOCK)
    state = Modified(delivery_failed=True, message_annotations={Symbol("tries"): 1})
    assert settle(peer, link, 0, 0, state) == [(0, 0, Modified(delivery_failed=True))]
    first, again = peer.received(link)
    assert first.header is not None and again.header is not None
    assert (first.header.delivery_count, again.header.delivery_count) == (0, 1)
    assert again.application_properties == {"tries": 1}


def test_a_released_message_comes_again_as_if_it_had_not_come(peer: Peer) -> None:
    send(peer, b"a")
    link = peer.receiver("orders", credit=2, **PEEK_LOCK)
    assert settle(peer, link, 0, 0, Released()) == [(0, 0, Released())]
    again = peer.received(link)[1]
    assert again.header is not None and again.header.delivery_count == 0


@pytest.mark.parametrize("credit_is_first", [False, True], ids=["behind", "in front"])
def test_what_is_released_comes_before_what_follows_it_also_when_credit_comes_in_the_same_read(
    world: World, peer: Peer, credit_is_first: bool
) -> None:
    send(peer, b"a", b"b")
    link = peer.receiver("orders", credit=1, **PEEK_LOCK)
    steps = [partial(link.settle, 0, 0, Released()), partial(link.grant, 1)]
    for step in reversed(steps) if credit_is_first else steps:
        step()
    peer.run()
    assert peer.bodies(link) == [b"a", b"a"]
    asked = [type(each) for each in world.gate.commands if isinstance(each, SettleMessages | ReceiveMessages)]
    assert asked[-2:] == [SettleMessages, ReceiveMessages]


def test_a_deferred_message_comes_no_more(world: World, peer: Peer) -> None:
    send(peer, b"a", b"b")
    link = peer.receiver("orders", credit=3, **PEEK_LOCK)
    state = Modified(undeliverable_here=True)
    assert settle(peer, link, 0, 0, state) == [(0, 0, state)]
    assert (counts(world).deferred, peer.bodies(link)) == (1, [b"a", b"b"])


def test_dead_letter_is_answered_without_an_error_and_says_why_in_the_dead_letters(world: World, peer: Peer) -> None:
    send(peer, b"a")
    link = peer.receiver("orders", credit=2, **PEEK_LOCK)
    info = {Symbol("DeadLetterReason"): "bad", Symbol("DeadLetterErrorDescription"): "very"}
    error = AmqpError(condition=Symbol("com.microsoft:dead-letter"), info=info)
    assert settle(peer, link, 0, 0, Rejected(error=error)) == [(0, 0, Rejected(error=None))]
    dead = peer.receiver(DEAD_LETTERS, credit=1, **PEEK_LOCK)
    [message] = peer.received(dead)
    assert message.application_properties == {"DeadLetterReason": "bad", "DeadLetterErrorDescription": "very"}
    assert (counts(world).active, counts(world).dead_lettered) == (0, 1)


def test_a_lock_that_ended_is_told_with_the_condition_that_clients_know(world: World, peer: Peer) -> None:
    send(peer, b"a")
    link = peer.receiver("orders", credit=2, **PEEK_LOCK)
    peer.run(LOCK_MS + 100)
    assert peer.bodies(link) == [b"a", b"a"]
    [(first, last, state)] = settle(peer, link, 0, 0, Accepted())
    assert (first, last, str(state.error.condition)) == (0, 0, "com.microsoft:message-lock-lost")
    assert settle(peer, link, 1, 1, Accepted()) == [(1, 1, Accepted())]
    assert counts(world).active == 0


def test_locks_that_ended_are_told_with_one_frame_and_one_line_in_the_log(
    peer: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "hubweir.gateway.refusals")
    send(peer, *(b"%d" % number for number in range(6)))
    link = peer.receiver("orders", credit=6, **PEEK_LOCK)
    peer.run(LOCK_MS + 100)
    begun = len(peer.came)
    for number in (4, 0, 2, 1, 3):
        link.settle(number, number, Accepted(), settled=False)
        peer.session().write_flow()  # what is said before and behind it is not joined on its way in
    peer.run()
    [(first, last, state)] = answers(peer, begun)
    assert (first, last, str(state.error.condition)) == (0, 4, "com.microsoft:message-lock-lost")
    assert len(caplog.messages) == 1


def test_of_a_range_each_delivery_is_answered_by_what_became_of_it(peer: Peer) -> None:
    send(peer, b"a")
    link = peer.receiver("orders", credit=2, **PEEK_LOCK)
    peer.run(LOCK_MS - 1_000)
    send(peer, b"b")
    peer.run(1_500)  # the lock of the first has ended, and not that of the second
    states = settle(peer, link, 0, 1, Accepted())
    assert [(first, last, type(state)) for first, last, state in states] == [(0, 0, Rejected), (1, 1, Accepted)]


def test_settling_what_was_settled_before_is_a_lost_lock(peer: Peer) -> None:
    send(peer, b"a")
    link = peer.receiver("orders", credit=1, **PEEK_LOCK)
    assert settle(peer, link, 0, 0, Accepted()) == [(0, 0, Accepted())]
    begun = len(peer.came)
    peer.session().write(Disposition(role=True, first=0, last=0, settled=False, state=Accepted()))
    peer.run()
    [(_, _, state)] = answers(peer, begun)
    assert str(state.error.condition) == "com.microsoft:message-lock-lost"


def test_settlements_of_one_turn_are_a_command_for_each_outcome(world: World, peer: Peer) -> None:
    send(peer, *(b"%d" % number for number in range(6)))
    link = peer.receiver("orders", credit=6, **PEEK_LOCK)
    begun = len(peer.came)
    for number in range(6):
        link.settle(number, number, Released() if number == 2 else Accepted(), settled=False)
    link.grant(0)
    peer.run()
    sent = world.gate.sent(SettleMessages)
    assert [len(command.tokens) // 16 for command in sent] == [5, 1]
    assert sorted((first, last) for first, last, _ in answers(peer, begun)) == [(0, 1), (2, 2), (3, 5)]


def test_receive_and_delete_sends_settled_and_the_message_is_gone(world: World, peer: Peer) -> None:
    send(peer, b"a", b"b")
    begun = len(peer.came)
    link = peer.receiver("orders", credit=2, **RECEIVE_AND_DELETE)
    assert peer.bodies(link) == [b"a", b"b"]
    assert [part.settled for part in transfers(peer, begun)] == [True, True]
    assert counts(world).active == 0
    assert peer.received(link)[0].delivery_annotations is None


def test_drain_gives_what_there_is_and_ends_with_the_credit_used_up(peer: Peer) -> None:
    send(peer, b"a", b"b")
    link = peer.receiver("orders", **PEEK_LOCK)
    begun = len(peer.came)
    link.grant(5, drain=True)
    peer.run()
    assert peer.bodies(link) == [b"a", b"b"]
    [flow] = flows(peer, begun)
    assert (flow.drain, flow.link_credit, flow.delivery_count) == (True, 0, 5)


def test_drain_is_answered_on_an_empty_queue_and_without_credit_and_the_link_goes_on(peer: Peer) -> None:
    link = peer.receiver("orders", credit=3, **PEEK_LOCK)
    for credit in (3, 0):
        begun = len(peer.came)
        link.grant(credit, drain=True)
        peer.run()
        [flow] = flows(peer, begun)
        assert (flow.drain, flow.link_credit) == (True, 0)
    link.grant(1)
    send(peer, b"a")
    assert peer.bodies(link) == [b"a"]


def test_the_end_of_a_link_leaves_locks_and_gives_back_what_was_not_sent(world: World, peer: Peer) -> None:
    send(peer, b"a", b"b")
    link = peer.receiver("orders", credit=1, **PEEK_LOCK)
    peer.transport_full = True
    peer.host.on_writing_paused()
    link.grant(1)
    peer.run()
    peer.transport_full = False
    peer.cut()
    other = world.trusted_peer()
    taken = other.receiver("orders", credit=2, **PEEK_LOCK)
    assert other.bodies(taken) == [b"b"], "it was received and not sent; the other one is locked"
    other.run(LOCK_MS)
    assert other.bodies(taken) == [b"b", b"a"]
    counted = other.received(taken)
    assert [message.header.delivery_count for message in counted if message.header] == [0, 1]


def test_credit_that_is_taken_back_gives_messages_to_others(world: World, peer: Peer) -> None:
    link = peer.receiver("orders", credit=1, **PEEK_LOCK)
    link.grant(0)
    peer.run()
    send(peer, b"a")
    assert peer.bodies(link) == []
    assert peer.bodies(peer.receiver("orders", credit=1, **PEEK_LOCK)) == [b"a"]


def test_what_could_not_be_sent_is_for_others_when_the_credit_is_taken_back(world: World, peer: Peer) -> None:
    link = peer.receiver("orders", **PEEK_LOCK)
    send(peer, b"a")
    peer.transport_full = True
    peer.host.on_writing_paused()
    link.grant(1)
    peer.run()
    link.grant(0)
    peer.run()
    other = world.trusted_peer()
    assert other.bodies(other.receiver("orders", credit=1, **PEEK_LOCK)) == [b"a"]


@pytest.mark.parametrize("credit", [0, 1])
def test_credit_that_is_taken_back_loses_no_message_of_receive_and_delete(peer: Peer, credit: int) -> None:
    link = peer.receiver("orders", credit=3, **RECEIVE_AND_DELETE)
    link.grant(credit)
    peer.run()
    send(peer, b"a", b"b", b"c")
    other = peer.receiver("orders", credit=5, **RECEIVE_AND_DELETE)
    assert (peer.bodies(link), peer.bodies(other)) == ([b"a", b"b", b"c"][:credit], [b"a", b"b", b"c"][credit:])


@pytest.mark.parametrize("mode", [PEEK_LOCK, RECEIVE_AND_DELETE])
def test_messages_that_come_as_credit_is_taken_back_wait_for_credit_or_are_for_others(
    world: World, peer: Peer, mode: dict[str, int]
) -> None:
    """The broker answers with them, though the credit is gone: a drain is answered all the same."""
    send(peer, b"a", b"b")
    link = peer.receiver("orders", **mode)
    begun = len(peer.came)
    world.gate.hold[ReceiveMessages] = []
    link.grant(2)
    peer.run()
    link.grant(0, drain=True)
    peer.run()
    world.gate.release(ReceiveMessages)
    peer.run()
    assert peer.bodies(link) == []
    [flow] = flows(peer, begun)
    assert (flow.drain, flow.link_credit) == (True, 0)
    assert counts(world).active == (2 if mode is PEEK_LOCK else 0)
    link.grant(2)
    peer.run()
    assert peer.bodies(link) == [b"a", b"b"]


def test_a_refusal_of_the_broker_is_told_and_an_unknown_outcome_ends_the_link(world: World, peer: Peer) -> None:
    send(peer, b"a", b"b")
    link = peer.receiver("orders", credit=2, **PEEK_LOCK)
    world.gate.refuse[SettleMessages] = Refusal(SERVER_BUSY, "later")
    [(_, _, state)] = settle(peer, link, 0, 0, Accepted())
    assert str(state.error.condition) == "com.microsoft:server-busy"
    world.gate.refuse[SettleMessages] = Refusal(TIMED_OUT, "gone", known=False)
    assert settle(peer, link, 1, 1, Accepted()) == []
    assert str(peer.refusal(link).condition) == "amqp:link:detach-forced"


def test_a_receive_that_fails_ends_the_link(world: World, peer: Peer) -> None:
    world.gate.refuse[ReceiveMessages] = Refusal(SERVER_BUSY, "later")
    link = peer.receiver("orders", credit=1, **PEEK_LOCK)
    assert str(peer.refusal(link).condition) == "amqp:link:detach-forced"


def test_a_state_of_an_unknown_transaction_or_kind_is_refused(peer: Peer) -> None:
    send(peer, b"a")
    link = peer.receiver("orders", credit=2, **PEEK_LOCK)
    [(_, _, state)] = settle(peer, link, 0, 0, TransactionalState(txn_id=b"txn", outcome=Accepted()))
    assert str(state.error.condition) == "amqp:transaction:unknown-id"
    send(peer, b"b")
    [(_, _, state)] = settle(peer, link, 1, 1, Described(ULong(0x99), []))
    assert str(state.error.condition) == "amqp:not-implemented"


def test_a_queue_that_is_switched_off_or_forwards_gives_nothing_out(world: World, peer: Peer) -> None:
    create_queue(world, "off", availability=Availability.RECEIVE_DISABLED)
    assert str(peer.refusal(peer.receiver("off", **PEEK_LOCK)).condition) == "com.microsoft:entity-disabled"
    link = peer.receiver("orders", **PEEK_LOCK)
    switch(world, "orders", Availability.RECEIVE_DISABLED)
    peer.run()
    assert str(peer.refusal(link).condition) == "com.microsoft:entity-disabled"
    create_queue(world, "forwards", delivery=DeliverySettings(forward_to="orders"))
    assert str(peer.refusal(peer.receiver("forwards", **PEEK_LOCK)).condition) == "amqp:not-allowed"


def test_a_queue_that_is_deleted_ends_its_receivers_with_credit_and_without(world: World, peer: Peer) -> None:
    links = [peer.receiver("orders", credit=credit, **PEEK_LOCK) for credit in (0, 1)]
    world.wait(lambda done: world.gateway.keeper.delete("orders", QueueDescription, done))
    peer.run()
    assert [str(peer.refusal(link).condition) for link in links] == ["amqp:not-found"] * 2


# Sessions


@pytest.fixture
def sessions(world: World, peer: Peer) -> None:
    create_queue(world, "sessions", delivery=DeliverySettings(requires_session=True))
    for body, session in ((b"a1", "a"), (b"b1", "b"), (b"a2", "a")):
        send(peer, body, queue="sessions", properties=Properties(group_id=session))


def granted_id(peer: Peer, link: ReceiverLink) -> object:
    source = link.source
    assert source is not None and source.filter is not None
    return source.filter[SESSION_FILTER]


def test_a_named_session_is_echoed_and_tells_its_end(world: World, peer: Peer, sessions: None) -> None:
    link = accept_session(peer, "a", credit=5)
    assert granted_id(peer, link) == "a"
    assert link.attach is not None and link.attach.properties is not None
    ticks = link.attach.properties[LOCKED_UNTIL]
    assert isinstance(ticks, int)
    seconds = ticks / 10_000_000 - 62_135_596_800
    assert 0 < seconds - world.env.now_ms() / 1_000 <= 60
    assert peer.bodies(link) == [b"a1", b"a2"]


def test_the_next_free_session_is_the_one_with_the_oldest_message_in_the_form_that_was_asked(
    peer: Peer, sessions: None
) -> None:
    plain = accept_session(peer, None, credit=5)
    described = accept_session(peer, Described(ULong(0x137000000C), None), credit=5)
    assert granted_id(peer, plain) == "a"
    assert granted_id(peer, described) == Described(ULong(0x137000000C), "b")
    assert (peer.bodies(plain), peer.bodies(described)) == ([b"a1", b"a2"], [b"b1"])


def test_a_session_that_is_held_is_refused_and_none_that_is_free_times_out(peer: Peer, sessions: None) -> None:
    held = accept_session(peer, "a")
    assert peer.is_attached(held)
    assert str(peer.refusal(accept_session(peer, "a")).condition) == "com.microsoft:session-cannot-be-locked"
    accept_session(peer, "b")
    late = accept_session(peer, None, wait_ms=2_000)
    peer.run(1_500)
    assert peer.refusal(late) is None
    peer.run(1_000)
    assert str(peer.refusal(late).condition) == "com.microsoft:timeout"


def test_a_wait_for_a_session_lasts_as_long_as_it_was_asked_for(world: World, peer: Peer) -> None:
    """Longer than the one of who names no time, and than a connection may go without a right: it has shown one."""
    create_queue(world, "sessions", delivery=DeliverySettings(requires_session=True))
    late = accept_session(peer, None, wait_ms=70_000)
    peer.run(69_700)
    assert peer.refusal(late) is None
    peer.run(600)
    assert str(peer.refusal(late).condition) == "com.microsoft:timeout"


def test_the_end_of_a_link_ends_its_wait_for_a_session(world: World, peer: Peer) -> None:
    """However long it was to be: nobody waits, nobody uses the queue, and no session is held meanwhile."""
    create_queue(world, "sessions", delivery=DeliverySettings(requires_session=True))
    link = accept_session(peer, None, wait_ms=2**32 - 1)
    peer.run(5_000)
    assert counts(world, "sessions").unused_ms == 0
    link.detach()
    peer.run(5_000)
    assert counts(world, "sessions").unused_ms >= 4_000


def test_a_session_is_free_when_its_link_ends(peer: Peer, sessions: None) -> None:
    first = accept_session(peer, "a", credit=1)
    first.detach()
    peer.run()
    again = accept_session(peer, "a", credit=5)
    assert peer.bodies(again) == [b"a1", b"a2"]


def test_a_session_whose_lock_ends_detaches_its_link(peer: Peer, sessions: None) -> None:
    link = accept_session(peer, "a", credit=1)
    peer.run(61_000)
    assert str(peer.refusal(link).condition) == "com.microsoft:session-lock-lost"


def test_dead_letters_are_in_no_session_so_a_lock_that_is_lost_there_is_a_messages(peer: Peer, sessions: None) -> None:
    held = accept_session(peer, "a", credit=1)
    settle(peer, held, 0, 0, Rejected())
    link = peer.receiver("sessions/$DeadLetterQueue", credit=1, **PEEK_LOCK)
    [token] = [(message.delivery_annotations or {})[LOCK_TOKEN] for message in peer.received(link)]
    peer.run(61_000)
    [(_, _, state)] = settle(peer, link, 1, 1, Accepted())
    assert str(state.error.condition) == "com.microsoft:message-lock-lost"
    wanted = {"disposition-status": "completed", "lock-tokens": Array(AmqpType.UUID, (token,))}
    answer = ask(peer, "update-disposition", wanted, node="sessions/$DeadLetterQueue/$management")
    assert (answer.application_properties or {})["errorCondition"] == "com.microsoft:message-lock-lost"


def test_receivers_of_the_wrong_kind_are_refused_with_the_phrases_that_users_know(peer: Peer, sessions: None) -> None:
    refused = peer.refusal(peer.receiver("sessions", **PEEK_LOCK))
    assert str(refused.condition) == "amqp:not-allowed"
    assert refused.description.startswith(
        "It is not possible for an entity that requires sessions to create a non-sessionful message receiver"
    )
    refused = peer.refusal(accept_session(peer, "a", queue="orders"))
    assert "A sessionful message receiver cannot be created on an entity that does not require sessions" in (
        refused.description
    )
    refused = peer.refusal(accept_session(peer, 1))
    assert str(refused.condition) == "com.microsoft:argument-error"
    assert peer.is_attached(peer.receiver("sessions/$DeadLetterQueue", **PEEK_LOCK))
