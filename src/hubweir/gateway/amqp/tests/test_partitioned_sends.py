"""Sends to a queue of 16 fragments at three brokers: by key, in turn without one, and while some of them are away."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hubweir.amqp.messaging.batch import BATCH_FORMAT, pack_batch
from hubweir.amqp.messaging.message import Properties
from hubweir.broker.commands.fragment import EnqueueMessages
from hubweir.broker.commands.process import Refusal
from hubweir.errors import (
    ENTITY_MOVED,
    RESOURCE_LIMIT,
    SERVER_BUSY,
    STORE_OFFLINE,
    TIMED_OUT,
)
from hubweir.gateway.amqp.tests.partitioned_world import (
    FRAGMENTS,
    KEY,
    PARTITIONED,
    fragment_of,
    in_session,
    in_turn,
    outcomes,
    partitioned_world,
)
from hubweir.gateway.amqp.tests.queue_world import create_queue, send, stored
from hubweir.gateway.amqp.tests.world import Peer, World, event, keyed
from hubweir.gateway.fragment_turn import AWAY_MS
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.storage_settings import StorageSettings
from hubweir.testing.memory_faults import Fault


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return partitioned_world(monkeypatch)


@pytest.fixture
def gone(world: World) -> Callable[[int], None]:
    """Lets the broker of a store refuse what is sent to it, as while its logs are offline."""

    def refuse(store: int) -> None:
        world.gates[store].refuse[EnqueueMessages] = Refusal(SERVER_BUSY, "its log is offline")

    return refuse


def runs(world: World) -> list[EnqueueMessages]:
    return [each for gate in world.gates for each in gate.sent(EnqueueMessages)]


def store_of(world: World, fragment: int, queue: str = "orders") -> int:
    entity = world.namespace.find(queue, QueueDescription)
    assert entity is not None
    return entity.placements[fragment].store_index


def test_messages_of_one_session_or_key_lie_in_one_fragment_in_their_order(world: World, peer: Peer) -> None:
    link = peer.sender("orders")
    sessions = [f"session-{number}" for number in range(120)]
    payloads = [in_session(f"{name}/{turn}".encode(), name) for turn in range(3) for name in sessions]
    payloads += [keyed(f"{name}/key".encode(), name) for name in sessions]
    assert set(outcomes(peer, link, *payloads)) == {"accepted"}
    expected: list[list[str]] = [[] for _ in range(FRAGMENTS)]
    for turn in ("0", "1", "2", "key"):
        for name in sessions:
            expected[fragment_of(name)].append(f"{name}/{turn}")
    assert [[body.decode() for body in bodies] for bodies in stored(world)] == expected
    assert all(expected), "different sessions spread"


def test_a_message_id_is_a_key_where_duplicates_are_detected_and_only_there(world: World, peer: Peer) -> None:
    create_queue(world, "once", storage=StorageSettings(is_partitioned=True, requires_duplicate_detection=True))
    for _ in range(2):
        for number in range(4):
            send(peer, b"m%d" % number, queue="once", properties=Properties(message_id=f"m{number}"))
            send(peer, b"m%d" % number, queue="orders", properties=Properties(message_id=f"m{number}"))
    assert [[b"m%d" % number for number in range(4) if fragment_of(f"m{number}") == fragment]
            for fragment in range(FRAGMENTS)] == stored(world, "once")  # fmt: skip
    turn = [b"m%d" % number for _ in range(2) for number in range(4)]
    assert sorted(body for bodies in stored(world, "orders") for body in bodies) == sorted(turn)
    assert all(len(bodies) <= 1 for bodies in stored(world, "orders"))


def test_a_duplicate_is_one_of_the_same_key(world: World, peer: Peer) -> None:
    create_queue(world, "once", storage=StorageSettings(is_partitioned=True, requires_duplicate_detection=True))
    same = [key for key in map(str, range(200)) if fragment_of(key) == 5][:2]
    for key in (*same, *same):
        send(
            peer, key.encode(), queue="once", properties=Properties(message_id="m"), message_annotations={KEY: key}
        )  # fmt: skip
    assert stored(world, "once")[5] == [key.encode() for key in same]


def test_what_has_no_key_goes_to_the_fragments_in_turn(world: World, peer: Peer) -> None:
    link = peer.sender("orders")
    for number in range(2 * FRAGMENTS):
        assert outcomes(peer, link, event(b"%d" % number)) == ["accepted"]
    expected = [[b"%d" % number, b"%d" % (number + FRAGMENTS)] for number in range(FRAGMENTS)]
    assert in_turn(stored(world), b"0") == expected


def test_what_comes_in_one_turn_without_a_key_is_one_run(world: World, peer: Peer) -> None:
    link = peer.sender("orders")
    assert outcomes(peer, link, *(event(b"%d" % number) for number in range(50))) == ["accepted"] * 50
    assert [run.messages for run in runs(world)] == [50]


def test_a_turn_of_both_kinds_is_sorted(world: World, peer: Peer) -> None:
    link = peer.sender("orders")
    payloads = [event(b"any") if number % 3 else keyed(b"keyed", f"key-{number}") for number in range(60)]
    assert outcomes(peer, link, *payloads) == ["accepted"] * 60
    bodies = stored(world)
    keyed_in = [sum(fragment_of(f"key-{number}") == fragment for number in range(0, 60, 3)) for fragment in range(16)]
    assert [each.count(b"keyed") for each in bodies] == keyed_in
    assert sorted(each.count(b"any") for each in bodies) == [0] * 15 + [40]


def test_a_batch_lies_in_one_fragment_or_is_refused_alone(world: World, peer: Peer) -> None:
    link = peer.sender("orders")
    apart = [keyed(b"x", "key-1"), keyed(b"x", "key-2")]
    assert fragment_of("key-1") != fragment_of("key-2")
    together = [event(b"goes along"), keyed(b"one", "key-1"), keyed(b"two", "key-1")]
    batches = [pack_batch(each) for each in (together, apart, [event(b"any"), event(b"any")], apart)]
    assert outcomes(peer, link, *batches, message_format=BATCH_FORMAT) == [
        "accepted", "amqp:not-allowed", "accepted", "amqp:not-allowed",
    ]  # fmt: skip
    bodies = stored(world)
    assert [body for body in bodies[fragment_of("key-1")] if body != b"any"] == [b"goes along", b"one", b"two"]
    assert sorted(sum(bodies, [])) == [b"any", b"any", b"goes along", b"one", b"two"]


def test_a_partition_key_that_is_not_the_session_id_is_refused(peer: Peer) -> None:
    link = peer.sender("orders")
    other = event(b"x", properties=Properties(group_id="s"), message_annotations={KEY: "k"})
    assert outcomes(peer, link, other, in_session(b"y", "s")) == ["amqp:not-allowed", "accepted"]


def test_what_is_kept_in_no_fragment_gives_its_credit_back(peer: Peer) -> None:
    link = peer.sender("orders")
    begun = link.credit
    apart = pack_batch([keyed(b"x", "key-1"), keyed(b"x", "key-2")])
    for _ in range(3 * begun // 100):
        assert set(outcomes(peer, link, *[apart] * 100, message_format=BATCH_FORMAT)) == {"amqp:not-allowed"}
    assert link.credit > 0


# Fragments that are away


def test_a_key_whose_fragment_is_away_is_refused_as_busy_and_no_other(
    world: World, peer: Peer, gone: Callable[[int], None]
) -> None:
    link = peer.sender("orders")
    keys = [f"key-{number}" for number in range(30)]
    away = store_of(world, fragment_of(keys[0]))
    for refusal in (SERVER_BUSY, STORE_OFFLINE, ENTITY_MOVED):
        world.gates[away].refuse[EnqueueMessages] = Refusal(refusal, "away")
        told = outcomes(peer, link, *(keyed(b"x", key) for key in keys))
        assert told == [
            "com.microsoft:server-busy" if store_of(world, fragment_of(key)) == away else "accepted" for key in keys
        ]


def test_what_has_no_key_goes_to_another_fragment_before_its_sender_hears_of_it(
    world: World, peer: Peer, gone: Callable[[int], None]
) -> None:
    gone(1)
    link = peer.sender("orders")
    for number in range(2 * FRAGMENTS):
        assert outcomes(peer, link, event(b"%d" % number)) == ["accepted"]
    bodies = stored(world)
    assert sorted(sum(bodies, [])) == sorted(b"%d" % number for number in range(2 * FRAGMENTS)), "each once"
    assert [not each for each in bodies] == [store_of(world, fragment) == 1 for fragment in range(FRAGMENTS)]


def test_a_fragment_that_refused_is_passed_over_for_a_while_and_asked_again_then(
    world: World, peer: Peer, gone: Callable[[int], None]
) -> None:
    gone(1)
    link = peer.sender("orders")
    own = sum(store_of(world, fragment) == 1 for fragment in range(FRAGMENTS))
    for _ in range(15):  # 50 ms each
        outcomes(peer, link, event(b"x"))
    asked = len(world.gates[1].sent(EnqueueMessages))
    assert 0 < asked <= own, "each of its fragments once"
    del world.gates[1].refuse[EnqueueMessages]
    peer.run(AWAY_MS)
    for _ in range(FRAGMENTS):
        outcomes(peer, link, event(b"y"))
    assert [each.count(b"y") for each in stored(world)] == [1] * FRAGMENTS


def test_a_broker_that_is_not_up_is_not_asked(world: World, peer: Peer) -> None:
    world.gates[2].is_up = False
    link = peer.sender("orders")
    for _ in range(FRAGMENTS):
        assert outcomes(peer, link, event(b"x")) == ["accepted"]
    assert world.gates[2].sent(EnqueueMessages) == []


def test_when_all_are_away_each_is_asked_once_and_the_sender_is_told_to_wait(world: World, peer: Peer) -> None:
    link = peer.sender("orders")
    for gate in world.gates:
        gate.refuse[EnqueueMessages] = Refusal(STORE_OFFLINE, "away")
    assert outcomes(peer, link, event(b"x")) == ["com.microsoft:server-busy"]
    assert sorted(run.log_id for run in runs(world)) == sorted({run.log_id for run in runs(world)})
    assert len(runs(world)) == FRAGMENTS
    assert outcomes(peer, link, event(b"x")) == ["com.microsoft:server-busy"]
    assert len(runs(world)) == FRAGMENTS + 1, "while all are passed over, one is asked"
    for gate in world.gates:
        gate.refuse.clear()
    assert outcomes(peer, link, event(b"x")) == ["accepted"]


def test_what_may_be_stored_is_never_stored_a_second_time(world: World, peer: Peer) -> None:
    for gate in world.gates:
        gate.refuse[EnqueueMessages] = Refusal(TIMED_OUT, "gone", known=False)
    link = peer.sender("orders")
    link.send(event(b"x"), settled=False)
    peer.run()
    assert len(runs(world)) == 1
    assert str(peer.refusal(link).condition) == "amqp:link:detach-forced"


@pytest.mark.parametrize("fault", [Fault.SYNC_EIO, Fault.SHORT, Fault.ENOSPC])
def test_a_run_that_a_failing_disk_refused_is_stored_whole_by_another_fragment(
    world: World, peer: Peer, fault: Fault
) -> None:
    link = peer.sender("orders")
    assert outcomes(peer, link, event(b"before")) == ["accepted"]
    world.env.files.plan(fault)
    payloads = [event(b"%d" % number * 300) for number in range(400)]  # several batches
    begun = len(peer.outcomes(link))
    for each in payloads:
        link.send(each, settled=False)
    peer.run(5_000)
    assert {how for _, _, how in peer.outcomes(link)[begun:]} == {"accepted"}
    assert sorted(sum(stored(world), [])) == sorted([b"before", *(b"%d" % number * 300 for number in range(400))])
    logs = [run.log_id for run in runs(world)]
    assert len(logs) == len(set(logs)) == 3, "one before, one that was refused, one that was not"


def test_a_fragment_that_is_full_is_not_away(world: World, peer: Peer) -> None:
    for gate in world.gates:
        gate.refuse[EnqueueMessages] = Refusal(RESOURCE_LIMIT, "full")
    link = peer.sender("orders")
    assert outcomes(peer, link, event(b"x")) == ["amqp:resource-limit-exceeded"]
    assert len(runs(world)) == 1


def test_a_queue_that_is_deleted_ends_its_links_and_another_of_its_name_begins_anew(world: World, peer: Peer) -> None:
    link = peer.sender("orders")
    assert outcomes(peer, link, event(b"x"), keyed(b"y", "k")) == ["accepted"] * 2
    world.wait(lambda done: world.gateway.keeper.delete("orders", QueueDescription, done))
    peer.run()
    assert str(peer.refusal(link).condition) == "amqp:not-found"
    create_queue(world, "orders", storage=PARTITIONED)
    send(peer, b"new")
    assert sum(stored(world), []) == [b"new"]
