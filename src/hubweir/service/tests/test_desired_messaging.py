"""Queues, topics, subscriptions and rules of a Config.json at start: made once, changed where they may be."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace

from hubweir.auth.shared_access_signature import make_token
from hubweir.cli.given_settings import configured
from hubweir.config.problems import EmulatorFileError
from hubweir.namespace.entity import Availability, EntityDescription
from hubweir.namespace.messaging_description import MessagingDescription
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.namespace.subscription_rule import (
    CorrelationFilterDescription,
    NamedValue,
    SqlActionDescription,
    SqlFilterDescription,
    TrueFilterDescription,
    ValueType,
)
from hubweir.namespace.topic_description import TopicDescription
from hubweir.service.service import Service
from hubweir.testing.event_loops import run_on

T = TypeVar("T")

SAMPLES = Path(__file__).resolve().parents[2] / "config/tests/samples"


class Started:
    """What was there when a service was ready: descriptions by name, rules by the subscription's path."""

    def __init__(self, service: Service) -> None:
        namespace = service.gateway.namespace
        self.hubs = len(namespace.entities(EntityDescription)) - len(namespace.entities(MessagingDescription))
        descriptions = [each.description for each in namespace.entities(MessagingDescription)]
        self.found: dict[str, Any] = {each.name: replace(each, rules=()) for each in descriptions}
        self.rights = {each.name: [rule.name for rule in each.rules] for each in descriptions if each.rules}
        self.rules = {
            each.name: {rule.name: rule for rule in namespace.subscription_rules(each.name)}
            for each in namespace.entities(SubscriptionDescription)
        }


def start(folder: Path, file: Path, **flags: object) -> Started:
    async def look(service: Service) -> Started:
        return Started(service)

    return with_service(folder, file, look, **flags)


def with_service(folder: Path, file: Path, look: Callable[[Service], Awaitable[T]], **flags: object) -> T:
    """Start with the file as `hubweir serve` does, look at what is there, and stop again."""
    given = {"data": str(folder / "data"), "port": (0,), "emulator_config": (str(file),), **flags}
    settings, said = configured(given, {}, None)

    async def run() -> T:
        service = await Service.start(settings, said)
        try:
            return await look(service)
        finally:
            await service.stop()

    return run_on("asyncio", run())


def write(folder: Path, **namespace: Any) -> Path:
    file = folder / "Config.json"
    file.write_text(json.dumps({"UserConfig": {"Namespaces": [namespace], "Logging": {"Type": "Console"}}}))
    return file


def queue(**properties: Any) -> list[dict[str, Any]]:
    return [{"Name": "q", "Properties": properties}]


def topic(*rules: dict[str, Any], **properties: Any) -> list[dict[str, Any]]:
    return [{"Name": "t", "Subscriptions": [{"Name": "s", "Properties": properties, "Rules": list(rules)}]}]


def sql(name: str, expression: str) -> dict[str, Any]:
    return {"Name": name, "Properties": {"FilterType": "Sql", "SqlFilter": {"SqlExpression": expression}}}


def test_the_official_shapes_of_queues_and_rules_are_there(tmp_path: Path) -> None:
    found = start(tmp_path, SAMPLES / "service_bus.json")
    jobs, news = found.found["jobs"], found.found["news"]
    assert isinstance(jobs, QueueDescription) and isinstance(news, TopicDescription)
    assert jobs.delivery.lock_duration.text == "PT2M"
    rules = [list(each.values()) for each in found.rules.values()]
    (by_type,), (by_property,), (everything,), (by_expression,) = rules
    assert by_type.filter == CorrelationFilterDescription(
        content_type="text/plain", correlation_id="c-1", label="weather", message_id="m-1", reply_to="jobs",
        reply_to_session_id="rs-1", session_id="s-1", to="everybody",
    )  # fmt: skip
    assert by_property.filter.properties == (
        NamedValue("colour", ValueType.STRING, "red"), NamedValue("size", ValueType.LONG, "3"),
    )  # fmt: skip
    assert (everything.name, everything.filter) == ("$Default", TrueFilterDescription())
    assert isinstance(by_expression.filter, SqlFilterDescription)
    assert by_expression.action == SqlActionDescription("SET sys.To = 'night-shift'")


def test_both_services_stand_side_by_side(tmp_path: Path) -> None:
    bus = start(tmp_path, SAMPLES / "service_bus.json", emulator_config=(
        str(SAMPLES / "event_hubs.json"), str(SAMPLES / "service_bus.json"),
    ))  # fmt: skip
    assert bus.hubs == 2 and "jobs" in bus.found


def test_the_same_file_again_changes_nothing(tmp_path: Path) -> None:
    rules = [sql("a", "x = 1"), sql("b", "y = 2")]
    rights = [{"KeyName": "r", "PrimaryKey": "k", "SecondaryKey": "l", "Rights": ["Send"]}]
    file = write(tmp_path, Queues=queue(ForwardTo="t", AuthorizationRules=rights), Topics=topic(*rules, ForwardTo="q"))
    first = start(tmp_path, file)
    assert first.found["q"].delivery.forward_to == "t" and first.found["t/Subscriptions/s"].delivery.forward_to == "q"
    assert list(first.rules["t/Subscriptions/s"]) == ["a", "b"]
    assert first.rights == {"q": ["r"]}
    again = start(tmp_path, file)
    assert (again.found, again.rules) == (first.found, first.rules), "nothing was changed, not even its time"


def test_a_changed_file_changes_what_it_says_and_nothing_else(tmp_path: Path) -> None:
    before = write(tmp_path, Queues=queue(MaxDeliveryCount=7, LockDuration="PT30S"), Topics=topic(sql("a", "x = 1")))
    start(tmp_path, before)
    after = write(
        tmp_path, Queues=queue(LockDuration="PT90S", Status="SendDisabled"),
        Topics=topic(sql("a", "x = 2"), sql("b", "y = 2"), MaxDeliveryCount=4),
    )  # fmt: skip
    found = start(tmp_path, after)
    changed = found.found["q"]
    assert (changed.delivery.max_delivery_count, changed.delivery.lock_duration.text) == (7, "PT90S")
    assert changed.availability is Availability.SEND_DISABLED
    assert found.found["t/Subscriptions/s"].delivery.max_delivery_count == 4
    rules = found.rules["t/Subscriptions/s"]
    assert [rule.filter.expression for rule in rules.values()] == ["x = 2", "y = 2"]


def test_rules_that_come_later_stand_in_the_place_of_the_default(tmp_path: Path) -> None:
    assert list(start(tmp_path, write(tmp_path, Topics=topic())).rules["t/Subscriptions/s"]) == ["$Default"]
    found = start(tmp_path, write(tmp_path, Topics=topic(sql("a", "x = 1"))))
    assert list(found.rules["t/Subscriptions/s"]) == ["a"]
    found = start(tmp_path, write(tmp_path, Topics=topic(sql("$Default", "y = 1"), sql("a", "x = 1"))))
    assert set(found.rules["t/Subscriptions/s"]) == {"$Default", "a"}


@pytest.mark.parametrize(
    "rules", [[sql("bad", "x =")], [sql("good", "x = 1"), sql("bad", "x =")]], ids=["first", "later"]
)
def test_a_rule_that_means_nothing_is_told_wherever_it_stands(tmp_path: Path, rules: list[dict[str, Any]]) -> None:
    """The first rule is made with its subscription, the others behind it: both are checked."""
    with pytest.raises(EmulatorFileError) as refused:
        start(tmp_path, write(tmp_path, Topics=topic(*rules)))
    [problem] = refused.value.problems
    assert "Topics[0].Subscriptions[0]" in problem.location.path
    assert problem.what.startswith("The SQL expression is wrong at character 4, at its end")


def test_what_never_changes_is_told_with_its_place_and_all_of_it(tmp_path: Path) -> None:
    start(tmp_path, write(tmp_path, Queues=queue(), Topics=topic()))
    file = write(
        tmp_path, Queues=[*queue(RequiresSession=True), {"Name": "p", "Properties": {"ForwardTo": "missing"}}],
        Topics=topic(RequiresSession=True),
    )  # fmt: skip
    with pytest.raises(EmulatorFileError) as refused:
        start(tmp_path, file)
    told = [(problem.location.path.removeprefix("$.UserConfig.Namespaces[0]."), problem.what)
            for problem in refused.value.problems]  # fmt: skip
    assert [place for place, _ in told] == [
        "Queues[0].Name", "Topics[0].Subscriptions[0].Name", "Queues[1].Name",
    ]  # fmt: skip
    assert "The value for the RequiresSession property of an existing Queue cannot be changed" in told[0][1]
    assert "there is no queue or topic of that name" in told[2][1]


def test_the_official_emulator_has_defaults_of_its_own(tmp_path: Path) -> None:
    file = write(tmp_path, Name="sbemulatorns", Queues=queue(), Topics=topic())
    found = start(tmp_path, file, profile="official-emulator").found
    made, subscription = found["q"], found["t/Subscriptions/s"]
    assert (made.default_time_to_live.text, made.storage.duplicate_window.text) == ("PT1H", "PT20S")
    assert made.delivery.max_delivery_count == subscription.delivery.max_delivery_count == 3
    other = start(tmp_path / "other", file).found["q"]
    assert (other.default_time_to_live.is_unlimited, other.delivery.max_delivery_count) == (True, 10)


def test_two_tiers_stand_side_by_side_each_with_its_rules_under_its_own_host(tmp_path: Path) -> None:
    rules = [
        {"KeyName": name, "PrimaryKey": "k", "Rights": rights}
        for name, rights in (("all", ["Manage", "Send", "Listen"]), ("send", ["Send"]), ("listen", ["Listen"]))
    ]
    spaces = [
        {"Name": sku.lower(), "Sku": sku, "Hostnames": [f"{sku.lower()}.bus.example"], "Queues": [{"Name": "q"}],
         "AuthorizationRules": [{**rule, "KeyName": f"{rule['KeyName']}-{sku.lower()}"} for rule in rules]}
        for sku in ("Standard", "Premium")
    ]  # fmt: skip
    file = tmp_path / "Config.json"
    file.write_text(json.dumps({"UserConfig": {"Namespaces": spaces, "Logging": {"Type": "Console"}}}))

    async def look(service: Service) -> dict[tuple[str, str, str], tuple[int, str]]:
        def ask(tier: str, rule: str, path: str) -> tuple[int, str]:
            host, port = service.addresses[0]
            at = f"{tier}.bus.example"
            headers = {"Host": at, "Authorization": make_token(f"https://{at}/", rule, "k", int(time.time()) + 60)}
            with closing(HTTPConnection(host, port, timeout=30)) as connection:
                connection.request("GET", path, headers=headers)
                answer = connection.getresponse()
                return answer.status, answer.read().decode()

        return {
            (tier, rule, path): await asyncio.to_thread(ask, tier, rule, path)
            for tier in ("standard", "premium")
            for rule in ("all-standard", "send-standard", "listen-premium", "all-premium")
            for path in ("/$namespaceinfo", "/q")
        }

    found = with_service(tmp_path, file, look)
    assert [key for key, (status, _) in found.items() if status == 200] == [
        ("standard", "all-standard", "/$namespaceinfo"), ("standard", "all-standard", "/q"),
        ("premium", "all-premium", "/$namespaceinfo"), ("premium", "all-premium", "/q"),
    ]  # fmt: skip
    assert {status for status, _ in found.values()} == {200, 401}
    assert "<MessagingSKU>Standard</MessagingSKU>" in found["standard", "all-standard", "/$namespaceinfo"][1]
    assert "<MessagingUnits>1</MessagingUnits>" in found["premium", "all-premium", "/$namespaceinfo"][1]
    for tier, size in (("standard", 256), ("premium", 1024)):
        assert f"<MaxMessageSizeInKilobytes>{size}<" in found[tier, f"all-{tier}", "/q"][1]


@pytest.mark.parametrize(
    ("namespace", "properties", "partitioned"),
    [
        ({}, {}, False),
        ({}, {"EnablePartitioning": True}, True),
        ({"Sku": "Standard"}, {}, True),
        ({"Sku": "Basic"}, {}, True),
        ({"Sku": "Standard"}, {"EnablePartitioning": False}, False),
        ({"Sku": "Premium"}, {"EnablePartitioning": False}, True),
    ],
)
def test_a_file_that_names_the_tier_means_partitioned_queues_as_the_service_does(
    tmp_path: Path, namespace: dict[str, str], properties: dict[str, bool], partitioned: bool
) -> None:
    for at_start in ("first", "next"):
        file = write(tmp_path, Queues=queue(**properties, UserMetadata=at_start), **namespace)
        found = start(tmp_path, file).found
        assert found["q"].storage.is_partitioned is partitioned
        assert found["q"].user_metadata == at_start


def test_what_the_official_emulator_has_not_is_off_there_and_what_is_there_stays_as_it_is(tmp_path: Path) -> None:
    limits = {"profile": "official-emulator"}
    topics = [{"Name": "t", "Subscriptions": [{"Name": "s"}]}]
    found = start(tmp_path, write(tmp_path, Queues=queue(), Topics=topics), **limits).found
    assert not found["q"].storage.is_partitioned and not found["t"].storage.is_partitioned
    more = [*queue(), {"Name": "later"}]
    found = start(tmp_path, write(tmp_path, Queues=more, Topics=topics, Sku="Standard")).found
    assert [found[name].storage.is_partitioned for name in ("q", "t", "later")] == [False, False, True]
