"""Templates of Azure Resource Manager as Config.json files: what Bicep compiles to, loops, conditions, nesting."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hubweir.config.arm_template import BadTemplate, config_of_template
from hubweir.config.emulator_file import parse_emulator_files
from hubweir.config.problems import Problems

# As Bicep writes it: names by format, parents by dependsOn, parameters with defaults.
COMPILED: dict[str, Any] = {
    "$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
    "contentVersion": "1.0.0.0",
    "metadata": {"_generator": {"name": "bicep", "version": "0.30.23.60470"}},
    "parameters": {
        "name": {"type": "string", "defaultValue": "shop"},
        "location": {"type": "string", "defaultValue": "[resourceGroup().location]"},
        "hubs": {"type": "array", "defaultValue": ["orders", "returns"]},
        "hasTopic": {"type": "bool", "defaultValue": True},
    },
    "variables": {"partitions": "[mul(2, 4)]", "label": "[format('{0}-{1}', parameters('name'), 'label')]"},
    "resources": [
        {
            "type": "Microsoft.EventHub/namespaces/eventhubs",
            "apiVersion": "2024-01-01",
            "copy": {"name": "each", "count": "[length(parameters('hubs'))]"},
            "name": "[format('{0}/{1}', parameters('name'), parameters('hubs')[copyIndex()])]",
            "properties": {
                "partitionCount": "[variables('partitions')]",
                "messageRetentionInDays": 1,
                "retentionDescription": {"cleanupPolicy": "Delete", "retentionTimeInHours": 48},
                "userMetadata": "[variables('label')]",
                "captureDescription": {
                    "enabled": True, "encoding": "Avro", "intervalInSeconds": 120,
                    "destination": {
                        "name": "EventHubArchive.AzureBlockBlob",
                        "properties": {
                            "storageAccountResourceId": "[resourceId('Microsoft.Storage/storageAccounts', 'files')]",
                            "blobContainer": "events",
                        },
                    },
                },
            },
            "dependsOn": ["[resourceId('Microsoft.EventHub/namespaces', parameters('name'))]"],
        },
        {
            "type": "Microsoft.EventHub/namespaces", "apiVersion": "2024-01-01", "name": "[parameters('name')]",
            "location": "[parameters('location')]", "sku": {"name": "Standard", "tier": "Standard", "capacity": 2},
            "properties": {"isAutoInflateEnabled": True, "maximumThroughputUnits": 7},
        },
        {
            "type": "Microsoft.EventHub/namespaces/eventhubs/consumergroups", "apiVersion": "2024-01-01",
            "name": "[concat(parameters('name'), '/', parameters('hubs')[0], '/', 'billing')]", "properties": {},
        },
        {
            "type": "Microsoft.EventHub/namespaces/eventhubs/authorizationRules", "apiVersion": "2024-01-01",
            "name": "[format('{0}/{1}/{2}', parameters('name'), 'orders', 'sender')]",
            "properties": {"rights": ["Send"]},
        },
        {"type": "Microsoft.Storage/storageAccounts", "apiVersion": "2024-01-01", "name": "files", "properties": {}},
        {
            "type": "Microsoft.ServiceBus/namespaces", "apiVersion": "2024-01-01", "name": "bus",
            "resources": [
                {"type": "queues", "apiVersion": "2024-01-01", "name": "work",
                 "properties": {"lockDuration": "PT30S", "maxDeliveryCount": 3, "forwardTo": None}},
                {"type": "topics", "apiVersion": "2024-01-01", "name": "news", "condition": "[parameters('hasTopic')]",
                 "resources": [
                     {"type": "subscriptions", "apiVersion": "2024-01-01", "name": "all",
                      "properties": {"requiresSession": True},
                      "resources": [
                          {"type": "rules", "apiVersion": "2024-01-01", "name": "ua",
                           "properties": {"filterType": "SqlFilter", "action": {},
                                          "sqlFilter": {"sqlExpression": "carrier = 'UA'", "compatibilityLevel": 20}}},
                          {"type": "rules", "apiVersion": "2024-01-01", "name": "late",
                           "properties": {"filterType": "CorrelationFilter",
                                          "correlationFilter": {"label": "late", "properties": {"city": "Rome"}}}},
                      ]},
                 ]},
            ],
        },
    ],
    "outputs": {"key": {"type": "string", "value": "[listKeys('any', '2024-01-01').primaryKey]"}},
}  # fmt: skip


def imported(template: dict[str, Any], **parameters: Any) -> tuple[dict[str, Any], list[str]]:
    told: list[str] = []
    return config_of_template(template, parameters, group="g", tell=told.append), told


def test_what_bicep_compiles_to_becomes_a_config_json_that_is_read() -> None:
    config, told = imported(COMPILED)
    assert told == ["left out: Microsoft.Storage/storageAccounts files"]
    found = parse_emulator_files([("t", json.dumps(config).encode())], Problems(), strict=True)
    shop, bus = found.namespaces
    assert (shop.name, shop.throughput_units, shop.maximum_throughput_units) == ("shop", 2, 7)
    orders, returns = shop.hubs
    assert (orders.name, orders.partition_count, returns.name) == ("orders", 8, "returns")
    assert orders.retention_ms == 48 * 3_600_000 and orders.user_metadata == "shop-label"
    assert orders.consumer_groups == ("billing",) and returns.consumer_groups == ()
    assert [rule.name for rule in orders.rules] == ["sender"]
    assert orders.capture is not None and orders.capture.blob_container == "events"
    assert orders.capture.storage_account_resource_id == "Microsoft.Storage/storageAccounts/files"
    (queue,), (topic,) = bus.queues, bus.topics
    assert queue.properties.lock_duration is not None and queue.properties.lock_duration.ms == 30_000
    assert (queue.name, queue.properties.max_delivery_count, queue.properties.forward_to) == ("work", 3, None)
    (subscription,) = topic.subscriptions
    assert [rule.name for rule in subscription.rules] == ["ua", "late"]


def test_parameters_that_are_given_win_over_defaults() -> None:
    config, _ = imported(COMPILED, name="boutique", hubs=["one"], hasTopic=False)
    event_hubs = config["UserConfig"]["NamespaceConfig"][0]
    assert (event_hubs["Name"], [hub["Name"] for hub in event_hubs["Entities"]]) == ("boutique", ["one", "orders"])
    assert "Topics" not in config["UserConfig"]["Namespaces"][0]


def test_modules_are_deployments_whose_parameters_are_evaluated_outside() -> None:
    module = {
        "parameters": {"ns": {"type": "string"}},
        "resources": [{"type": "Microsoft.EventHub/namespaces", "name": "[parameters('ns')]"}],
    }
    outer = {
        "parameters": {"prefix": {"type": "string", "defaultValue": "team"}},
        "resources": {
            "module": {
                "type": "Microsoft.Resources/deployments", "name": "m",
                "properties": {
                    "template": module, "parameters": {"ns": {"value": "[concat(parameters('prefix'), '1')]"}},
                },
            },
            "there": {"existing": True, "type": "Microsoft.EventHub/namespaces", "name": "old"},
        },
    }  # fmt: skip
    config, _ = imported(outer)
    assert [each["Name"] for each in config["UserConfig"]["NamespaceConfig"]] == ["team1"]


def named(name: str, kind: str = "Microsoft.EventHub/namespaces", **more: Any) -> dict[str, Any]:
    return {"resources": [{"type": kind, "name": name, **more}]}


@pytest.mark.parametrize(
    ("template", "says"),
    [
        ({"resources": []}, "no namespace"),
        ({}, "it has no resources"),
        (named("alone", "Microsoft.EventHub/namespaces/eventhubs"), "a name is needed for"),
        (named("[parameters('x')]"), "--parameter x=VALUE"),
        (named("[reference('x').y]"), "function reference"),
        (named("n", copy={"count": 5_000}), "0 to 1000"),
        (named("[variables('a')]") | {"variables": {"a": "[variables('b')]", "b": "[variables('a')]"}}, "in a circle"),
    ],
)
def test_what_cannot_be_imported_is_told(template: dict[str, Any], says: str) -> None:
    with pytest.raises(BadTemplate) as refused:
        imported(template)
    assert says in str(refused.value)


def test_a_text_that_only_begins_as_an_expression_is_a_text() -> None:
    config, _ = imported(named("[plain"))
    assert config["UserConfig"]["NamespaceConfig"][0]["Name"] == "[plain"


def test_a_namespace_stays_whatever_else_is_said_of_it_that_is_not_taken() -> None:
    rule = {"type": "authorizationRules", "name": "app", "properties": {"rights": ["Send"]}}
    config, told = imported(named("shop", resources=[rule, {"type": "networkRuleSets", "name": "default"}]))
    (shop,) = config["UserConfig"]["NamespaceConfig"]
    assert shop["AuthorizationRules"] == [{"KeyName": "app", "Rights": ["Send"]}]
    assert told == ["left out: microsoft.eventhub/namespaces/networkrulesets shop/default"]


def test_what_is_left_out_alone_makes_no_namespace() -> None:
    with pytest.raises(BadTemplate, match="no namespace"):
        imported(named("shop/default", "Microsoft.EventHub/namespaces/networkRuleSets"))


def test_a_parameter_that_the_template_has_not_is_refused_and_case_means_nothing() -> None:
    template = named("[parameters('Name')]") | {"parameters": {"name": {"type": "string"}}}
    config, _ = imported(template, NAME="boutique")
    assert config["UserConfig"]["NamespaceConfig"][0]["Name"] == "boutique"
    with pytest.raises(BadTemplate, match="no parameter 'nmae'; it has name"):
        imported(template, name="a", nmae="boutique")


def test_what_is_made_elsewhere_is_left_out_whatever_its_name_needs() -> None:
    role = {"type": "Microsoft.Authorization/roleAssignments", "name": "[guid(reference('x').id)]"}
    template = {"resources": [named("shop")["resources"][0], role]}
    config, told = imported(template)
    assert config["UserConfig"]["NamespaceConfig"][0]["Name"] == "shop"
    assert told == ["left out: Microsoft.Authorization/roleAssignments [guid(reference('x').id)]"]


@pytest.mark.parametrize(("condition", "count"), [("false", 1), ("True", 2), (False, 1), ("[equals(1, 1)]", 2)])
def test_a_condition_may_be_a_text(condition: Any, count: int) -> None:
    more = {"type": "Microsoft.EventHub/namespaces", "name": "more", "condition": condition}
    config, _ = imported({"resources": [named("shop")["resources"][0], more]})
    assert len(config["UserConfig"]["NamespaceConfig"]) == count


def test_what_every_hub_and_premium_namespace_has_anyway_is_not_said() -> None:
    group = {"type": "consumergroups", "name": "$default"}
    hub = {"type": "eventhubs", "name": "orders", "resources": [group]}
    config, _ = imported(named("shop", sku={"name": "Premium", "capacity": 4}, resources=[hub]))
    (shop,) = config["UserConfig"]["NamespaceConfig"]
    assert shop["Sku"] == "Premium" and "ThroughputUnits" not in shop, "a premium capacity counts something else"
    assert shop["Entities"] == [{"Name": "orders", "PartitionCount": 4}]


def test_a_name_is_spelt_as_its_own_resource_spells_it_wherever_that_stands() -> None:
    hub = {"type": "Microsoft.EventHub/namespaces/eventhubs", "name": "SHOP/orders"}
    config, _ = imported({"resources": [hub, named("shop")["resources"][0]]})
    assert [each["Name"] for each in config["UserConfig"]["NamespaceConfig"]] == ["shop"]


def test_loops_in_variables_and_properties_make_lists() -> None:
    template = {
        "variables": {"copy": [{"name": "names", "count": 3, "input": "[concat('hub', copyIndex('names', 1))]"}]},
        "resources": [{
            "type": "Microsoft.EventHub/namespaces/authorizationRules", "name": "[concat(variables('names')[2], '/a')]",
            "properties": {"copy": [{
                "name": "rights", "count": 2, "input": "[createArray('Send', 'Listen')[copyIndex('rights')]]",
            }]},
        }],
    }  # fmt: skip
    config, _ = imported(template)
    (shop,) = config["UserConfig"]["NamespaceConfig"]
    assert shop["Name"] == "hub3"
    assert shop["AuthorizationRules"] == [{"KeyName": "a", "Rights": ["Send", "Listen"]}]


@pytest.mark.parametrize(
    "template",
    [
        named("n", copy=[1]), named("n", sku="Standard"), named("n", properties=[1]), named("n", condition="maybe"),
        named("n", copy={"count": True}), named("n") | {"parameters": {"a": "x"}}, named("n") | {"variables": [1]},
        named("n/h", "Microsoft.EventHub/namespaces/eventhubs", properties={"retentionDescription": "long"}),
        named("m", "Microsoft.Resources/deployments", properties={"template": {}, "parameters": {"a": 1}}),
        named("[variables('a')]") | {"variables": {"copy": [{"name": "a", "count": 1, "input": "[variables('a')]"}]}},
    ],
)  # fmt: skip
def test_members_of_another_shape_are_told_and_no_fault_of_ours(template: dict[str, Any]) -> None:
    with pytest.raises(BadTemplate):
        imported(template)


def test_the_example_of_the_page_is_a_template() -> None:
    page = (Path(__file__).resolve().parents[4] / "docs/arm.md").read_text()
    text = page.partition("```json template\n")[2].partition("```")[0]
    config, _ = imported(json.loads(text))
    assert config["UserConfig"]["NamespaceConfig"][0]["Name"] == "shop"
