"""$management: what clients read, and what hubweir's own tools change."""

from __future__ import annotations

import pytest

from hubweir.amqp.messaging.message import Message, Properties, ValueBody, encode_message
from hubweir.amqp.types.format_codes import AmqpType
from hubweir.amqp.types.values import Array, Int, Symbol, Timestamp
from hubweir.auth.shared_access_signature import make_token
from hubweir.gateway.amqp.management_forms import YEAR_ONE_MS
from hubweir.gateway.amqp.management_node import CAPTURE, STEPS
from hubweir.gateway.amqp.tests.world import KEY, ROOT, Peer, World, event, quotas, status_of
from hubweir.messaging_store.log import Durability

HUB, PARTITION, GROUP = "com.microsoft:eventhub", "com.microsoft:partition", "com.microsoft:consumergroup"


@pytest.fixture
def world() -> World:
    return World(hubs={"Hub": 3})


def ask(peer: Peer, operation: str, kind: str, name: str = "Hub", body: object = None, **properties: object) -> Message:
    said: dict[str, object] = {"operation": operation, "type": kind, "name": name, **properties}
    return peer.request(
        "$management",
        Message(properties=Properties(message_id="m"), application_properties=said, body=ValueBody(body)),
    )


def map_of(answer: Message) -> dict[str, object]:
    assert isinstance(answer.body, ValueBody)
    assert isinstance(answer.body.value, dict)
    return answer.body.value


def test_a_hub_has_the_six_keys_in_the_types_that_clients_read(peer: Peer) -> None:
    answer = ask(peer, "READ", HUB, "hUB")
    found = map_of(answer)
    assert status_of(answer) == (200, "OK")
    assert found == {
        "name": "Hub",
        "type": HUB,
        "created_at": found["created_at"],
        "partition_count": 3,
        "partition_ids": Array(AmqpType.STRING, ("0", "1", "2")),
        "georeplication_factor": 1,
    }
    types = {key: type(value) for key, value in found.items()}
    assert types == {
        "name": str,
        "type": str,
        "created_at": Timestamp,
        "partition_count": Int,
        "partition_ids": Array,
        "georeplication_factor": Int,
    }


def test_an_empty_partition_has_the_values_that_clients_start_from(peer: Peer) -> None:
    found = map_of(ask(peer, "READ", PARTITION, partition="1"))
    assert found == {
        "name": "Hub",
        "type": PARTITION,
        "partition": "1",
        "begin_sequence_number": -1,
        "last_enqueued_sequence_number": -1,
        "last_enqueued_offset": "-1",
        "last_enqueued_time_utc": YEAR_ONE_MS,
        "is_partition_empty": True,
    }
    assert type(found["last_enqueued_time_utc"]) is Timestamp
    assert type(found["begin_sequence_number"]) is int  # a long


def test_a_filled_partition_tells_its_bounds_and_reading_changes_nothing(world: World, peer: Peer) -> None:
    link = peer.sender("Hub/Partitions/1")
    for _ in range(3):
        link.send(event(b"x"), settled=False)
    peer.run()
    first = map_of(ask(peer, "READ", PARTITION, partition="1"))
    assert (first["begin_sequence_number"], first["last_enqueued_sequence_number"]) == (0, 2)
    assert first["is_partition_empty"] is False
    world.run_for(5_000)
    assert map_of(ask(world.trusted_peer(), "READ", PARTITION, partition="1")) == first


@pytest.mark.parametrize(
    ("kind", "name", "partition", "code", "condition", "text"),
    [
        (HUB, "nowhere", "", 404, "amqp:not-found", "The messaging entity 'sb://localhost/nowhere' could not be found"),
        (PARTITION, "nowhere", "0", 404, "amqp:not-found", "could not be found"),
        (
            PARTITION,
            "Hub",
            "3",
            400,
            "com.microsoft:argument-out-of-range",
            "The specified partition is invalid for an EventHub partition sender or receiver",
        ),
        (PARTITION, "Hub", "-1", 400, "com.microsoft:argument-out-of-range", "specified partition is invalid"),
        ("com.microsoft:queue", "Hub", "", 501, "amqp:not-implemented", "does not exist here"),
    ],
)
def test_failures_have_status_condition_and_the_text_that_clients_match(
    peer: Peer, kind: str, name: str, partition: str, code: int, condition: str, text: str
) -> None:
    answer = ask(peer, "READ", kind, name, partition=partition)
    status, said = status_of(answer)
    assert status == code
    assert text in said
    properties = answer.application_properties or {}
    assert properties["error-condition"] == Symbol(condition)
    assert properties["statusDescription"] == said


def test_without_a_claim_nothing_is_told_not_even_what_exists(world: World) -> None:
    stranger = world.peer()
    there, absent = ask(stranger, "READ", HUB, "Hub"), ask(stranger, "READ", HUB, "nowhere")
    assert status_of(there)[0] == status_of(absent)[0] == 401
    assert map_of(ask(world.trusted_peer(), "READ", HUB, "Hub"))["name"] == "Hub"


@pytest.mark.parametrize("rule", [ROOT, "sender", "listener"])
def test_any_right_reads_by_the_requests_own_token(world: World, rule: str) -> None:
    token = make_token("sb://localhost/hub/", rule, KEY, 2_000_000_000)
    assert status_of(ask(world.peer(), "READ", HUB, security_token=token))[0] == 200


def test_a_bad_token_in_a_request_is_refused_though_the_connection_has_a_claim(peer: Peer) -> None:
    token = make_token("sb://localhost/hub/", ROOT, "wrong", 2_000_000_000)
    answer = ask(peer, "READ", HUB, security_token=token)
    assert status_of(answer)[0] == 401
    assert "error-condition" in (answer.application_properties or {})


def test_a_token_for_another_hub_does_not_read_this_one(world: World) -> None:
    world.create_hub("other", 1)
    token = make_token("sb://localhost/other", ROOT, KEY, 2_000_000_000)
    assert status_of(ask(world.peer(), "READ", HUB, "Hub", security_token=token))[0] == 401
    assert status_of(ask(world.peer(), "READ", HUB, "other", security_token=token))[0] == 200


def test_a_token_in_a_request_opens_no_link(world: World) -> None:
    peer = world.peer()
    token = make_token("sb://localhost/hub", ROOT, KEY, 2_000_000_000)
    assert status_of(ask(peer, "READ", HUB, security_token=token))[0] == 200
    assert not peer.is_attached(peer.sender("Hub"))


def test_a_hub_is_created_listed_changed_and_deleted(world: World, peer: Peer) -> None:
    body = {"partition_count": Int(5), "retention_ms": 7_200_000, "durability": "relaxed", "consumer_groups": ["mine"]}
    created = ask(peer, "CREATE", HUB, "fresh", body)
    assert status_of(created)[0] == 201
    found = map_of(created)
    assert (found["partition_count"], found["retention_ms"], found["durability"]) == (5, 7_200_000, "relaxed")
    assert found["consumer_groups"] == ["$Default", "mine"]
    listed = ask(peer, "LIST", HUB, "")
    assert isinstance(listed.body, ValueBody)
    assert [hub["name"] for hub in listed.body.value] == ["Hub", "fresh"]  # type: ignore[union-attr]
    changed = map_of(ask(peer, "UPDATE", HUB, "fresh", {"retention_ms": 10_800_000, "durability": "durable"}))
    assert (changed["retention_ms"], changed["durability"]) == (10_800_000, "durable")
    assert peer.is_attached(peer.receiver("fresh/ConsumerGroups/mine/Partitions/4"))
    assert status_of(ask(peer, "DELETE", HUB, "fresh"))[0] == 200
    assert status_of(ask(peer, "READ", HUB, "fresh"))[0] == 404
    assert len(world.store.log_ids()) == 3


def test_groups_come_and_go_and_default_stays(peer: Peer) -> None:
    assert status_of(ask(peer, "CREATE", GROUP, group="one", user_metadata="mine"))[0] == 201
    assert map_of(ask(peer, "READ", GROUP, group="ONE"))["user_metadata"] == "mine"
    assert status_of(ask(peer, "UPDATE", GROUP, group="one", user_metadata="yours"))[0] == 200
    assert map_of(ask(peer, "READ", GROUP, group="one"))["user_metadata"] == "yours"
    assert status_of(ask(peer, "CREATE", GROUP, group="ONE"))[0] == 409
    assert peer.is_attached(peer.receiver("Hub/ConsumerGroups/ONE/Partitions/0"))
    assert status_of(ask(peer, "DELETE", GROUP, group="one"))[0] == 200
    assert peer.refusal(peer.receiver("Hub/ConsumerGroups/one/Partitions/0")).condition == "amqp:not-found"
    assert status_of(ask(peer, "DELETE", GROUP, group="$default"))[0] == 400
    assert status_of(ask(peer, "CREATE", GROUP))[0] == 400


@pytest.mark.parametrize(
    ("operation", "name", "body", "code"),
    [
        ("CREATE", "hub", {}, 409),
        ("CREATE", "x", {"partition_count": Int(33)}, 400),
        ("CREATE", "x", {"partition_count": "four"}, 400),
        ("CREATE", "x", {"durability": "eternal"}, 400),
        ("CREATE", "x", {"retention_ms": True}, 400),
        ("CREATE", "x", {"consumer_groups": "one"}, 400),
        ("CREATE", "x", {"unknown": 1}, 400),
        ("CREATE", "x", "no map", 400),
        ("CREATE", "../x", {}, 400),
        ("CREATE", "", {}, 400),
        ("UPDATE", "hub", {"partition_count": Int(4)}, 400),
        ("UPDATE", "hub", {"consumer_groups": ["new"]}, 400),
        ("UPDATE", "nowhere", {}, 404),
        ("DELETE", "nowhere", None, 404),
        ("CREATE", "x", None, 201),
    ],
)
def test_what_cannot_be_done_is_refused_and_changes_nothing(
    world: World, peer: Peer, operation: str, name: str, body: object, code: int
) -> None:
    before = (world.namespace.version, len(world.store.log_ids()))
    status, text = status_of(ask(peer, operation, HUB, name, body))
    assert status == code, text
    if code >= 400:
        assert (world.namespace.version, len(world.store.log_ids())) == before


def test_updates_at_the_same_time_leave_what_the_other_one_names(world: World, peer: Peer) -> None:
    reply, sender = peer.receiver("$management", credit=10), peer.sender("$management")
    for number, body in enumerate(({"retention_ms": 10_800_000}, {"durability": "relaxed"})):
        said = {"operation": "UPDATE", "type": HUB, "name": "Hub"}
        request = Message(
            properties=Properties(message_id=str(number)), application_properties=said, body=ValueBody(body)
        )
        sender.send(encode_message(request), settled=False)
    peer.run(500)
    assert [status_of(each)[0] for each in peer.received(reply)] == [200, 200]
    hub = world.gateway.management.hub("Hub")
    assert (hub.retention_ms, hub.durability) == (10_800_000, Durability.RELAXED)


@pytest.mark.parametrize("rule", ["sender", "listener"])
@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "DELETE", "LIST"])
def test_changes_need_the_manage_right(world: World, rule: str, operation: str) -> None:
    peer = world.peer()
    assert peer.put_token("sb://localhost/", rule=rule)[0] == 202
    assert status_of(ask(peer, operation, HUB, "Hub", {}))[0] == 401
    assert status_of(ask(peer, "READ", HUB, "Hub"))[0] == 200


class Asker:
    """A connection with a pair of links on $management, ready to ask many times at one moment."""

    def __init__(self, peer: Peer, **said: object) -> None:
        self.peer = peer
        self._reply, self._link = peer.receiver("$management", credit=500), peer.sender("$management")
        self._said = {"operation": "READ", "type": HUB, "name": "Hub", **said}

    def ask(self, times: int) -> None:
        for _ in range(times):
            request = Message(properties=Properties(message_id="m"), application_properties=dict(self._said))
            self._link.send(encode_message(request), settled=True)

    def answers(self) -> list[int]:
        """The statuses of all answers so far, which come within a few milliseconds of their requests."""
        self.peer.run(10)
        return [status_of(answer)[0] for answer in self.peer.received(self._reply)]


def test_in_a_tier_a_namespace_answers_so_many_reads_a_second_and_not_one_more() -> None:
    """Two connections ask at one moment: fifty are answered between them; then one for each 20 ms that pass."""
    world = World(hubs={"Hub": 3}, settings=quotas(management_reads_per_second=50))
    one, other = Asker(world.trusted_peer()), Asker(world.trusted_peer(), type=PARTITION, partition="0")
    one.ask(30)
    other.ask(40)
    answers = one.answers() + other.answers()
    assert (answers.count(200), answers.count(503)) == (50, 20)
    for waits_ms, more in ((20, 1), (200, 10), (60_000, 50)):
        # What came in while answers were read is used up first.
        world.run_for(20)
        before = drained(one)
        world.run_for(waits_ms - 10)
        one.ask(70)
        assert one.answers().count(200) == before + more


def drained(asker: Asker) -> int:
    """Use up what there is, down to the last; how many were answered so far."""
    asker.ask(60)
    return asker.answers().count(200)


def test_who_is_over_the_rate_hears_what_to_do_and_is_answered_when_it_has_waited() -> None:
    world = World(hubs={"Hub": 1}, settings=quotas(management_reads_per_second=1))
    peer = world.trusted_peer()
    assert status_of(ask(peer, "READ", HUB))[0] == 200
    answer = ask(peer, "READ", HUB)
    code, text = status_of(answer)
    assert (code, (answer.application_properties or {})["error-condition"]) == (503, "com.microsoft:server-busy")
    assert "Wait" in text
    assert status_of(ask(peer, "LIST", HUB))[0] == 200  # no runtime information of a hub or partition
    world.run_for(1_000)
    assert status_of(ask(peer, "READ", HUB))[0] == 200


def test_a_stranger_uses_up_nothing_of_the_rate() -> None:
    world = World(hubs={"Hub": 1}, settings=quotas(management_reads_per_second=2))
    stranger, owner = Asker(world.peer()), Asker(world.trusted_peer())
    stranger.ask(50)
    assert stranger.answers() == [401] * 50
    owner.ask(2)
    assert owner.answers() == [200] * 2


def test_without_a_tier_reads_are_not_counted(peer: Peer) -> None:
    asker = Asker(peer)
    asker.ask(90)
    assert asker.answers() == [200] * 90


def test_capture_of_a_partition_is_read_with_any_right_on_the_hub(world: World, peer: Peer) -> None:
    state = map_of(ask(peer, "READ", "com.microsoft:capture", partition="2"))
    assert (state["partition"], state["is_running"], state["next_sequence_number"]) == ("2", False, -1)
    assert status_of(ask(peer, "READ", "com.microsoft:capture", partition="3"))[0] == 400
    assert status_of(ask(peer, "READ", "com.microsoft:capture", name="nowhere", partition="0"))[0] == 404


def test_capture_without_a_place_is_refused_and_nothing_is_changed(world: World, peer: Peer) -> None:
    blobs = {"enabled": True, "destination": "EventHubArchive.AzureBlockBlob", "container": "films"}
    answer = ask(peer, "UPDATE", HUB, body={"capture": blobs})
    assert status_of(answer)[0] == 400
    assert world.gateway.management.hub("Hub").capture is None


@pytest.mark.parametrize(("operation", "kind"), sorted(STEPS))
def test_every_operation_asks_for_its_right(world: World, operation: str, kind: str) -> None:
    more = {"partition": "0", "group": "$Default", "publisher": "p", "rule": "r"}
    stranger, listener = world.peer(), world.peer()
    assert listener.put_token("sb://localhost/", rule="listener")[0] == 202
    assert status_of(ask(stranger, operation, kind, **more))[0] == 401
    may_read = operation == "READ" and kind in (HUB, PARTITION, CAPTURE)
    assert (status_of(ask(listener, operation, kind, **more))[0] == 401) is not may_read
