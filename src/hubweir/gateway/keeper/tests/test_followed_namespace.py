"""Every door of management works in every process: asked there, authorised there, kept by the keeper."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from hubweir.amqp.messaging.message import Message, Properties, ValueBody
from hubweir.amqp.types.values import Int
from hubweir.broker.commands.keeper import AskUsage, CatalogApplied, FollowCatalog, LeaseUnits
from hubweir.broker.commands.process import Done
from hubweir.errors import STORE_OFFLINE, ServiceError
from hubweir.gateway.amqp.tests.queue_world import ask, code_of
from hubweir.gateway.amqp.tests.world import HOST, Peer, status_of
from hubweir.gateway.http.tests.messaging_forms import (
    QUEUE,
    SUBSCRIPTION,
    TOPIC,
    described,
    rule,
    sql_action,
    sql_filter,
)
from hubweir.gateway.http.tests.world_requests import Asking, let_run
from hubweir.gateway.keeper.tests.keeper_world import Follower, KeeperWorld
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.rule_changes import RuleLevel
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.namespace.topic_description import TopicDescription

TEA = "news/Subscriptions/tea"


@pytest.fixture
def world() -> KeeperWorld:
    return KeeperWorld()


@pytest.fixture
def two(world: KeeperWorld) -> list[Follower]:
    return [world.follower(process) for process in (101, 202)]


def manage(peer: Peer, operation: str, kind: str, name: str, body: object = None, **more: object) -> Message:
    """A request of hubweir's own at $management."""
    said: dict[str, object] = {"operation": operation, "type": f"com.microsoft:{kind}", "name": name, **more}
    return peer.request(
        "$management",
        Message(properties=Properties(message_id="m"), application_properties=said, body=ValueBody(body)),
    )


def http(follower: Follower, method: str, path: str, body: str = "", if_match: str = "") -> tuple[int, str]:
    """Status and body of the answer to a request."""
    fields = ((b"if-match", if_match.encode()),) if if_match else ()
    asking = Asking(follower, method, path, body.encode(), fields)

    async def run() -> None:
        task = asyncio.ensure_future(asking.run())
        while not task.done():
            await let_run(follower, 1)
        task.result()

    asyncio.run(run())
    assert asking.answer is not None
    return asking.answer.status, asking.answer.text


def test_a_hub_lives_from_create_to_delete_through_two_processes(two: list[Follower]) -> None:
    peers = [follower.trusted_peer() for follower in two]
    assert status_of(manage(peers[0], "CREATE", "eventhub", "new", {"partition_count": Int(3)}))[0] == 201
    assert two[1].namespace.get("new", EventHubDescription).description.partition_count == 3
    assert peers[1].is_attached(peers[1].sender("new"))
    steps: list[tuple[str, str, dict[str, Any], int]] = [
        ("CREATE", "consumergroup", {"group": "mine", "user_metadata": "text"}, 201),
        ("UPDATE", "consumergroup", {"group": "mine", "user_metadata": "other"}, 200),
        ("CREATE", "revokedpublisher", {"publisher": "eve"}, 201),
        ("DELETE", "revokedpublisher", {"publisher": "eve"}, 200),
        ("DELETE", "consumergroup", {"group": "mine"}, 200),
        ("DELETE", "consumergroup", {"group": "mine"}, 404),
        ("UPDATE", "eventhub", {}, 200),
    ]
    for number, (operation, kind, properties, code) in enumerate(steps):
        answer = manage(peers[number % 2], operation, kind, "new", None if properties else {}, **properties)
        assert status_of(answer)[0] == code, (operation, kind)
        assert two[0].snapshot() == two[1].snapshot()
    assert status_of(manage(peers[1], "DELETE", "eventhub", "new"))[0] == 200
    assert status_of(manage(peers[0], "READ", "eventhub", "new"))[0] == 404


def test_authorization_rules_are_changed_through_any_process(two: list[Follower]) -> None:
    peers = [follower.trusted_peer() for follower in two]
    made = manage(peers[0], "CREATE", "authorizationrule", "hub", {"rights": ["Send"]}, rule="mine")
    assert status_of(made)[0] == 201
    key = made.body.value["secondary_key"]  # type: ignore[union-attr]
    assert two[1].namespace.rule("hub", "mine").secondary.reveal() == key
    renewed = manage(peers[1], "RENEWKEY", "authorizationrule", "hub", {"key": "secondary"}, rule="mine")
    assert renewed.body.value["secondary_key"] != key  # type: ignore[union-attr]
    stranger = two[0].peer()
    assert stranger.put_token(f"sb://{HOST}/hub", rule="mine", key=key)[0] != 202
    assert (
        status_of(manage(peers[1], "UPDATE", "authorizationrule", "hub", {"rights": ["Listen"]}, rule="mine"))[0] == 200
    )
    assert status_of(manage(peers[0], "DELETE", "authorizationrule", "hub", rule="mine"))[0] == 200
    assert status_of(manage(peers[1], "DELETE", "authorizationrule", "hub", rule="mine"))[0] == 404


def test_units_and_usage_are_told_through_any_process(world: KeeperWorld, two: list[Follower]) -> None:
    peers = [follower.trusted_peer() for follower in two]
    assert status_of(manage(peers[0], "UPDATE", "namespace", "", {"throughput_units": Int(2)}))[0] == 200
    told = manage(peers[1], "READ", "namespace", "")
    assert told.body.value["throughput_units"] == 2  # type: ignore[union-attr]
    assert status_of(manage(peers[1], "READ", "namespace-usage", ""))[0] == 200
    two[1].went()
    away = manage(peers[1], "READ", "namespace-usage", "")
    assert status_of(away)[0] == STORE_OFFLINE.management


def test_queues_topics_subscriptions_and_rules_over_http_through_two_processes(two: list[Follower]) -> None:
    one, other = two
    assert http(one, "PUT", "/orders", described(QUEUE))[0] == 201
    assert http(other, "PUT", "/orders", described(QUEUE))[0] == 409
    assert http(other, "PUT", "/orders", described(QUEUE, "<UserMetadata>mine</UserMetadata>"), if_match="*")[0] == 200
    assert "<UserMetadata>mine</UserMetadata>" in http(one, "GET", "/orders")[1]
    assert http(one, "PUT", "/news", described(TOPIC))[0] == 201
    assert http(other, "PUT", "/news/Subscriptions/tea", described(SUBSCRIPTION))[0] == 201
    assert http(one, "PUT", "/news/Subscriptions/tea/Rules/morning", rule(sql_filter("hour &lt; 12")))[0] == 201
    assert http(one, "PUT", "/news/Subscriptions/tea/Rules/morning", rule(sql_filter("hour &lt; 12")))[0] == 409
    assert (
        http(other, "PUT", "/news/Subscriptions/tea/Rules/morning", rule(sql_filter("a = 1")), if_match="*")[0] == 200
    )
    assert "a = 1" in http(one, "GET", "/news/Subscriptions/tea/Rules/morning")[1]
    assert http(other, "PATCH", "/news/Subscriptions/tea/Rules/morning", rule(sql_action("SET b = 2")))[0] == 200
    changed = http(one, "GET", "/news/Subscriptions/tea/Rules/morning")[1]
    assert "a = 1" in changed and "SET b = 2" in changed
    assert http(other, "DELETE", "/news/Subscriptions/tea/Rules/$Default")[0] == 200
    assert [each.name for each in one.namespace.subscription_rules(TEA).listed()] == ["morning"]
    assert http(other, "DELETE", "/news")[0] == 200
    assert http(one, "GET", "/news/Subscriptions/tea")[0] == 404
    assert http(one, "DELETE", "/orders")[0] == 200 and http(other, "GET", "/orders")[0] == 404


def test_hubs_over_http_through_two_processes(two: list[Follower]) -> None:
    one, other = two
    assert http(one, "PUT", "/new?timeout=60")[0] == 201
    assert http(other, "PUT", "/new/consumergroups/mine")[0] == 201
    assert http(one, "GET", "/new/consumergroups/mine")[0] == 200
    assert http(one, "PUT", "/new/revokedpublishers/eve")[0] == 201
    assert http(other, "DELETE", "/new/revokedpublishers/eve")[0] == 200
    assert http(other, "DELETE", "/new")[0] == 200 and http(one, "DELETE", "/new")[0] == 404


def test_rules_of_a_subscription_are_added_and_removed_over_amqp_through_two_processes(
    world: KeeperWorld, two: list[Follower]
) -> None:
    world.create(TopicDescription("news"))
    world.create(SubscriptionDescription(TEA))
    peers = [follower.trusted_peer() for follower in two]
    added = {"rule-name": "morning", "rule-description": {"sql-filter": {"expression": "hour < 12"}}}
    assert code_of(ask(peers[0], "add-rule", added, node=f"{TEA}/$management")) == 200
    assert two[1].namespace.subscription_rule(TEA, "morning").created_at_ms > 0
    gone = {"rule-name": "$Default"}
    assert code_of(ask(peers[1], "remove-rule", gone, node=f"{TEA}/$management")) == 200
    assert two[0].namespace.subscription_rules(TEA).find("$Default") is None
    assert code_of(ask(peers[0], "remove-rule", gone, node=f"{TEA}/$management")) == 404


def test_who_may_not_manage_is_refused_where_it_asks_and_the_keeper_hears_nothing(
    world: KeeperWorld, two: list[Follower]
) -> None:
    peer = two[0].peer()
    assert peer.put_token(f"sb://{HOST}/", rule="sender")[0] == 202
    assert status_of(manage(peer, "CREATE", "eventhub", "new", {"partition_count": Int(1)}))[0] == 401
    assert status_of(manage(peer, "DELETE", "eventhub", "hub"))[0] == 401
    heard = {type(command) for command in two[0].stream.commands}
    assert heard <= {FollowCatalog, CatalogApplied, LeaseUnits}
    assert AskUsage not in heard and world.namespace.find_any("hub") is not None


def test_reads_over_http_go_on_while_the_keeper_is_away_and_changes_are_503(
    world: KeeperWorld, two: list[Follower]
) -> None:
    world.create(QueueDescription("orders"))
    two[0].went()
    assert http(two[0], "GET", "/orders")[0] == 200
    assert http(two[0], "GET", "/$Resources/eventhubs")[0] == 200
    status, text = http(two[0], "PUT", "/more", described(QUEUE))
    assert status == 503 and "keeper of the catalog is away: nothing was changed" in text
    assert http(two[0], "DELETE", "/orders")[0] == 503
    assert world.namespace.find_any("orders") is not None and world.namespace.find_any("more") is None


def test_an_answer_of_another_command_is_a_fault_of_the_service(two: list[Follower]) -> None:
    follower = two[0]
    follower.client.change = lambda command, on_answer: on_answer(Done())  # type: ignore[method-assign]
    answers: list[Any] = []
    follower.gateway.keeper.create(EventHubDescription("new", 1), answers.append)
    (error,) = answers
    assert isinstance(error, ServiceError) and "does not belong to the request" in error.text


def test_a_level_that_is_gone_when_its_rules_were_changed_is_said_to_be(
    world: KeeperWorld, two: list[Follower]
) -> None:
    answers: list[Any] = []
    follower = two[0]
    follower.stream.is_held = True
    change = partial(RuleLevel.remove, name="nobody")
    follower.gateway.keeper.change_rules("nothing", change, answers.append)
    follower.stream.release()
    world.run_for(100)
    assert answers[0].condition.symbol == "amqp:not-found"
