"""What entities forward moves by commands to brokers, whatever these refuse, and whenever the operator changes it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from hubweir.amqp.messaging.message import Header
from hubweir.broker.commands.command import Owner
from hubweir.broker.commands.forwarding import EndTransfer, ListOpenTransfers, StoreTransfer, TakeTransfer
from hubweir.broker.commands.process import CloseOwner, Refusal
from hubweir.errors import INTERNAL_ERROR, RESOURCE_LIMIT, STORE_OFFLINE
from hubweir.gateway.amqp.tests.queue_world import counts, create_queue, send, switch
from hubweir.gateway.amqp.tests.world import Peer, World
from hubweir.gateway.forwarder import FIRST_RETRY_MS, GATHER_MS, LAST_RETRY_MS, Forwarder
from hubweir.namespace.delivery_settings import DeliverySettings
from hubweir.namespace.entity import Availability
from hubweir.namespace.queue_description import QueueDescription
from hubweir.queue.forwarding import TransferEnd
from hubweir.queue.sub_queue import SubQueue

FULL = Refusal(RESOURCE_LIMIT, "full")
AWAY = Refusal(STORE_OFFLINE, "away")
UNKNOWN = Refusal(INTERNAL_ERROR, "nobody knows", known=False)


@pytest.fixture
def world() -> World:
    world = World()
    create_queue(world, "last")
    create_queue(world, "first", delivery=DeliverySettings(forward_to="last"))
    world.run_for(2 * GATHER_MS)
    return world


@pytest.fixture
def peer(world: World) -> Peer:
    return world.trusted_peer()


def forward_to(world: World, name: str, destination: str) -> None:
    """Set where a queue forwards to, as the operator does."""

    def change(known: QueueDescription, _: object) -> QueueDescription:
        return replace(known, delivery=DeliverySettings(forward_to=destination))

    changed = world.wait(lambda done: world.gateway.keeper.change(name, QueueDescription, change, done))
    assert isinstance(changed, QueueDescription), changed


def active(world: World, *names: str) -> list[int]:
    return [counts(world, name).active for name in names or ("first", "last")]


def test_a_message_moves_at_once_and_nothing_is_asked_while_nothing_comes(world: World, peer: Peer) -> None:
    send(peer, b"a", b"b", queue="first")
    world.run_for(200)
    assert active(world) == [0, 2]
    commands = len(world.gate.commands)
    world.run_for(60_000)
    assert len(world.gate.commands) == commands


def test_messages_wait_for_a_destination_that_is_full(world: World, peer: Peer) -> None:
    world.gate.refuse[StoreTransfer] = FULL
    send(peer, b"a", queue="first")
    world.run_for(60_000)
    assert active(world) == [1, 0]
    assert counts(world, "first").transfer_dead_lettered == 0
    assert 5 <= len(world.gate.sent(StoreTransfer)) <= 12  # later and later
    del world.gate.refuse[StoreTransfer]
    world.run_for(LAST_RETRY_MS + 500)
    assert active(world) == [0, 1]


def test_messages_that_wait_for_a_full_destination_expire(world: World, peer: Peer) -> None:
    world.gate.refuse[StoreTransfer] = FULL
    send(peer, b"a", queue="first", header=Header(ttl=5_000))
    world.run_for(4_000)
    assert active(world) == [1, 0]
    assert {each.how for each in world.gate.sent(EndTransfer)} == {TransferEnd.RETURNED}
    world.run_for(5_000)
    assert active(world) == [0, 0]


def test_an_answer_that_leaves_it_open_gives_no_message_back(world: World, peer: Peer) -> None:
    world.gate.refuse[StoreTransfer] = Refusal(RESOURCE_LIMIT, "full, perhaps", known=False)
    send(peer, b"a", queue="first")
    world.run_for(10_000)
    assert world.gate.sent(EndTransfer) == [] and len(world.gate.sent(StoreTransfer)) > 2


@pytest.mark.parametrize("kind", [TakeTransfer, StoreTransfer, EndTransfer])
@pytest.mark.parametrize("refusal", [AWAY, UNKNOWN], ids=["away", "unknown"])
def test_a_broker_that_is_away_is_asked_again_and_nothing_moves_twice(
    world: World, peer: Peer, kind: type, refusal: Refusal
) -> None:
    world.gate.refuse[kind] = refusal
    send(peer, b"a", queue="first")
    world.run_for(10_000)
    send(peer, b"b", queue="first")
    del world.gate.refuse[kind]
    world.run_for(LAST_RETRY_MS + 500)
    assert active(world) == [0, 2]


def test_a_transfer_moves_on_when_the_operator_ends_the_forward_and_what_comes_later_stays(
    world: World, peer: Peer
) -> None:
    world.gate.hold[StoreTransfer] = []
    send(peer, b"moves on", queue="first")
    world.run_for(200)
    forward_to(world, "first", "")
    send(peer, b"stays", queue="first")
    world.gate.release(StoreTransfer)
    world.run_for(1_000)
    assert active(world) == [1, 1]
    forward_to(world, "first", "last")
    world.run_for(1_000)
    assert active(world) == [0, 2]


def test_what_is_sent_right_behind_the_end_of_a_forward_stays(world: World, peer: Peer) -> None:
    forward_to(world, "first", "")
    send(peer, b"stays", queue="first")
    world.run_for(5_000)
    assert active(world) == [1, 0]


def test_a_transfer_goes_where_it_was_to_go_and_the_next_one_to_the_new_destination(world: World, peer: Peer) -> None:
    create_queue(world, "other")
    world.gate.hold[StoreTransfer] = []
    send(peer, b"a", queue="first")
    world.run_for(200)
    forward_to(world, "first", "other")
    send(peer, b"b", queue="first")
    world.gate.release(StoreTransfer)
    world.run_for(1_000)
    assert active(world, "first", "last", "other") == [0, 1, 1]


def restarted(world: World, *, power_cut: bool) -> World:
    world.env.crash(power_cut=power_cut)
    again = World(env=world.env.restart())
    again.gateway.forwarder.start()
    again.run_for(5_000)
    return again


@pytest.mark.parametrize("power_cut", [False, True])
@pytest.mark.parametrize("kind", [StoreTransfer, EndTransfer])
def test_an_open_transfer_goes_on_at_a_start_also_when_the_forward_has_ended(
    world: World, peer: Peer, kind: type, power_cut: bool
) -> None:
    world.gate.hold[kind] = []
    send(peer, b"a", queue="first")
    world.run_for(500)
    forward_to(world, "first", "")
    again = restarted(world, power_cut=power_cut)
    assert active(again) == [0, 1]
    assert again.gateway.forwarder._forwards == {}


def test_an_open_transfer_goes_on_when_its_log_is_opened_late(world: World, peer: Peer) -> None:
    """The start hears of none, and nothing forwards any more: the broker says of each log that it opens what is so."""
    world.gate.hold[StoreTransfer] = []
    send(peer, b"a", queue="first")
    world.run_for(500)
    forward_to(world, "first", "")
    world.env.crash(power_cut=False)
    again = World(env=world.env.restart())
    again.gate.refuse[ListOpenTransfers] = AWAY
    again.gateway.forwarder.start()
    again.run_for(5_000)
    assert active(again) == [0, 1]
    assert again.gateway.forwarder._forwards == {} == again.gateway.forwarder._by_name


def test_a_change_of_the_catalog_is_looked_at_by_those_alone_whom_it_concerns(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many forwards there are: a change stops the loop no longer for it."""
    for number in range(5):
        create_queue(world, f"source-{number}", delivery=DeliverySettings(forward_to="LAST"))
    world.run_for(2 * GATHER_MS)
    looked: list[str] = []
    destination = Forwarder.destination

    def counted(forwarder: Forwarder, source: str, entity_id: str, sub_queue: SubQueue) -> bytes | None:
        looked.append(source)
        return destination(forwarder, source, entity_id, sub_queue)

    monkeypatch.setattr(Forwarder, "destination", counted)
    create_queue(world, "unconcerned")
    switch(world, "unconcerned", Availability.SEND_DISABLED)
    world.run_for(2 * GATHER_MS)
    assert looked == []
    forward_to(world, "source-1", "unconcerned")
    assert set(looked) == {"source-1"}
    looked.clear()
    switch(world, "last", Availability.SEND_DISABLED)
    assert set(looked) == {"first", "source-0", "source-2", "source-3", "source-4"}
    looked.clear()
    switch(world, "unconcerned", Availability.ACTIVE)
    assert set(looked) == {"source-1"}


def test_a_destination_that_is_switched_off_is_asked_whether_it_has_the_messages(world: World, peer: Peer) -> None:
    world.gate.refuse[EndTransfer] = UNKNOWN
    send(peer, b"stored", queue="first")
    world.run_for(500)
    assert active(world, "last") == [1]
    switch(world, "last", Availability.SEND_DISABLED)
    del world.gate.refuse[EndTransfer]
    world.run_for(LAST_RETRY_MS)
    assert counts(world, "first").transfer_dead_lettered == 0 and active(world) == [0, 1]
    send(peer, b"refused", queue="first")
    world.run_for(500)
    assert counts(world, "first").transfer_dead_lettered == 1 and active(world) == [0, 1]


def test_messages_for_a_destination_that_is_gone_wait_among_transfer_dead_letters(world: World, peer: Peer) -> None:
    world.gate.hold[StoreTransfer] = []
    send(peer, b"a", queue="first")
    world.run_for(200)
    world.wait(lambda done: world.gateway.keeper.delete("last", QueueDescription, done))
    create_queue(world, "last")  # another one of the same name: the transfer was not to go there
    world.gate.release(StoreTransfer)
    world.run_for(5_000)
    assert counts(world, "first").transfer_dead_lettered == 1 and active(world) == [0, 0]
    send(peer, b"b", queue="first")
    world.run_for(1_000)
    assert active(world) == [0, 1]


def test_a_source_that_gives_nothing_out_forwards_nothing(world: World, peer: Peer) -> None:
    switch(world, "first", Availability.RECEIVE_DISABLED)
    send(peer, b"a", queue="first")
    world.run_for(1_000)
    assert active(world) == [1, 0]
    switch(world, "first", Availability.ACTIVE)
    world.run_for(1_000)
    assert active(world) == [0, 1]


def test_a_source_that_is_deleted_is_forgotten(world: World) -> None:
    world.wait(lambda done: world.gateway.keeper.delete("first", QueueDescription, done))
    world.run_for(LAST_RETRY_MS)
    assert world.gateway.forwarder._forwards == {}


def test_a_gateway_that_is_passed_over_asks_again_after_a_while(world: World, peer: Peer) -> None:
    [taken] = world.gate.sent(TakeTransfer)[-1:]
    other = Owner(5, -1)
    answers: list[object] = []
    world.broker.submit(TakeTransfer(taken.log_id, other, taken.sub_queue, taken.destination), answers.append)
    world.run_for(FIRST_RETRY_MS // 2)
    assert world.gate.sent(TakeTransfer)[-1:] == [taken] and answers == []
    world.broker.submit(CloseOwner(other), lambda answer: None)
    world.run_for(FIRST_RETRY_MS)
    assert len(answers) == 1
    send(peer, b"a", queue="first")
    world.run_for(500)
    assert active(world) == [0, 1]


def test_a_gateway_that_stops_begins_nothing_more(world: World, peer: Peer) -> None:
    world.gateway.forwarder.stop()
    send(peer, b"a", queue="first")
    world.run_for(20_000)
    assert world.gate.sent(StoreTransfer) == []
    assert world.gate.sent(ListOpenTransfers) == []


def test_many_messages_move_in_batches(world: World, peer: Peer) -> None:
    world.gate.hold[TakeTransfer] = []
    forward_to(world, "first", "")
    world.run_for(200)
    world.gate.release(TakeTransfer)
    for _ in range(10):
        send(peer, *(b"x" * 100 for _ in range(50)), queue="first")
    forward_to(world, "first", "last")
    world.run_for(2_000)
    assert active(world) == [0, 500]
    assert len(world.gate.sent(StoreTransfer)) <= 3
