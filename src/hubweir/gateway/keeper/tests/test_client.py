"""Processes follow one keeper: changes are seen everywhere before they are answered, whatever streams do meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from hubweir.broker.commands.command import Owner
from hubweir.broker.commands.keeper import CatalogApplied, CatalogChanged, CatalogPart, FollowCatalog
from hubweir.errors import NOT_FOUND, ServiceError
from hubweir.gateway.amqp.tests.world import HOUR_MS
from hubweir.gateway.keeper.client import FOLLOW_AGAIN_MS, KeeperClient
from hubweir.gateway.keeper.tests.keeper_world import NAMESPACE, Follower, KeeperWorld
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.rule_changes import RuleKey
from hubweir.namespace.secret import Secret
from hubweir.namespace.tiers import DEVELOPMENT


@pytest.fixture
def world() -> KeeperWorld:
    return KeeperWorld()


@pytest.fixture
def three(world: KeeperWorld) -> list[Follower]:
    return [world.follower(process) for process in (101, 202, 303)]


def hub(name: str) -> EventHubDescription:
    return EventHubDescription(name, 2)


def have(followers: list[Follower], name: str) -> list[bool]:
    return [follower.namespace.find_any(name) is not None for follower in followers]


def test_a_process_begins_with_all_that_the_keeper_has(world: KeeperWorld) -> None:
    world.create(QueueDescription("orders"))
    follower = world.follower(101)
    assert follower.snapshot() == world.namespace._catalog.snapshot()
    assert follower.client.is_following(NAMESPACE)
    assert world.gateway.keeper.followers.processes == (101,)  # type: ignore[attr-defined]


def test_a_change_at_the_keeper_is_everywhere_before_it_is_answered(world: KeeperWorld, three: list[Follower]) -> None:
    seen: list[list[bool]] = []
    world.gateway.keeper.create(hub("new"), lambda _: seen.append(have(three, "new")))
    world.run_for(200)
    assert seen == [[True, True, True]]


def test_a_change_that_a_process_asks_for_is_everywhere_before_it_is_answered(
    world: KeeperWorld, three: list[Follower]
) -> None:
    """The one who asked may read its own copy at once."""
    seen: list[Any] = []
    three[1].gateway.keeper.create(hub("new"), lambda made: seen.append((made.name, have(three, "new"))))
    world.run_for(200)
    assert seen == [("new", [True, True, True])]
    three[0].gateway.keeper.delete("new", EventHubDescription, lambda gone: seen.append(have(three, gone.name)))
    world.run_for(200)
    assert seen[1:] == [[False, False, False]]
    assert len({follower.snapshot() for follower in three} | {world.namespace._catalog.snapshot()}) == 1


def test_operations_come_in_order_however_many_there_are(world: KeeperWorld, three: list[Follower]) -> None:
    told: list[str] = []
    three[2].namespace.on_change(lambda: told.append(three[2].namespace.newest))
    answers: list[str] = []
    for number in range(60):
        three[number % 3].gateway.keeper.create(hub(f"hub-{number}"), lambda made: answers.append(made.name))
    world.run_for(5_000)
    assert sorted(answers) == sorted(f"hub-{number}" for number in range(60))
    assert len(told) == 120  # intent and commit of each
    assert {follower.snapshot() for follower in three} == {world.namespace._catalog.snapshot()}


def test_the_keeper_is_told_once_for_all_operations_that_come_together(world: KeeperWorld) -> None:
    follower = world.follower(101)
    follower.stream.is_held = True
    for number in range(20):
        world.gateway.keeper.create(hub(f"hub-{number}"), lambda _: None)
    world.run_for(500)
    before = len(follower.stream.commands)
    follower.stream.release()
    world.run_for(0)
    told = [command for command in follower.stream.commands[before:] if isinstance(command, CatalogApplied)]
    assert len(told) == 1 and told[0].version == follower.namespace.version


def test_a_key_that_is_replaced_at_one_process_ends_links_at_all_before_that_is_answered(
    world: KeeperWorld, three: list[Follower]
) -> None:
    links = []
    for follower in three:
        peer = follower.peer()
        assert peer.put_token("sb://localhost/hub", rule="sender")[0] == 202
        links.append((peer, peer.sender("hub")))
    assert all(peer.is_attached(link) for peer, link in links)
    attached: list[list[bool]] = []

    def renewed(result: Any) -> None:
        assert not isinstance(result, ServiceError), result
        world.run_for(0)
        attached.append([peer.is_attached(link) for peer, link in links])

    three[0].gateway.rules.renew(None, "sender", RuleKey.PRIMARY, renewed, secret=Secret("another"))
    world.run_for(100)
    assert attached == [[False, False, False]]


def test_the_end_of_an_entity_ends_its_links_in_every_process(world: KeeperWorld, three: list[Follower]) -> None:
    peers = [follower.trusted_peer() for follower in three]
    links = [peer.sender("hub") for peer in peers]
    world.create(hub("kept"))
    kept = [peer.sender("kept") for peer in peers]
    three[2].gateway.keeper.delete("hub", EventHubDescription, lambda _: None)
    world.run_for(300)
    for peer, link, other in zip(peers, links, kept, strict=True):
        assert peer.refusal(link).condition == NOT_FOUND.symbol
        assert peer.is_attached(other)


def test_what_the_keeper_refuses_is_refused_with_its_own_words(world: KeeperWorld, three: list[Follower]) -> None:
    answers: list[Any] = []
    three[0].gateway.keeper.create(hub("hub"), answers.append)
    three[0].gateway.keeper.delete("nothing", EventHubDescription, answers.append)
    world.run_for(100)
    assert [each.condition.symbol for each in answers] == [
        "com.microsoft:entity-already-exists",
        "amqp:not-found",
    ]
    assert "'hub' exists already" in answers[0].text


def test_an_operation_that_does_not_fit_has_the_whole_taken_anew(world: KeeperWorld, three: list[Follower]) -> None:
    follower = three[0]
    follower.stream.send(0, CatalogChanged(follower.client.owner, NAMESPACE, 999, b"nothing"))
    world.run_for(0)
    assert follower.client.is_following(NAMESPACE)
    world.create(hub("new"))
    assert have(three, "new") == [True, True, True]
    assert [type(each) for each in follower.stream.commands].count(FollowCatalog) == 2


def test_operations_behind_one_that_does_not_fit_are_in_the_snapshot_that_is_asked_for_once(
    world: KeeperWorld, three: list[Follower]
) -> None:
    follower = three[0]
    follower.stream.is_held = True
    for _ in range(2):
        follower.stream.send(0, CatalogChanged(follower.client.owner, NAMESPACE, 999, b"nothing"))
    for number in range(5):
        world.gateway.keeper.create(hub(f"hub-{number}"), lambda _: None)
    world.run_for(500)
    follower.stream.release()
    world.run_for(50)
    assert follower.snapshot() == world.namespace._catalog.snapshot()
    assert [type(each) for each in follower.stream.commands].count(FollowCatalog) == 2


def test_of_two_snapshots_that_are_asked_for_the_second_counts(world: KeeperWorld) -> None:
    follower = world.follower(101)
    followed = follower.client._followed[NAMESPACE]
    restored: list[int] = []
    restore = followed.namespace.catalog.restore
    followed.namespace.catalog.restore = lambda data: (restored.append(len(data)), restore(data))  # type: ignore
    follower.client._begin(followed)
    follower.client._begin(followed)
    world.run_for(50)
    assert follower.client.is_following(NAMESPACE) and len(restored) == 1


def test_what_is_pushed_for_another_process_is_for_nobody_here(world: KeeperWorld) -> None:
    follower = world.follower(101)
    follower.client._pushed(CatalogChanged(Owner(202, -1), NAMESPACE, 999, b"nothing"))
    assert follower.client.is_following(NAMESPACE)
    follower.client._pushed(CatalogChanged(follower.client.owner, "another", 999, b"nothing"))
    assert follower.client.is_following(NAMESPACE)


def test_a_namespace_that_is_not_kept_yet_is_asked_for_again(world: KeeperWorld) -> None:
    follower = world.follower(101)
    gateways, world.process.gateways = world.process.gateways, []
    came: list[Any] = []
    client = KeeperClient(world.env, follower.stream, 101, is_up=True)
    client.follow(NAMESPACE, profile=DEVELOPMENT, host="localhost", on_first=came.append)
    world.run_for(3 * FOLLOW_AGAIN_MS)
    assert came == [] and not client.is_following(NAMESPACE)
    world.process.gateways = gateways
    world.run_for(FOLLOW_AGAIN_MS + 100)
    assert len(came) == 1 and came[0].namespace.find_any("hub") is not None


def test_a_snapshot_goes_over_in_parts_and_one_that_is_not_whole_is_asked_for_again(
    world: KeeperWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hubweir.gateway.keeper.server.PART_BYTES", 64)
    follower = world.follower(101)
    assert follower.snapshot() == world.namespace._catalog.snapshot() and len(follower.snapshot()) > 200
    follower.client._pushed(CatalogPart(follower.client.owner, NAMESPACE, b"more"))
    follower.client._begin(follower.client._followed[NAMESPACE])
    follower.client._pushed(CatalogPart(follower.client.owner, NAMESPACE, b"of another snapshot"))
    world.run_for(FOLLOW_AGAIN_MS - 100)
    assert not follower.client.is_following(NAMESPACE)
    world.run_for(200)
    assert follower.client.is_following(NAMESPACE)


def test_a_gateway_that_follows_outlives_a_day_without_changes(world: KeeperWorld) -> None:
    follower = world.follower(101)
    world.run_for(HOUR_MS)
    assert world.ended == [] and follower.client.is_following(NAMESPACE)
