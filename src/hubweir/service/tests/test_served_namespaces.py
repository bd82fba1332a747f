"""Namespaces made and deleted while a service runs: what clients see, what a later start finds, what a crash leaves.

Long because each promise of docs/namespace.md about them has its test here, on a whole service.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from azure.eventhub import EventData, EventHubConsumerClient, EventHubProducerClient
from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.exceptions import ServiceBusError

from hubweir.auth.shared_access_signature import make_token
from hubweir.client.administration import Administration
from hubweir.client.atom_documents import EntityType, entity_of
from hubweir.config.namespace_settings import said_namespaces
from hubweir.config.settings import DEVELOPMENT_KEY, BadSetting, Settings
from hubweir.drivers.tls import client_context
from hubweir.errors import (
    ARGUMENT_ERROR,
    ARGUMENT_OUT_OF_RANGE,
    ENTITY_EXISTS,
    NOT_ALLOWED,
    NOT_FOUND,
    RESOURCE_LIMIT,
    SERVER_BUSY,
    STORE_OFFLINE,
    UNAUTHORIZED,
    Condition,
    ServiceError,
)
from hubweir.gateway.catalog_keeper import CatalogKeeper
from hubweir.gateway.gateway import Gateway
from hubweir.gateway.http.exchange import answer_of
from hubweir.gateway.namespace_management import NewNamespace
from hubweir.namespace.connection_string import ConnectionString
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.secret import Secret
from hubweir.service import namespace_removal, served_namespaces
from hubweir.service.served_namespaces import ServedNamespaces
from hubweir.testing.running_namespace import RunningNamespace, running_namespace

ROOT = "RootManageSharedAccessKey"


def administration(running: RunningNamespace, key: str = "") -> Administration:
    """Of the default namespace, or of the one that has this root key."""
    target = ConnectionString.parse(running.connection_string())
    return Administration(replace(target, key=Secret(key)) if key else target)


def names(running: RunningNamespace) -> list[str]:
    return [each["name"] for each in administration(running).namespaces()]


def refusal(step: Any, *arguments: Any, **members: Any) -> tuple[Condition, str]:
    with pytest.raises(ServiceError) as refused:
        step(*arguments, **members)
    return refused.value.condition, refused.value.text


def gateway_of(running: RunningNamespace, name: str) -> Gateway:
    return next(each for each in running.parts.process.gateways if each.settings.namespace == name)


def logs_in(folder: Path) -> list[str]:
    return sorted(each.name for each in (folder / "logs").iterdir())


@pytest.fixture
def running() -> Iterator[RunningNamespace]:
    with running_namespace() as namespace:
        yield namespace


def test_official_clients_use_a_namespace_that_was_made_a_moment_ago_by_the_address_alone(
    running: RunningNamespace,
) -> None:
    made = administration(running).create_namespace("fresh")
    own = replace(ConnectionString.parse(running.connection_string()), key=Secret(made["key"])).format()
    there = administration(running, made["key"])
    there.create(EntityType.QUEUE, "orders", {})
    with ServiceBusClient.from_connection_string(own) as client:
        with client.get_queue_sender("orders") as sender:
            sender.send_messages(ServiceBusMessage("two teas"))
        with client.get_queue_receiver("orders", max_wait_time=10) as receiver:
            (message,) = receiver.receive_messages(max_message_count=1)
            receiver.complete_message(message)
    assert str(message) == "two teas"
    assert [each.name for each in there.list(EntityType.QUEUE)] == ["orders"]
    assert not list(administration(running).list(EntityType.QUEUE)), "the default namespace has none of it"


def test_events_go_to_the_namespace_whose_key_signed_the_token(running: RunningNamespace) -> None:
    made = administration(running).create_namespace("fresh")
    running.create_event_hub("flights")
    create = partial(gateway_of(running, "fresh").keeper.create, EventHubDescription("flights", 1))
    running.run(answer_of(create))
    own = replace(ConnectionString.parse(running.connection_string()), key=Secret(made["key"])).format()
    with EventHubProducerClient.from_connection_string(own, eventhub_name="flights") as producer:
        producer.send_batch([EventData("of fresh")])

    def count(text: str) -> int:
        with EventHubConsumerClient.from_connection_string(text, "$Default", eventhub_name="flights") as consumer:
            return int(consumer.get_partition_properties("0")["last_enqueued_sequence_number"]) + 1

    assert (count(own), count(running.connection_string())) == (1, 0)


def test_it_is_there_after_a_stop_with_the_key_and_the_profile_that_it_was_made_with(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    with running_namespace(data=data) as running:
        made = administration(running).create_namespace(
            "kept", profile="standard", hostnames=["kept.example"], throughput_units=3, maximum_throughput_units=9
        )
    # What a start says of all namespaces is not for those that were made while the service ran.
    changed = Settings(data=data, port=(0,), key="another key", profile="premium")
    with running_namespace(
        data=data, key=changed.key, profile=changed.profile, said=said_namespaces(changed)
    ) as running:
        shown = administration(running).find_namespace("kept")
        assert (shown["profile"], shown["host_names"]) == ("standard", ["kept", "kept.example", "kept.localhost"])
        assert (shown["throughput_units"], shown["maximum_throughput_units"]) == (3, 9)
        # A tier takes no token for a host that is not its own.
        assert whom(running, "kept.example", made["key"]) == "kept"
        assert refusal(administration(running, "another key").create_namespace, "kept")[0] is ENTITY_EXISTS


def test_a_start_that_names_it_takes_it_over(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    with running_namespace(data=data) as running:
        administration(running).create_namespace("kept", key="its own key")
    named = {"data": data, "key": "of all", "further_namespace": ("kept",)}
    with running_namespace(**named) as running:
        assert administration(running, "of all").namespace().members["Name"] == "hubweir"
        assert refusal(administration(running, "its own key").namespace)[0].http == 401


def test_a_root_rule_that_its_owner_removed_does_not_come_back_with_a_known_key(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    with running_namespace(data=data) as running:
        administration(running).create_namespace("kept")
        running.run(answer_of(partial(gateway_of(running, "kept").rules.delete, None, ROOT)))
    with running_namespace(data=data) as running:
        assert "kept" in names(running)
        assert not gateway_of(running, "kept").namespace.description.rules
        assert {each.key for each in running.parts.namespaces} == {DEVELOPMENT_KEY, ""}


def test_a_host_name_of_its_own_leads_to_it_at_once_and_its_certificate_too(running: RunningNamespace) -> None:
    made = administration(running).create_namespace("fresh", hostnames=["hubs.example"])
    assert made["host_names"] == ["fresh", "fresh.localhost", "hubs.example"]
    assert whom(running, "hubs.example", made["key"]) == "fresh"
    assert "hubs.example" not in running.parts.gateway.hosts, "it is another's, so the default one takes it no more"
    administration(running).create_namespace("plain")
    for host in ("hubs.example", "plain.localhost", "localhost"):
        assert is_named(running, host)


def whom(running: RunningNamespace, host: str, key: str) -> str:
    """The namespace that a host leads to."""
    token = make_token(f"https://{host}/", ROOT, key, int(time.time()) + 60)
    with closing(HTTPConnection(running.host, running.port, timeout=30)) as connection:
        connection.request("GET", "/$namespaceinfo", headers={"Host": host, "Authorization": token})
        return entity_of(connection.getresponse().read()).members["Name"]


def is_named(running: RunningNamespace, host: str) -> bool:
    """Whether the certificate is for a host."""
    context = client_context(running.ca_file)
    with (
        socket.create_connection((running.host, running.port), timeout=30) as plain,
        context.wrap_socket(plain, server_hostname=host) as secured,
    ):
        return bool(secured.getpeercert())


def test_a_deleted_one_takes_its_logs_and_its_connections_with_it_and_its_name_is_free(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    with running_namespace(data=str(data)) as running:
        admin = administration(running)
        running.create_queue("stays")
        left = logs_in(data / "store-0"), logs_in(data / "catalog")
        made = admin.create_namespace("gone", hostnames=["gone.example"])
        own = replace(ConnectionString.parse(running.connection_string()), key=Secret(made["key"])).format()
        there = administration(running, made["key"])
        there.create(EntityType.QUEUE, "orders", {})
        there.create(EntityType.TOPIC, "news", {})
        there.create(EntityType.SUBSCRIPTION, "news/Subscriptions/all", {})
        with ServiceBusClient.from_connection_string(own, retry_total=0) as client:
            sender = client.get_queue_sender("orders")
            sender.send_messages(ServiceBusMessage("one"))
            assert gateway_of(running, "gone").connection_count == 1
            admin.delete_namespace("GONE")
            assert running.parts.process.default.connection_count == 0
            with pytest.raises(ServiceBusError):
                sender.send_messages(ServiceBusMessage("two"))
        assert (logs_in(data / "store-0"), logs_in(data / "catalog")) == left
        assert refusal(there.namespace)[0].http == 401
        assert refusal(admin.delete_namespace, "gone")[0] is NOT_FOUND
        again = admin.create_namespace("gone", hostnames=["gone.example"])
        assert (again["queues"], again["topics"]) == (0, 0)
        assert again["key"] != made["key"]
    with running_namespace(data=str(data)) as running:
        assert names(running) == ["hubweir", "gone"]


@pytest.mark.parametrize(
    ("name", "members", "condition", "says"),
    [
        ("hubweir", {}, ENTITY_EXISTS, "There is a namespace 'hubweir' already"),
        ("HUBWEIR", {}, ENTITY_EXISTS, "already"),
        ("a_b", {}, ARGUMENT_OUT_OF_RANGE, "not a legal namespace name"),
        ("n" * 51, {}, ARGUMENT_OUT_OF_RANGE, "1 to 50 are allowed"),
        ("x", {"hostnames": ["hubweir.localhost"]}, ENTITY_EXISTS, None),
        ("x", {"hostnames": ["taken.example"]}, ENTITY_EXISTS, "leads to the namespace"),
        ("x", {"hostnames": ["a b"]}, ARGUMENT_OUT_OF_RANGE, "without a port"),
        ("x", {"hostnames": "x.example"}, ARGUMENT_ERROR, "a list of texts"),
        ("x", {"profile": "gold"}, ARGUMENT_ERROR, "There is no profile 'gold': development"),
        ("x", {"throughput_units": 41}, ARGUMENT_OUT_OF_RANGE, "41 throughput units"),
        ("x", {"throughput_units": 2, "maximum_throughput_units": 1}, ARGUMENT_OUT_OF_RANGE, "raise the maximum"),
        ("x", {"throughput_units": "2"}, ARGUMENT_ERROR, "whole number"),
        ("x", {"key": "k" * 257}, ARGUMENT_OUT_OF_RANGE, "1 to 256"),
        ("x", {"colour": "red"}, ARGUMENT_ERROR, "A namespace has no 'colour'"),
    ],
)  # fmt: skip
def test_what_cannot_be_made_is_refused_with_the_way_out_and_leaves_nothing(
    running: RunningNamespace, name: str, members: dict[str, Any], condition: Condition, says: str | None
) -> None:
    admin = administration(running)
    admin.create_namespace("first", hostnames=["taken.example"])
    catalogs = logs_in(Path(running.parts.settings.data) / "catalog")
    if says is None:
        # NAME.localhost leads to its namespace unless the name was given to another: giving it away is allowed.
        assert "hubweir.localhost" in admin.create_namespace(name, **members)["host_names"]
        return
    found, text = refusal(admin.create_namespace, name, **members)
    assert (found.http, says in text) == (condition.http, True), text
    assert names(running) == ["hubweir", "first"]
    assert logs_in(Path(running.parts.settings.data) / "catalog") == catalogs


def test_where_strangers_could_use_it_no_namespace_gets_the_development_key(
    running: RunningNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a new one nor, by what its sources of settings say now, one that is there."""
    admin, served = administration(running), running.parts.served_namespaces
    said = said_namespaces(running.parts.settings)
    monkeypatch.setattr(served, "_settings", replace(served._settings, host=("0.0.0.0",)))
    found, text = refusal(admin.create_namespace, "exposed", key=DEVELOPMENT_KEY)
    assert (found.http, "everybody knows the development key" in text) == (NOT_ALLOWED.http, True)
    with pytest.raises(BadSetting, match="everybody knows the development key"):
        running.run(served.go_by(said))
    assert names(running) == ["hubweir"]
    assert admin.create_namespace("own", key="a key of its own")["key"] == "a key of its own"
    monkeypatch.setattr(served, "_settings", replace(served._settings, host=("127.0.0.1",)))
    assert admin.create_namespace("local", key=DEVELOPMENT_KEY)["key"] == DEVELOPMENT_KEY, "the control"
    running.run(served.go_by(said))
    assert names(running) == ["hubweir", "own", "local"]


def test_the_default_one_is_never_deleted(running: RunningNamespace) -> None:
    found, text = refusal(administration(running).delete_namespace, "hubweir")
    assert (found.http, "the default namespace" in text) == (NOT_ALLOWED.http, True)


def test_only_a_key_of_the_default_namespace_manages_namespaces(running: RunningNamespace) -> None:
    made = administration(running).create_namespace("other")
    there = administration(running, made["key"])
    for step in (there.namespaces, lambda: there.find_namespace("hubweir"), lambda: there.create_namespace("more"),
                 lambda: there.delete_namespace("other")):  # fmt: skip
        found, text = refusal(step)
        assert (found.http, "a key of the default namespace, 'hubweir'" in text) == (UNAUTHORIZED.http, True)
    assert names(running) == ["hubweir", "other"]


def test_there_is_a_most_of_them(running: RunningNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_namespaces, "NAMESPACES_LIMIT", 2)
    administration(running).create_namespace("second")
    found, text = refusal(administration(running).create_namespace, "third")
    assert (found.http, "delete one first" in text) == (RESOURCE_LIMIT.http, True)


def test_a_deletion_that_was_interrupted_is_carried_on_by_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service ends between the record that says so and the first log that goes."""
    data = tmp_path / "data"

    async def fails(self: namespace_removal.NamespaceRemoval) -> Exception:
        return OSError("the disk is away")

    with running_namespace(data=str(data)) as running:
        before = logs_in(data / "store-0"), logs_in(data / "catalog")
        made = administration(running).create_namespace("gone")
        administration(running, made["key"]).create(EntityType.QUEUE, "orders", {})
        with monkeypatch.context() as planted:
            planted.setattr(namespace_removal.NamespaceRemoval, "attempt", fails)
            found, text = refusal(administration(running).delete_namespace, "gone")
            assert (found.http, "is not served any more" in text) == (STORE_OFFLINE.http, True)
            assert names(running) == ["hubweir"]
            assert logs_in(data / "store-0") != before[0]
            stop_now(running)
    with running_namespace(data=str(data)) as running:
        assert names(running) == ["hubweir"]
        deadline = time.monotonic() + 30
        while (logs_in(data / "store-0"), logs_in(data / "catalog")) != before and time.monotonic() < deadline:
            time.sleep(0.01)
        assert (logs_in(data / "store-0"), logs_in(data / "catalog")) == before


def stop_now(running: RunningNamespace) -> None:
    """Give up the deletion that is tried again, while it cannot succeed."""
    management = running.parts.process.namespaces
    assert isinstance(management, served_namespaces.ServedNamespaces)
    running.run(management.stop())


def test_behind_a_stop_nothing_is_made_deleted_or_changed_and_the_refusal_says_why(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running_namespace(data=str(data), further_namespace=("second",)) as running:
        served = running.parts.served_namespaces
        said = said_namespaces(replace(running.parts.settings, further_namespace=("second", "third")))
        before = served.namespaces, served.version, logs_in(data / "catalog")

        async def behind_the_stop() -> None:
            await served._turn.acquire()  # whoever waits for a turn has begun before the stop, and goes on behind it
            waits = asyncio.ensure_future(served.go_by(said))
            await asyncio.sleep(0)
            await served.stop()
            served._turn.release()
            for asked, what in (
                (waits, "have it read its settings"),
                (served.go_by(said), "have it read its settings"),
                (served.create(NewNamespace(name="fresh")), "create the namespace"),
                (served.delete("second"), "delete the namespace"),
            ):
                with pytest.raises(ServiceError, match=f"The service stops: {what} when it runs again") as caught:
                    await asked
                assert caught.value.condition is SERVER_BUSY

        running.run(behind_the_stop())
        assert (served.namespaces, served.version, logs_in(data / "catalog")) == before


def test_a_namespace_that_cannot_be_described_is_not_there_and_its_catalog_serves_the_next_one(
    running: RunningNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(running.parts.settings.data) / "catalog"

    async def fails(*_: Any) -> None:
        raise ServiceError(STORE_OFFLINE, "The catalog cannot be written now.")

    with monkeypatch.context() as planted:
        planted.setattr(served_namespaces, "start_gateway", fails)
        assert refusal(administration(running).create_namespace, "first")[0].http == STORE_OFFLINE.http
    assert names(running) == ["hubweir"]
    made = logs_in(folder)
    administration(running).create_namespace("second")
    assert logs_in(folder) == made
    assert names(running) == ["hubweir", "second"]


def test_said_namespaces_are_still_said_by_their_start(tmp_path: Path) -> None:
    """One that a start names, and somebody deletes, is made anew by the next start that names it."""
    named: dict[str, Any] = {"data": str(tmp_path / "data"), "further_namespace": ("said",)}
    with running_namespace(**named) as running:
        administration(running).delete_namespace("said")
        assert names(running) == ["hubweir"]
    with running_namespace(**named) as running:
        assert names(running) == ["hubweir", "said"]


def test_whoever_goes_away_in_the_middle_leaves_a_namespace_whole(running: RunningNamespace) -> None:
    management = running.parts.process.namespaces
    assert management is not None

    async def goes_away() -> None:
        asking = asyncio.ensure_future(management.create(NewNamespace(name="left")))
        for _ in range(3):
            await asyncio.sleep(0)
        asking.cancel()
        with suppress(asyncio.CancelledError):
            await asking

    running.run(goes_away())
    administration(running).create_namespace("next")  # waits for its turn
    assert names(running) == ["hubweir", "left", "next"]
    for name in ("left", "next"):
        administration(running).delete_namespace(name)
    assert names(running) == ["hubweir"]


def test_no_process_is_waited_for_while_what_a_deleted_namespace_held_goes(running: RunningNamespace) -> None:
    """A process follows a catalog as long as its namespace is served, and applies nothing of it behind that."""
    made = administration(running).create_namespace("fresh")
    administration(running, made["key"]).create(EntityType.QUEUE, "orders", {})
    gateway, dead = gateway_of(running, "fresh"), list[int]()
    keeper = gateway.keeper
    assert isinstance(keeper, CatalogKeeper)

    async def follow() -> None:
        def tell(version: int, operation: bytes) -> None:
            if gateway in running.parts.process.gateways:
                keeper.followers.applied(7, version)

        version, _ = keeper.snapshot()
        keeper.followers.came(7, version, tell, lambda: dead.append(7))
        keeper.followers.applied(7, version)

    running.run(follow())
    administration(running).delete_namespace("fresh")
    assert not dead, "it would have been taken for dead"


def test_whoever_is_refused_a_name_that_is_taken_finds_it_in_every_process(running: RunningNamespace) -> None:
    """The refusal of the second one is ready as soon as the list has the name; another process applies it later."""
    served = running.parts.process.namespaces
    assert isinstance(served, ServedNamespaces)

    async def both() -> list[None | BaseException]:
        told: list[int] = []
        followers = served.followers
        followers.came(7, served.version, lambda version, _: told.append(version), lambda: None)
        followers.applied(7, served.version)
        asking = [asyncio.ensure_future(served.create(NewNamespace(name="twice"))) for _ in range(2)]
        while not told:
            await asyncio.sleep(0.001)
        for _ in range(50):
            await asyncio.sleep(0)
        assert not any(each.done() for each in asking)
        followers.applied(7, told[-1])
        followers.gone(7)
        return await asyncio.gather(*asking, return_exceptions=True)

    made, refused = running.run(both())
    assert made is None and isinstance(refused, ServiceError) and refused.condition is ENTITY_EXISTS
    administration(running).delete_namespace("twice")
