"""What a Tracer is told of runs that come and go: of sends until they are answered, of deliveries until all is out."""

from __future__ import annotations

from typing import Any

import pytest

from hubweir.amqp.messaging.outcome import Accepted
from hubweir.broker.commands.forwarding import StoreTransfer
from hubweir.broker.commands.fragment import EnqueueMessages
from hubweir.broker.commands.partition import AppendEvents
from hubweir.broker.commands.process import Refusal
from hubweir.broker.commands.transaction import CommitTransaction
from hubweir.errors import RESOURCE_LIMIT, SERVER_BUSY, TIMED_OUT
from hubweir.gateway.amqp.tests.controller import Controller, send_in, settle_in
from hubweir.gateway.amqp.tests.filled_partition import PARTITION, fill
from hubweir.gateway.amqp.tests.queue_world import PEEK_LOCK, counts, create_queue, queue_world, send, switch
from hubweir.gateway.amqp.tests.world import Peer, World, event
from hubweir.gateway.forwarder import GATHER_MS
from hubweir.namespace.delivery_settings import DeliverySettings
from hubweir.namespace.entity import Availability
from hubweir.queue.traced_step import Step


class Told:
    """A trace that notes when it began, and how and when it ended."""

    def __init__(self, world: World, what: str, entity: str) -> None:
        self._world = world
        self.what, self.entity = what, entity
        self.ends: list[str] = []
        self.ended_ms = -1

    def ended(self, refused: str = "") -> None:
        self.ends.append(refused)
        self.ended_ms = self._world.env.monotonic_ms()


class Notes:
    """A Tracer for which everything is sampled."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.traces: list[Told] = []
        world.process.tracer = self
        for queue in (world.gateway.append_queue, world.gateway.enqueue_queue):
            queue.tracer = self
        world.gateway.forwarder.tracer = self

    def sends(self, entity: str, run: Any, began_s: float) -> Told:
        assert b"tea" in run and began_s <= self._world.env.monotonic_s()
        return self._note("send", entity)

    def delivers(self, entity: str, run: Any) -> Told:
        assert len(run)
        return self._note("deliver", entity)

    def begins(self, step: Step, entity: str, run: Any) -> Told:
        assert b"tea" in run
        return self._note(step.value, entity)

    def _note(self, what: str, entity: str) -> Told:
        self.traces.append(Told(self._world, what, entity))
        return self.traces[-1]

    def named(self, what: str) -> list[Told]:
        return [each for each in self.traces if each.what == what]


@pytest.mark.parametrize(
    ("command", "address", "entity"), [(AppendEvents, "hub/Partitions/0", "hub"), (EnqueueMessages, "orders", "orders")]
)
@pytest.mark.parametrize("condition", [None, SERVER_BUSY, TIMED_OUT])
def test_a_send_is_traced_until_its_answer_and_knows_a_refusal(
    command: type, address: str, entity: str, condition: Any
) -> None:
    world = queue_world() if entity == "orders" else World()
    notes, peer = Notes(world), world.trusted_peer()
    link = peer.sender(address)
    if condition is None:
        world.gate.hold[command] = []
    else:
        world.gate.refuse[command] = Refusal(condition, "no", known=condition is SERVER_BUSY)
    for body in (b"tea", b"more tea"):
        link.send(event(body), settled=False)
    peer.run()
    if condition is None:
        [told] = notes.traces
        assert told.ends == [], "it is on its way"
        world.gate.release(command)
        peer.run()
    [told] = notes.traces
    assert (told.what, told.entity) == ("send", entity)
    assert told.ends == ["" if condition is None else condition.symbol]


def test_a_run_is_delivered_when_its_last_event_is_out() -> None:
    world = World()
    peer = world.trusted_peer()
    fill(peer, 4)
    notes = Notes(world)
    link = peer.receiver(PARTITION, credit=3)
    [told] = notes.named("deliver")
    assert told.ends == [] and len(peer.received(link)) == 3, "one of its events waits for credit"
    link.grant(1)
    peer.run()
    assert told.ends == [""] and told.entity == "hub" and len(peer.received(link)) == 4
    peer.run(120_000)
    assert len(notes.named("deliver")) == 1, "a read that brought nothing delivers nothing"


def test_messages_are_delivered_when_the_last_one_is_out() -> None:
    world = queue_world()
    peer = world.trusted_peer()
    send(peer, b"tea", b"more tea", b"coffee")
    notes = Notes(world)
    link = peer.receiver("orders", credit=2, **PEEK_LOCK)
    [told] = notes.named("deliver")
    assert told.ends == [""] and told.entity == "orders" and len(peer.received(link)) == 2
    link.grant(1)
    peer.run()
    assert [each.ends for each in notes.named("deliver")] == [[""], [""]]


def test_a_link_that_ends_with_a_run_in_hand_delivers_none_of_it(peer: Peer, world: World) -> None:
    fill(peer, 4)
    notes = Notes(world)
    link = peer.receiver(PARTITION, credit=3)
    link.detach()
    peer.run()
    assert [each.ends for each in notes.named("deliver")] == [[]]


def test_a_discharge_is_a_step_of_what_is_sent_to_each_log() -> None:
    world = queue_world()
    create_queue(world, "others")
    notes, peer = Notes(world), world.trusted_peer()
    controller = Controller(peer)
    txn_id = controller.declare()
    for name in ("orders", "others"):
        assert send_in(peer, txn_id, peer.sender(name), b"tea") == ["accepted"]
    assert notes.traces == [], "nothing is done yet"
    world.gate.hold[CommitTransaction] = []
    assert controller.commit(txn_id, wait_ms=1_000) == ""
    assert [(each.what, each.entity, each.ends) for each in notes.traces] == [
        ("discharge", "orders", []), ("discharge", "others", []),
    ]  # fmt: skip
    world.gate.release(CommitTransaction)
    peer.run(1_000)
    assert [each.ends for each in notes.traces] == [[""], [""]]


def test_a_discharge_that_is_refused_says_so_and_a_rollback_is_no_step() -> None:
    world = queue_world()
    notes, peer = Notes(world), world.trusted_peer()
    controller, sender = Controller(peer), peer.sender("orders")
    world.gate.refuse[CommitTransaction] = Refusal(SERVER_BUSY, "no")
    txn_id = controller.declare()
    send_in(peer, txn_id, sender, b"tea")
    controller.commit(txn_id)
    assert [each.ends for each in notes.traces] == [[SERVER_BUSY.symbol]]
    txn_id = controller.declare()
    send_in(peer, txn_id, sender, b"tea")
    controller.roll_back(txn_id)
    assert len(notes.traces) == 1


def test_a_discharge_that_sends_nothing_is_no_step() -> None:
    world = queue_world()
    send(world.trusted_peer(), b"tea")
    notes, peer = Notes(world), world.trusted_peer()
    link = peer.receiver("orders", credit=1, **PEEK_LOCK)
    assert len(peer.received(link)) == 1
    controller = Controller(peer)
    assert controller.commit(controller.declare()) == "accepted"
    txn_id = controller.declare()
    settle_in(peer, txn_id, link, 0, Accepted())
    assert controller.commit(txn_id) == "accepted"
    assert notes.named("discharge") == []


FULL, UNKNOWN = Refusal(RESOURCE_LIMIT, "full"), Refusal(TIMED_OUT, "nobody knows", known=False)


@pytest.mark.parametrize(
    ("refusal", "ends"), [(None, ""), (FULL, RESOURCE_LIMIT.symbol), (UNKNOWN, TIMED_OUT.symbol)],
    ids=["stored", "full", "unknown"],
)  # fmt: skip
def test_a_forward_is_a_step_until_its_destination_has_said_what_it_does(refusal: Refusal | None, ends: str) -> None:
    world = World()
    create_queue(world, "last")
    create_queue(world, "first", delivery=DeliverySettings(forward_to="last"))
    world.run_for(2 * GATHER_MS)
    notes, peer = Notes(world), world.trusted_peer()
    if refusal is None:
        world.gate.hold[StoreTransfer] = []
    else:
        world.gate.refuse[StoreTransfer] = refusal
    send(peer, b"tea", b"more tea", queue="first")
    world.run_for(200)
    if refusal is None:
        [told] = notes.named("forward")
        assert told.ends == [], "it is on its way"
        world.gate.release(StoreTransfer)
        world.run_for(200)
    first, *_ = notes.named("forward")
    assert first.entity == "first" and first.ends == [ends]
    world.gate.refuse.pop(StoreTransfer, None)
    world.run_for(60_000)
    last = notes.named("forward")[-1]
    assert last.ends == [""] and counts(world, "last").active == 2


def test_a_forward_that_is_refused_for_good_says_why() -> None:
    world = World()
    create_queue(world, "last")
    create_queue(world, "first", delivery=DeliverySettings(forward_to="last"))
    world.run_for(2 * GATHER_MS)
    notes, peer = Notes(world), world.trusted_peer()
    switch(world, "last", Availability.DISABLED)
    send(peer, b"tea", queue="first")
    world.run_for(200)
    [told] = notes.named("forward")
    assert counts(world, "first").transfer_dead_lettered == 1
    assert told.ends and told.ends != [""] and " " not in told.ends[0]
