"""Azure Resource Manager by the official management packages: what they make is what every other door shows.

Both packages, blocking, over TLS, with a JSON Web Token of the configured issuer; on one process, and on three.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from azure.core.credentials import AccessToken
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError, ResourceNotFoundError
from azure.eventhub import EventData, EventHubProducerClient
from azure.mgmt.eventhub import EventHubManagementClient
from azure.mgmt.eventhub import models as eh
from azure.mgmt.servicebus import ServiceBusManagementClient
from azure.mgmt.servicebus import models as sb
from azure.servicebus import ServiceBusClient, ServiceBusMessage

from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.running_namespace import RunningNamespace, running_namespace
from hubweir.testing.token_issuer import ISSUER, TestIssuer, claims_until

SUBSCRIPTION, GROUP = "00000000-0000-0000-0000-000000000001", "shops"
OWNER = "Azure Event Hubs Data Owner"
pytestmark = [pytest.mark.conformance]


class Credential:
    """Gives a token that the test's issuer signed, as azure-identity would."""

    def __init__(self, issuer: TestIssuer, *roles: str) -> None:
        self._issuer, self._roles = issuer, roles

    def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        ends = int(time.time()) + 600
        return AccessToken(self._issuer.token(claims_until(ends, *self._roles)), ends)


@pytest.fixture(scope="module")
def issuer() -> TestIssuer:
    return TestIssuer()


@pytest.fixture(scope="module", params=[1, 3], ids=["one process", "three processes"])
def running(
    request: pytest.FixtureRequest, issuer: TestIssuer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningNamespace]:
    keys: Path = tmp_path_factory.mktemp("issuer") / "keys.json"
    keys.write_bytes(issuer.keys_file())
    with running_namespace(jwt_issuer=ISSUER, jwt_keys_file=str(keys), brokers=request.param) as started:
        yield started


Connect = Callable[..., Any]


@pytest.fixture(scope="module")
def connect(running: RunningNamespace, issuer: TestIssuer) -> Connect:
    def connected(kind: type, *roles: str) -> Any:
        return kind(
            Credential(issuer, *(roles or (OWNER,))),
            SUBSCRIPTION,
            base_url=f"https://localhost:{running.port}",
            connection_verify=str(running.ca_file),
            retry_total=0,
            polling_interval=0,
        )

    return connected


@pytest.fixture(scope="module")
def hubs(connect: Connect) -> EventHubManagementClient:
    client: EventHubManagementClient = connect(EventHubManagementClient)
    return client


@pytest.fixture(scope="module")
def buses(connect: Connect) -> ServiceBusManagementClient:
    client: ServiceBusManagementClient = connect(ServiceBusManagementClient)
    return client


@pytest.fixture
def space(hubs: EventHubManagementClient, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of its own for one test."""
    name = f"ns-{abs(hash(request.node.nodeid)) % 10**9}"
    made = hubs.namespaces.begin_create_or_update(GROUP, name, eh.EHNamespace(location="local")).result()
    assert made.name == name
    yield name
    hubs.namespaces.begin_delete(GROUP, name).result()


def plain(text: str) -> str:
    """A connection string without TLS, which the client of a test needs no certificate for."""
    return replace(ConnectionString.parse(text), emulator=True).format()


def test_namespaces_are_made_changed_listed_and_deleted(hubs: EventHubManagementClient) -> None:
    wanted = eh.EHNamespace(
        location="westeurope", tags={"team": "shop"}, sku=eh.Sku(name="Standard", tier="Standard", capacity=2),
        is_auto_inflate_enabled=True, maximum_throughput_units=7,
    )  # fmt: skip
    made = hubs.namespaces.begin_create_or_update(GROUP, "managed", wanted).result()
    assert made.id == (
        f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.EventHub/namespaces/managed"
    )
    assert (made.provisioning_state, made.sku.name, made.sku.capacity) == ("Succeeded", "Standard", 2)
    assert (made.is_auto_inflate_enabled, made.maximum_throughput_units) == (True, 7)
    assert (made.location, made.tags) == ("westeurope", {"team": "shop"})
    again = hubs.namespaces.begin_create_or_update(GROUP, "managed", wanted).result()
    assert (again.location, again.tags) == ("westeurope", {"team": "shop"})
    assert again.sku.capacity == 2, "the same wish twice is no mistake"
    changed = hubs.namespaces.update(
        GROUP, "managed", eh.EHNamespace(sku=eh.Sku(name="Standard", capacity=4), is_auto_inflate_enabled=False)
    )
    assert (changed.sku.capacity, changed.maximum_throughput_units) == (4, 0)
    assert (changed.location, changed.tags) == ("westeurope", {"team": "shop"}), "who says nothing of them leaves them"
    tagged = hubs.namespaces.update(GROUP, "managed", eh.EHNamespace(tags={"Team": "kitchen", "cost": ""}))
    assert (tagged.tags, tagged.sku.capacity) == ({"Team": "kitchen", "cost": ""}, 4)
    assert hubs.namespaces.get(GROUP, "managed").tags == tagged.tags
    assert hubs.namespaces.update(GROUP, "managed", eh.EHNamespace(tags={})).tags == {}
    hubs.namespaces.begin_create_or_update(GROUP, "managed", eh.EHNamespace(location="West Europe")).result()
    with pytest.raises(HttpResponseError, match="is in the location 'westeurope', and stays there"):
        hubs.namespaces.begin_create_or_update(GROUP, "managed", eh.EHNamespace(location="northeurope")).result()
    assert [each.name for each in hubs.namespaces.list_by_resource_group(GROUP)] == ["hubweir", "managed"]
    assert [each.name for each in hubs.namespaces.list()] == ["hubweir", "managed"]
    taken = hubs.namespaces.check_name_availability(eh.CheckNameAvailabilityParameter(name="managed"))
    assert (taken.name_available, taken.reason) == (False, "NameInUse")
    assert hubs.namespaces.check_name_availability(eh.CheckNameAvailabilityParameter(name="free")).name_available
    hubs.namespaces.begin_delete(GROUP, "managed").result()
    with pytest.raises(ResourceNotFoundError, match="There is no namespace 'managed'"):
        hubs.namespaces.get(GROUP, "managed")
    hubs.namespaces.begin_delete(GROUP, "managed").result()


def test_event_hubs_with_capture_groups_rules_and_keys(hubs: EventHubManagementClient, space: str) -> None:
    at = (GROUP, space, "orders")
    capture = eh.CaptureDescription(
        enabled=True, encoding="Avro", interval_in_seconds=120, size_limit_in_bytes=20_971_520,
        skip_empty_archives=True, destination=eh.Destination(name="EventHubArchive.LocalFolder"),
    )  # fmt: skip
    retention = eh.RetentionDescription(cleanup_policy="Delete", retention_time_in_hours=48)
    wanted = eh.Eventhub(partition_count=3, retention_description=retention, capture_description=capture)
    made = hubs.event_hubs.create_or_update(*at, wanted)
    assert (made.partition_count, made.partition_ids, made.status) == (3, ["0", "1", "2"], "Active")
    assert made.retention_description.retention_time_in_hours == 48 and made.message_retention_in_days == 2
    shown = hubs.event_hubs.get(*at).capture_description
    assert (shown.enabled, shown.interval_in_seconds, shown.size_limit_in_bytes) == (True, 120, 20_971_520)
    assert shown.destination.name == "EventHubArchive.LocalFolder" and shown.skip_empty_archives
    # What a PUT does not say stays.
    changed = hubs.event_hubs.create_or_update(*at, eh.Eventhub(user_metadata="of the shop"))
    assert (changed.partition_count, changed.user_metadata, changed.capture_description.enabled) == (
        3,
        "of the shop",
        True,
    )
    with pytest.raises(HttpResponseError, match="3 partitions for its whole life"):
        hubs.event_hubs.create_or_update(*at, eh.Eventhub(partition_count=5))

    hubs.consumer_groups.create_or_update(*at, "billing", eh.ConsumerGroup(user_metadata="for bills"))
    assert hubs.consumer_groups.get(*at, "billing").user_metadata == "for bills"
    assert {each.name for each in hubs.consumer_groups.list_by_event_hub(*at)} == {"$Default", "billing"}
    hubs.consumer_groups.delete(*at, "billing")
    assert [each.name for each in hubs.consumer_groups.list_by_event_hub(*at)] == ["$Default"]

    rule = hubs.event_hubs.create_or_update_authorization_rule(*at, "sender", eh.AuthorizationRule(rights=["Send"]))
    assert rule.rights == ["Send"]
    keys = hubs.event_hubs.list_keys(*at, "sender")
    assert keys.key_name == "sender" and "EntityPath=orders" in keys.primary_connection_string
    with EventHubProducerClient.from_connection_string(plain(keys.primary_connection_string)) as producer:
        producer.send_batch([EventData("two teas")])
    fresh = hubs.event_hubs.regenerate_keys(*at, "sender", eh.RegenerateAccessKeyParameters(key_type="PrimaryKey"))
    assert fresh.primary_key != keys.primary_key and fresh.secondary_key == keys.secondary_key
    assert [each.name for each in hubs.event_hubs.list_authorization_rules(*at)] == ["sender"]
    hubs.event_hubs.delete_authorization_rule(*at, "sender")
    assert not list(hubs.event_hubs.list_authorization_rules(*at))
    assert [each.name for each in hubs.event_hubs.list_by_namespace(GROUP, space)] == ["orders"]
    hubs.event_hubs.delete(*at)
    hubs.event_hubs.delete(*at)
    assert not list(hubs.event_hubs.list_by_namespace(GROUP, space))


def test_queues_with_their_settings_and_counts(buses: ServiceBusManagementClient, space: str) -> None:
    at = (GROUP, space, "orders")
    wanted = sb.SBQueue(
        lock_duration="PT30S", max_delivery_count=3, requires_session=False, dead_lettering_on_message_expiration=True,
        default_message_time_to_live="P7D", max_size_in_megabytes=2_048,
    )  # fmt: skip
    made = buses.queues.create_or_update(*at, wanted)
    assert (made.max_delivery_count, made.max_size_in_megabytes, made.status) == (3, 2_048, "Active")
    assert made.dead_lettering_on_message_expiration and not made.requires_session
    root = buses.namespaces.list_keys(GROUP, space, "RootManageSharedAccessKey")
    client = ServiceBusClient.from_connection_string(plain(root.primary_connection_string))
    with client, client.get_queue_sender("orders") as sender:
        sender.send_messages([ServiceBusMessage("two teas"), ServiceBusMessage("one coffee")])
    shown = buses.queues.get(*at)
    assert (shown.message_count, shown.count_details.active_message_count) == (2, 2)
    changed = buses.queues.create_or_update(*at, sb.SBQueue(lock_duration="PT1M", max_delivery_count=5))
    assert (changed.max_delivery_count, changed.message_count) == (5, 2)
    buses.queues.create_or_update_authorization_rule(*at, "both", sb.SBAuthorizationRule(rights=["Send", "Listen"]))
    assert "EntityPath=orders" in buses.queues.list_keys(*at, "both").secondary_connection_string
    assert [each.name for each in buses.queues.list_by_namespace(GROUP, space)] == ["orders"]
    buses.queues.delete(*at)
    with pytest.raises(ResourceNotFoundError):
        buses.queues.get(*at)


def test_topics_subscriptions_and_rules(buses: ServiceBusManagementClient, space: str) -> None:
    topic, carrier = (GROUP, space, "flights"), (GROUP, space, "flights", "ua")
    made = buses.topics.create_or_update(*topic, sb.SBTopic(requires_duplicate_detection=True))
    assert made.requires_duplicate_detection
    sub = buses.subscriptions.create_or_update(*carrier, sb.SBSubscription(max_delivery_count=4, lock_duration="PT20S"))
    assert (sub.name, sub.max_delivery_count) == ("ua", 4)
    assert [each.name for each in buses.rules.list_by_subscriptions(*carrier)] == ["$Default"]
    sql = sb.Rule(
        filter_type="SqlFilter", sql_filter=sb.SqlFilter(sql_expression="carrier = 'UA'"),
        action=sb.Action(sql_expression="SET seen = 1"),
    )  # fmt: skip
    rule = buses.rules.create_or_update(*carrier, "of-ua", sql)
    assert (rule.filter_type, rule.sql_filter.sql_expression) == ("SqlFilter", "carrier = 'UA'")
    assert rule.action.sql_expression == "SET seen = 1"
    asked = sb.CorrelationFilter(label="delayed", properties={"carrier": "UA"})
    replaced = buses.rules.create_or_update(
        *carrier, "of-ua", sb.Rule(filter_type="CorrelationFilter", correlation_filter=asked)
    )
    assert (replaced.correlation_filter.label, replaced.correlation_filter.properties) == ("delayed", {"carrier": "UA"})
    buses.rules.delete(*carrier, "$Default")
    assert [each.name for each in buses.rules.list_by_subscriptions(*carrier)] == ["of-ua"]
    with pytest.raises(HttpResponseError) as refused:
        bad = sb.Rule(filter_type="SqlFilter", sql_filter=sb.SqlFilter(sql_expression="carrier = = 'UA'"))
        buses.rules.create_or_update(*carrier, "bad", bad)
    assert refused.value.error is not None and refused.value.error.code == "BadRequest"
    assert [each.name for each in buses.subscriptions.list_by_topic(*topic)] == ["ua"]
    assert buses.topics.get(*topic).subscription_count == 1
    buses.subscriptions.delete(*carrier)
    buses.topics.delete(*topic)
    assert not list(buses.topics.list_by_namespace(GROUP, space))


def test_a_namespaces_rules_and_its_root_key_are_its_own(hubs: EventHubManagementClient, space: str) -> None:
    made = hubs.namespaces.create_or_update_authorization_rule(
        GROUP, space, "readers", eh.AuthorizationRule(rights=["Listen"])
    )
    assert made.rights == ["Listen"]
    changed = hubs.namespaces.create_or_update_authorization_rule(
        GROUP, space, "readers", eh.AuthorizationRule(rights=["Listen", "Send"])
    )
    assert changed.rights == ["Listen", "Send"]
    names = {each.name for each in hubs.namespaces.list_authorization_rules(GROUP, space)}
    assert names == {"RootManageSharedAccessKey", "readers"}
    root = hubs.namespaces.list_keys(GROUP, space, "RootManageSharedAccessKey")
    renewed = hubs.namespaces.regenerate_keys(
        GROUP, space, "RootManageSharedAccessKey", eh.RegenerateAccessKeyParameters(key_type="PrimaryKey", key="mine")
    )
    assert renewed.primary_key == "mine" != root.primary_key
    hubs.namespaces.delete_authorization_rule(GROUP, space, "readers")


def test_lists_come_in_pages(buses: ServiceBusManagementClient, space: str) -> None:
    for number in range(5):
        buses.queues.create_or_update(GROUP, space, f"q{number}", sb.SBQueue())
    assert [each.name for each in buses.queues.list_by_namespace(GROUP, space, top=2)] == [f"q{n}" for n in range(5)]
    assert [each.name for each in buses.queues.list_by_namespace(GROUP, space, skip=3)] == ["q3", "q4"]


UNSUPPORTED: list[Callable[[EventHubManagementClient, str], Any]] = [
    lambda hubs, space: hubs.application_group.get(GROUP, space, "any"),
    lambda hubs, space: hubs.schema_registry.get(GROUP, space, "any"),
    lambda hubs, space: hubs.disaster_recovery_configs.get(GROUP, space, "any"),
    lambda hubs, space: hubs.private_endpoint_connections.get(GROUP, space, "any"),
    lambda hubs, space: hubs.namespaces.get_network_rule_set(GROUP, space),
    lambda hubs, space: hubs.clusters.get(GROUP, "any"),
    lambda hubs, space: list(hubs.clusters.list_by_subscription()),
    lambda hubs, space: hubs.namespaces.begin_create_or_update(
        GROUP, f"{space}x", eh.EHNamespace(location="local", disable_local_auth=True)
    ).result(),
    lambda hubs, space: hubs.event_hubs.create_or_update(
        GROUP, space, "compacted",
        eh.Eventhub(retention_description=eh.RetentionDescription(cleanup_policy="Compact")),
    ),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(UNSUPPORTED)))
def test_what_is_not_served_is_refused_with_arms_error(hubs: EventHubManagementClient, space: str, number: int) -> None:
    with pytest.raises(HttpResponseError) as refused:
        UNSUPPORTED[number](hubs, space)
    assert refused.value.status_code == 501
    assert refused.value.error is not None and refused.value.error.code == "OperationNotSupported"
    assert "not served" in refused.value.error.message


def test_a_principal_without_the_owners_role_may_nothing(connect: Connect) -> None:
    sender = connect(EventHubManagementClient, "Azure Event Hubs Data Sender")
    with pytest.raises(HttpResponseError) as refused:
        list(sender.namespaces.list())
    assert refused.value.error is not None
    assert (refused.value.status_code, refused.value.error.code) == (403, "AuthorizationFailed")


def test_a_token_of_another_issuer_is_refused(running: RunningNamespace) -> None:
    other = EventHubManagementClient(
        Credential(TestIssuer(), OWNER), SUBSCRIPTION, base_url=f"https://localhost:{running.port}",
        connection_verify=str(running.ca_file), retry_total=0,
    )  # fmt: skip
    with pytest.raises(ClientAuthenticationError, match="AuthenticationFailed"):
        list(other.namespaces.list())
