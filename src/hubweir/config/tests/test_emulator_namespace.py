"""Namespaces of a file: names, tiers and units under both roots, several of them side by side."""

from typing import Any

import pytest

from hubweir.config.emulator_entities import Root, Sku
from hubweir.config.emulator_limits import OFFICIAL_EMULATOR
from hubweir.config.problems import Severity
from hubweir.config.tests.emulator_texts import (
    HUB,
    bus_file,
    hubs_file,
    namespace_of,
    namespaces_file,
    parsed,
    problems_of,
    told,
)


def test_a_namespace_without_a_name_has_the_official_one() -> None:
    assert namespace_of(hubs_file()).name == namespace_of(hubs_file(Name=None)).name == "emulatorNs1"
    assert namespace_of(bus_file(Name=None)).name == "sbemulatorns"


@pytest.mark.parametrize("value", [None, "EventHub", "eventhub"])
def test_the_type_is_event_hub(value: str | None) -> None:
    assert namespace_of(hubs_file(Type=value)).root is Root.EVENT_HUBS
    assert told(hubs_file(Type="ServiceBus")) == [("bad value", "Type")]
    assert told(bus_file(Type="EventHub")) == [("unknown member", "Type")]


@pytest.mark.parametrize("name", ["", "-a", "a-", "a b", "a/b", "a" * 51, "é"])
def test_a_name_that_no_host_can_have_is_told(name: str) -> None:
    assert told(hubs_file(Name=name)) == [("bad value", "Name")]
    assert told(hubs_file(Name=5)) == [("wrong type", "Name")]


def test_a_service_bus_namespace_takes_the_grammar_of_entities() -> None:
    assert namespace_of(bus_file(Name="my_namespace.1")).name == "my_namespace.1"
    assert told(bus_file(Name="-x")) == [("bad value", "Name")]


def test_other_names_under_the_official_emulator_are_an_error_or_a_warning() -> None:
    [error] = problems_of(hubs_file(HUB, Name="mine"), limits=OFFICIAL_EMULATOR)
    [warning] = problems_of(bus_file(Name="mine"), limits=OFFICIAL_EMULATOR)
    assert (error.severity, error.found, error.allowed) == (Severity.ERROR, '"mine"', '"emulatorNs1"')
    assert (warning.severity, warning.found, warning.allowed) == (Severity.WARNING, '"mine"', '"sbemulatorns"')
    assert namespace_of(hubs_file(HUB, Name="emulatorNs1"), limits=OFFICIAL_EMULATOR).hubs


@pytest.mark.parametrize("sku", ["Basic", "standard", "PREMIUM"])
def test_tier_and_units_are_read_under_both_roots(sku: str) -> None:
    values: dict[str, Any] = {
        "Sku": sku, "ThroughputUnits": "2", "MaximumThroughputUnits": 40, "IsAutoInflateEnabled": "true",
        "PremiumMessagingPartitions": 4,
    }  # fmt: skip
    for data in (hubs_file(**values), bus_file(**values)):
        namespace = namespace_of(data)
        assert namespace.sku is not None and namespace.sku is Sku(sku.capitalize())
        assert (namespace.throughput_units, namespace.maximum_throughput_units) == (2, 40)
        assert (namespace.is_auto_inflate_enabled, namespace.premium_messaging_partitions) == (True, 4)


def test_a_maximum_of_no_units_is_no_maximum() -> None:
    assert (
        namespace_of(hubs_file(MaximumThroughputUnits=0, IsAutoInflateEnabled=False)).maximum_throughput_units is None
    )


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"Sku": "Dedicated"}, ("bad value", "Sku")),
        ({"Sku": {"name": "Standard"}}, ("wrong type", "Sku")),
        ({"ThroughputUnits": 0}, ("bad value", "ThroughputUnits")),
        ({"ThroughputUnits": 41}, ("bad value", "ThroughputUnits")),
        ({"MaximumThroughputUnits": -1}, ("bad value", "MaximumThroughputUnits")),
        ({"MaximumThroughputUnits": 41}, ("bad value", "MaximumThroughputUnits")),
        ({"ThroughputUnits": 5, "MaximumThroughputUnits": 4}, ("contradiction", "MaximumThroughputUnits")),
        ({"IsAutoInflateEnabled": True}, ("contradiction", "IsAutoInflateEnabled")),
        ({"IsAutoInflateEnabled": 1}, ("wrong type", "IsAutoInflateEnabled")),
        ({"PremiumMessagingPartitions": 0}, ("bad value", "PremiumMessagingPartitions")),
        ({"PremiumMessagingPartitions": 17}, ("bad value", "PremiumMessagingPartitions")),
        ({"Hostnames": "a.b"}, ("wrong type", "Hostnames")),
        ({"Queues": []}, ("unknown member", "Queues")),
        ({"Entities": None}, ("missing", "Entities")),
        ({"Entities": {}}, ("wrong type", "Entities")),
    ],
)
def test_a_member_that_cannot_be_is_told(members: dict[str, Any], problem: tuple[str, str]) -> None:
    assert told(hubs_file(**members)) == [problem]


def test_several_namespaces_stand_in_one_file_in_its_order() -> None:
    config = parsed(namespaces_file({"Name": "b", "Entities": [HUB]}, {"Name": "a", "Entities": [HUB]}))
    assert [(namespace.name, namespace.hubs[0].name) for namespace in config.namespaces] == [("b", "h"), ("a", "h")]


def test_two_namespaces_of_one_root_need_two_names() -> None:
    unnamed = namespaces_file({"Entities": []}, {"Entities": []})
    [problem] = problems_of(unnamed)
    assert str(problem.location).endswith("$.UserConfig.NamespaceConfig[1].Name")
    assert problem.found == '"emulatorNs1" again; it stands at c.json:1 already'
    buses = namespaces_file({"Entities": []}, Namespaces=[{"Name": "Same"}, {"Name": "same"}])
    assert [str(found.location.path) for found in problems_of(buses)] == ["$.UserConfig.Namespaces[1].Name"]


def test_the_official_emulator_has_one_namespace() -> None:
    two = namespaces_file({"Entities": [HUB]}, {"Name": "b", "Entities": [HUB]})
    kinds = [(problem.kind.value, problem.location.path) for problem in problems_of(two, limits=OFFICIAL_EMULATOR)]
    assert kinds == [
        ("wrong count", "$.UserConfig.NamespaceConfig"),
        ("bad value", "$.UserConfig.NamespaceConfig[1].Name"),
    ]
