"""Queues, topics, subscriptions and rules managed over HTTPS by the official administration client of Python."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import aiohttp
import pytest
from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceNotFoundError,
)
from azure.core.pipeline.transport import AioHttpTransport, RequestsTransport
from azure.servicebus.aio.management import ServiceBusAdministrationClient as AsyncAdministrationClient
from azure.servicebus.management import (
    AccessRights,
    ApiVersion,
    AuthorizationRule,
    CorrelationRuleFilter,
    EntityStatus,
    FalseRuleFilter,
    ServiceBusAdministrationClient,
    SqlRuleAction,
    SqlRuleFilter,
    TrueRuleFilter,
)

from hubweir.client.authorization_rules import AuthorizationRules
from hubweir.client.connection import Connection
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.running_namespace import RunningNamespace, running_namespace
from tests.conformance.conftest import HOST, Serve
from tests.conformance.troubled_disk import troubled

pytestmark = [pytest.mark.client("azure-servicebus, administration"), pytest.mark.feature("administration")]
UNLIMITED = "P10675199DT2H48M5.4775807S"


@dataclass(frozen=True)
class Administered:
    """A running namespace and how to reach its administration."""

    namespace: RunningNamespace

    def connection_string(self, rule: str = "RootManageSharedAccessKey", key: str = "SAS_KEY_VALUE") -> str:
        where = f"{self.namespace.host}:{self.namespace.port}"
        return f"Endpoint=sb://{where};SharedAccessKeyName={rule};SharedAccessKey={key};"

    @contextmanager
    def client(
        self, *, rule: str = "RootManageSharedAccessKey", key: str = "SAS_KEY_VALUE", **more: object
    ) -> Iterator[ServiceBusAdministrationClient]:
        transport = RequestsTransport(connection_verify=str(self.namespace.ca_file))
        client = ServiceBusAdministrationClient.from_connection_string(
            self.connection_string(rule, key), transport=transport, retry_total=0, **more
        )
        with client:
            yield client


@contextmanager
def administered(serve: Serve, profile: str) -> Iterator[Administered]:
    with serve(host=(HOST,), profile=profile) as namespace:
        yield Administered(namespace)


@pytest.fixture(scope="module")
def standard(serve: Serve) -> Iterator[Administered]:
    with administered(serve, "standard") as found:
        yield found


@pytest.fixture
def client(standard: Administered) -> Iterator[ServiceBusAdministrationClient]:
    """A client of a standard namespace that is empty before and after.

    Queues, which may be hundreds, are deleted without it: a request of its own for each takes five times as long.
    """
    with standard.client() as client:
        yield client
        for queue in list(client.list_queues()):
            standard.namespace.delete_queue(queue.name)
        for topic in list(client.list_topics()):
            client.delete_topic(topic.name)


@pytest.mark.sb(137, 139)
def test_a_queue_s_life(client: ServiceBusAdministrationClient) -> None:
    made = client.create_queue("Orders", lock_duration=timedelta(seconds=13), max_delivery_count=7)
    assert (made.name, made.lock_duration, made.max_delivery_count) == ("Orders", timedelta(seconds=13), 7)
    with pytest.raises(ResourceExistsError):
        client.create_queue("orders")
    found = client.get_queue("ORDERS")
    assert [queue.name for queue in client.list_queues()] == [
        "Orders"
    ]  # of get_queue the client repeats what was asked
    assert found.max_size_in_megabytes == 1024 and found.status == EntityStatus.ACTIVE
    assert (found.requires_session, found.enable_batched_operations, found.enable_partitioning) == (False, True, False)
    found.max_delivery_count = 9
    found.status = EntityStatus.DISABLED
    found.user_metadata = "<mine & yours>"
    client.update_queue(found)
    again = client.get_queue("Orders")
    assert (again.max_delivery_count, again.status, again.user_metadata) == (9, "Disabled", "<mine & yours>")
    assert again.lock_duration == timedelta(seconds=13)
    client.delete_queue("orders")
    with pytest.raises(ResourceNotFoundError):
        client.get_queue("Orders")
    with pytest.raises(ResourceNotFoundError):
        client.delete_queue("Orders")


@pytest.mark.sb(139)
def test_of_two_updates_from_one_look_the_later_one_holds_as_a_whole(client: ServiceBusAdministrationClient) -> None:
    """The client's condition is `If-Match: *`, which holds whatever is there: the service's rule."""
    client.create_queue("Orders", max_delivery_count=7)
    hers, his = client.get_queue("Orders"), client.get_queue("Orders")
    hers.user_metadata = "hers"
    his.max_delivery_count = 9
    client.update_queue(hers)
    client.update_queue(his)
    left = client.get_queue("Orders")
    assert (left.max_delivery_count, left.user_metadata or "") == (9, "")


@pytest.mark.sb(137, 139, 175)
def test_a_topic_s_and_a_subscription_s_life(client: ServiceBusAdministrationClient) -> None:
    topic = client.create_topic("News", support_ordering=False, default_message_time_to_live=timedelta(hours=6))
    assert (topic.name, topic.support_ordering) == ("News", False)
    topic.support_ordering = True
    client.update_topic(topic)
    assert client.get_topic("news").support_ordering is True
    made = client.create_subscription("News", "All", requires_session=True, lock_duration=timedelta(minutes=1))
    assert (made.name, made.requires_session) == ("All", True)
    with pytest.raises(ResourceExistsError):
        client.create_subscription("news", "ALL")
    found = client.get_subscription("News", "all")
    found.max_delivery_count = 3
    found.dead_lettering_on_filter_evaluation_exceptions = False
    client.update_subscription("News", found)
    again = client.get_subscription("News", "All")
    assert (again.max_delivery_count, again.dead_lettering_on_filter_evaluation_exceptions) == (3, False)
    assert client.get_topic_runtime_properties("News").subscription_count == 1
    with pytest.raises(ResourceNotFoundError):
        client.create_subscription("Missing", "All")
    client.delete_subscription("News", "All")
    with pytest.raises(ResourceNotFoundError):
        client.get_subscription("News", "All")
    client.create_subscription("News", "b")
    client.delete_topic("News")
    client.create_topic("News")
    assert list(client.list_subscriptions("News")) == []


@pytest.mark.sb(137, 144, 175)
def test_rules_come_back_as_they_were_made(client: ServiceBusAdministrationClient) -> None:
    client.create_topic("news")
    client.create_subscription("news", "all")
    when = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).replace(tzinfo=None)
    values = {
        "@int": 3, "@big": 2**40, "@text": "x <y> & 'z'", "@yes": True, "@no": False, "@double": 1.5,
        "@when": when, "@span": timedelta(days=1, seconds=2),
    }  # fmt: skip
    client.create_rule(
        "news", "all", "sql",
        filter=SqlRuleFilter("a = @int AND b = @text", values), action=SqlRuleAction("SET c = @when", {"@when": when}),
    )  # fmt: skip
    found = client.get_rule("news", "all", "SQL")
    assert found.filter.sql_expression == "a = @int AND b = @text"
    assert found.filter.parameters == values and found.action.sql_expression == "SET c = @when"
    assert found.action.parameters == {"@when": when}
    correlation = CorrelationRuleFilter(
        correlation_id="c", message_id="m", to="t", reply_to="r", label="l", session_id="s", reply_to_session_id="rs",
        content_type="ct", properties={"key": "value", "n": 5},
    )  # fmt: skip
    client.create_rule("news", "all", "same", filter=correlation)
    kept = client.get_rule("news", "all", "same")
    assert vars(kept.filter) == vars(correlation) and kept.action is None
    client.create_rule("news", "all", "never", filter=FalseRuleFilter())
    assert isinstance(client.get_rule("news", "all", "never").filter, FalseRuleFilter)
    with pytest.raises(ResourceExistsError):
        client.create_rule("news", "all", "never", filter=TrueRuleFilter())
    default = client.get_rule("news", "all", "$Default")
    assert isinstance(default.filter, TrueRuleFilter) and default.filter.sql_expression == "1=1"
    default.filter = SqlRuleFilter("color = 'blue'")
    client.update_rule("news", "all", default)
    assert client.get_rule("news", "all", "$Default").filter.sql_expression == "color = 'blue'"
    assert [rule.name for rule in client.list_rules("news", "all")] == ["$Default", "sql", "same", "never"]
    client.delete_rule("news", "all", "sql")
    with pytest.raises(ResourceNotFoundError):
        client.get_rule("news", "all", "sql")
    with pytest.raises(ResourceNotFoundError):
        client.delete_rule("news", "all", "sql")


@pytest.mark.sb(141)
def test_lists_come_in_pages_in_order_of_names(client: ServiceBusAdministrationClient, standard: Administered) -> None:
    assert list(client.list_queues()) == [] and list(client.list_topics()) == []
    client.create_queue("txt/.-_123")
    assert [queue.name for queue in client.list_queues()] == ["txt/.-_123"]
    assert client.get_queue("txt/.-_123").name == "txt/.-_123"
    names = [f"Queue-{number:03}" for number in range(249)]
    for name in reversed(names):
        standard.namespace.create_queue(name)
    assert [queue.name for queue in client.list_queues()] == [*names, "txt/.-_123"]
    assert len(list(client.list_queues_runtime_properties())) == 250


@pytest.mark.sb(142, 143, 173)
def test_runtime_properties_of_a_new_queue(client: ServiceBusAdministrationClient) -> None:
    before = datetime.now(UTC) - timedelta(seconds=2)
    client.create_queue("q")
    runtime = client.get_queue_runtime_properties("q")
    assert runtime.size_in_bytes == runtime.total_message_count == runtime.active_message_count == 0
    assert runtime.dead_letter_message_count == runtime.scheduled_message_count == 0
    assert runtime.transfer_message_count == runtime.transfer_dead_letter_message_count == 0
    assert before <= runtime.created_at_utc <= datetime.now(UTC) + timedelta(seconds=2)
    assert runtime.updated_at_utc == runtime.created_at_utc and runtime.accessed_at_utc.year == 1
    client.create_topic("t")
    client.create_subscription("t", "s")
    assert client.get_subscription_runtime_properties("t", "s").accessed_at_utc >= before
    assert client.get_topic_runtime_properties("t").accessed_at_utc.year == 1


@pytest.mark.sb(146)
@pytest.mark.parametrize("form", ["sb://{}:5671/Q2", "https://{}/Q2"])
def test_destinations_come_back_letter_for_letter(
    client: ServiceBusAdministrationClient, standard: Administered, form: str
) -> None:
    client.create_queue("q2")
    text = form.format(standard.namespace.host.upper())
    made = client.create_queue("q1", forward_to=text, forward_dead_lettered_messages_to=text)
    assert made.forward_to == made.forward_dead_lettered_messages_to == text
    assert client.get_queue("q1").forward_to == text
    client.update_queue(client.get_queue("q1"))
    assert client.get_queue("q1").forward_dead_lettered_messages_to == text
    client.create_topic("t")
    assert client.create_subscription("t", "s", forward_to=text).forward_to == text
    with pytest.raises(HttpResponseError):
        client.create_queue("q3", forward_to="missing")


@pytest.mark.sb(174)
def test_forwarding_goes_with_sessions_partitions_and_express_and_to_itself(
    client: ServiceBusAdministrationClient,
) -> None:
    client.create_queue("q2")
    made = client.create_queue(
        "q1", forward_to="q2", requires_session=True, enable_partitioning=True, enable_express=True
    )
    assert made.forward_to is not None and made.forward_to.endswith("/q2")
    assert (made.requires_session, made.enable_partitioning, made.enable_express) == (True, True, True)
    made.forward_to = "sb://localhost/q1"
    client.update_queue(made)
    assert client.get_queue("q1").forward_to == "sb://localhost/q1"
    assert client.create_queue("q4", status=EntityStatus.RECEIVE_DISABLED).status == "ReceiveDisabled"
    made = client.get_queue("q2")
    made.requires_session = True
    with pytest.raises(HttpResponseError, match="The value for the RequiresSession property of an existing Queue"):
        client.update_queue(made)
    made = client.get_queue("q2")
    made.enable_partitioning = True
    with pytest.raises(HttpResponseError, match="Partitioning cannot be changed for Queue. "):
        client.update_queue(made)


@pytest.mark.sb(147)
def test_durations_come_back_as_the_text_that_was_sent(client: ServiceBusAdministrationClient) -> None:
    made = client.create_queue("q", lock_duration="PT45S", default_message_time_to_live="PT10M1S")
    raw = {name: element for name, element in vars(made).items() if not name.startswith("_")}
    assert (raw["lock_duration"], raw["default_message_time_to_live"]) == (
        timedelta(seconds=45), timedelta(minutes=10, seconds=1),
    )  # fmt: skip
    assert made.auto_delete_on_idle.days == 10675199
    client.update_queue(client.get_queue("q"))  # it sends back its own reading of the longest time
    assert client.get_queue("q").auto_delete_on_idle == made.auto_delete_on_idle


@pytest.mark.sb(172)
def test_a_partitioned_queue_tells_its_whole_size_however_often_it_is_updated(
    client: ServiceBusAdministrationClient,
) -> None:
    made = client.create_queue("q", max_size_in_megabytes=4096, enable_partitioning=True)
    assert made.max_size_in_megabytes == 65536
    client.update_queue(client.get_queue("q"))
    assert client.get_queue("q").max_size_in_megabytes == 65536
    topic = client.create_topic("t", max_size_in_megabytes=2048, enable_partitioning=True)
    assert topic.max_size_in_megabytes == 32768
    plain = client.create_queue("p", max_size_in_megabytes=3072)
    plain.max_size_in_megabytes = 2048
    client.update_queue(plain)
    found = client.get_queue("p")
    assert found.max_size_in_megabytes == 2048 and found.max_message_size_in_kilobytes == 256
    with pytest.raises(HttpResponseError) as refused:
        client.create_queue("large", max_message_size_in_kilobytes=1024)
    assert refused.value.status_code == 400


@pytest.mark.sb(149, 172)
def test_namespaces_tell_their_tier(serve: Serve) -> None:
    with administered(serve, "premium") as premium, premium.client() as client:
        before = datetime.now(UTC) - timedelta(minutes=5)
        properties = client.get_namespace_properties()
        assert (properties.name, properties.messaging_sku, properties.messaging_units) == ("hubweir", "Premium", 1)
        for told in (properties.created_at_utc, properties.modified_at_utc):
            assert before < told <= datetime.now(UTC) + timedelta(seconds=2)
        made = client.create_queue("q", max_message_size_in_kilobytes=102_400, max_size_in_megabytes=81_920)
        assert (made.max_message_size_in_kilobytes, made.max_size_in_megabytes) == (102_400, 81_920)
        assert client.create_queue("default").max_message_size_in_kilobytes == 1024


@pytest.mark.sb(149)
@pytest.mark.parametrize("version", [ApiVersion.V2017_04, ApiVersion.V2021_05, "2024-05"])
def test_every_version_is_taken(standard: Administered, version: str) -> None:
    with standard.client(api_version=version) as client:
        properties = client.get_namespace_properties()
        assert (properties.name, properties.messaging_sku, properties.messaging_units) == ("hubweir", "Standard", None)
        client.create_topic("versioned")
        assert client.get_topic("versioned").name == "versioned"
        client.delete_topic("versioned")


@pytest.mark.sb(140, 145, 170)
def test_refusals_become_the_client_s_own_errors(
    standard: Administered, client: ServiceBusAdministrationClient
) -> None:
    with pytest.raises(ResourceNotFoundError, match="SubCode=40400"):
        client.get_queue("missing")
    with pytest.raises(HttpResponseError, match="SubCode=40000") as bad:
        client.create_queue("q", lock_duration=timedelta(minutes=6))
    assert bad.value.status_code == 400
    with pytest.raises(HttpResponseError):
        client.create_queue("")
    for rule, key in (("RootManageSharedAccessKey", "wrong"), ("missing", "SAS_KEY_VALUE")):
        with standard.client(rule=rule, key=key) as stranger, pytest.raises(ClientAuthenticationError):
            stranger.create_queue("q")


@pytest.mark.sb(145)
def test_what_a_tier_does_not_offer_is_403(serve: Serve) -> None:
    with administered(serve, "basic") as basic, basic.client() as client:
        with pytest.raises(HttpResponseError, match="SubCode=40300") as refused:
            client.create_topic("news")
        assert refused.value.status_code == 403


@pytest.mark.sb(145)
def test_a_change_that_cannot_be_stored_now_is_503(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that finds out about the disk has no known outcome, which is 504; those behind it are not begun."""
    with running_namespace(host=(HOST,)) as namespace, Administered(namespace).client() as client:
        with troubled(monkeypatch) as disk:
            client.create_queue("before")  # behind it no write of the start is under way
            disk.is_broken.set()
            for name, status in (("first", 504), ("second", 503)):
                with pytest.raises(HttpResponseError, match="SubCode=50004") as refused:
                    client.create_queue(name)
                assert refused.value.status_code == status
        end = time.monotonic() + 30
        while True:
            try:
                client.create_queue("third")
                break
            except HttpResponseError as error:
                assert error.status_code == 503 and time.monotonic() < end
                time.sleep(0.2)
        assert "second" not in [queue.name for queue in client.list_queues()]


@pytest.mark.sb(171)
def test_a_rule_without_manage_is_told_which_claims_it_lacks(
    standard: Administered, client: ServiceBusAdministrationClient
) -> None:
    """Only the read of a queue or a topic that is not there says so to such a rule; nothing is made or removed."""

    async def make_rule() -> str:
        connection = await Connection.open(ConnectionString.parse(standard.namespace.connection_string()))
        try:
            made = await AuthorizationRules(connection).create_rule("worker", ("Send", "Listen"))
        finally:
            await connection.close()
        return made.primary.reveal()

    client.create_queue("q")
    client.create_topic("t")
    client.create_subscription("t", "s")
    queue, topic, subscription = client.get_queue("q"), client.get_topic("t"), client.get_subscription("t", "s")
    with standard.client(rule="worker", key=asyncio.run(make_rule())) as worker:
        read, action = (
            "Manage,EntityRead claims required for this operation",
            "Authorization failed for specified action",
        )
        subscriptions = "401 SubCode=40100: Unauthorized : Unauthorized access for"
        for call, text in (
            (lambda: worker.get_queue("q"), f"<Detail>{read}"),
            (lambda: worker.get_topic("t"), f"<Detail>{read}"),
            (lambda: list(worker.list_queues()), f"<Detail>{read}"),
            (lambda: list(worker.list_topics()), f"<Detail>{read}"),
            (lambda: worker.create_queue("new"), f"{action}: Manage,EntityWrite"),
            (lambda: worker.create_topic("new"), f"{action}: Manage,EntityWrite"),
            (lambda: worker.update_queue(queue), f"{action}: Manage,EntityWrite"),
            (lambda: worker.update_topic(topic), f"{action}: Manage,EntityWrite"),
            (lambda: worker.delete_queue("q"), f"{action}: Manage,EntityDelete."),
            (lambda: worker.delete_topic("t"), f"{action}: Manage,EntityDelete."),
            (lambda: worker.delete_queue("missing"), f"{action}: Manage,EntityDelete."),
            (lambda: worker.get_subscription("t", "s"), f"{subscriptions} 'GetSubscription'"),
            (lambda: worker.get_subscription("t", "missing"), f"{subscriptions} 'GetSubscription'"),
            (lambda: list(worker.list_subscriptions("t")), f"{subscriptions} 'EnumerateSubscriptions' operation"),
            (lambda: worker.create_subscription("t", "new"), f"{subscriptions} 'CreateOrUpdateSubscription'"),
            (lambda: worker.update_subscription("t", subscription), f"{subscriptions} 'CreateOrUpdateSubscription'"),
            (lambda: worker.delete_subscription("t", "s"), f"{subscriptions} 'DeleteSubscription'"),
        ):
            with pytest.raises(ClientAuthenticationError) as refused:
                call()
            assert refused.value.response is not None
            assert (refused.value.status_code, text in refused.value.response.text()) == (401, True), text
        for absent in (lambda: worker.get_queue("missing"), lambda: worker.get_topic("missing")):
            with pytest.raises(ResourceNotFoundError):
                absent()
    assert [each.name for each in client.list_queues()] == ["q"]
    assert [each.name for each in client.list_subscriptions("t")] == ["s"]


@pytest.mark.sb(163)
def test_rules_of_a_queue_come_back_with_their_keys(client: ServiceBusAdministrationClient) -> None:
    rule = AuthorizationRule(
        rights=[AccessRights.LISTEN], key_name="reader", primary_key="its own key", secondary_key="its other key",
        type="SharedAccessAuthorizationRule", claim_type="SharedAccessKey", claim_value="None",
    )  # fmt: skip
    made = client.create_queue("q", authorization_rules=[rule])
    assert [each.key_name for each in made.authorization_rules] == ["reader"]
    made = client.get_queue("q")
    made.authorization_rules[0].rights = [AccessRights.LISTEN, AccessRights.SEND, AccessRights.MANAGE]
    client.update_queue(made)
    (kept,) = client.get_queue("q").authorization_rules
    assert set(kept.rights) == {"Listen", "Send", "Manage"}
    assert (kept.primary_key, kept.secondary_key) == ("its own key", "its other key")


@pytest.mark.sb(137)
def test_the_client_for_asyncio_does_the_same(standard: Administered, client: ServiceBusAdministrationClient) -> None:
    async def work() -> list[str]:
        tls = ssl.create_default_context(cafile=str(standard.namespace.ca_file))
        session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls))
        transport = AioHttpTransport(session=session, session_owner=True)
        text = standard.connection_string()
        async with AsyncAdministrationClient.from_connection_string(text, transport=transport) as each:
            await each.create_queue("asked", requires_session=True)
            await each.create_topic("told")
            await each.create_subscription("told", "all")
            await each.create_rule("told", "all", "blue", filter=SqlRuleFilter("color = 'blue'"))
            found = await each.get_queue("asked")
            found.max_delivery_count = 2
            await each.update_queue(found)
            assert (await each.get_queue("asked")).max_delivery_count == 2
            with pytest.raises(ResourceExistsError):
                await each.create_queue("asked")
            return [rule.name async for rule in each.list_rules("told", "all")]

    assert asyncio.run(work()) == ["$Default", "blue"]
