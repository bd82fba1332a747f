"""hubweir config: files checked, shown with their defaults, exported from a live namespace and compared with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from hubweir.cli.main import hubweir
from hubweir.cli.tests.typed_commands import Typed
from hubweir.config.arm_template import BadTemplate
from hubweir.config.emulator_file import read_emulator_files
from hubweir.config.namespace_settings import said_namespaces
from hubweir.config.problems import EmulatorFileError
from hubweir.config.settings import Settings
from hubweir.testing.running_namespace import running_namespace


def write(folder: Path, namespace: dict[str, Any], name: str = "Config.json") -> str:
    file = folder / name
    document = {"UserConfig": {"NamespaceConfig": [namespace], "LoggingConfig": {"Type": "Console"}}}
    file.write_text(json.dumps(document, indent=1))
    return str(file)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(hubweir, ["config", *arguments])


def test_a_good_file_is_valid_and_a_wrong_one_names_file_line_and_path(tmp_path: Path) -> None:
    good = write(tmp_path, {"Entities": [{"Name": "eh1", "PartitionCount": "2"}]})
    result = run("validate", good)
    assert (result.exit_code, result.output) == (0, "valid: 1 namespace, 1 event hub\n")
    bad = write(tmp_path, {"Entities": [{"Name": "eh1", "PartitionCount": 64}, {"Name": "a b", "PartitionCount": 1}]})
    result = run("validate", bad)
    assert result.exit_code == 1
    first, second = result.output.splitlines()
    assert first.startswith(f"{bad}:8:") and "Entities[0].PartitionCount: error:" in first
    assert "Entities[1].Name: error:" in second


def test_profile_and_strictness_decide_what_is_an_error(tmp_path: Path) -> None:
    hubs = [{"Name": f"eh{number}", "PartitionCount": 1, "Later": 1} for number in range(11)]
    file = write(tmp_path, {"Entities": hubs})
    assert "warning: nothing reads this member" in run("validate", file).output
    assert run("validate", file).exit_code == 0
    assert run("validate", file, "--strict-config").exit_code == 1
    assert run("validate", file, "--profile", "official-emulator").exit_code == 1
    told = json.loads(run("validate", file, "--json").output)
    assert told["valid"] is True and len(told["problems"]) == 11
    assert told["problems"][0]["path"].endswith("Entities[0].Later")


def test_more_partitions_are_valid_with_the_flag_of_serve(tmp_path: Path) -> None:
    file = write(tmp_path, {"Entities": [{"Name": "eh1", "PartitionCount": 64}]})
    assert run("validate", file).exit_code == 1
    assert run("show", "--emulator-config", file).exit_code == 1
    assert run("validate", file, "--allow-more-partitions").exit_code == 0
    assert '"PartitionCount": 64' in run("show", "--emulator-config", file, "--allow-more-partitions").output


def test_show_fills_in_defaults_and_shows_no_key(tmp_path: Path) -> None:
    rules = [{"KeyName": "sender", "PrimaryKey": "very-secret", "Rights": ["Send"]}]
    file = write(tmp_path, {"AuthorizationRules": rules, "Entities": [{"Name": "eh1", "PartitionCount": 2}]})
    result = run("show", "--emulator-config", file, "--port", "7000", "--key", "also-secret")
    assert "secret" not in result.output.replace("tls", "")
    document = json.loads(result.stdout)
    assert (document["Settings"]["port"], document["Settings"]["data"]) == ([7000], "hubweir-data")
    assert "key" not in document["Settings"]
    (namespace,) = document["UserConfig"]["NamespaceConfig"]
    assert (namespace["Name"], namespace["AuthorizationRules"]) == (
        "emulatorNs1",
        [{"KeyName": "sender", "Rights": ["Send"]}],
    )
    assert namespace["Entities"] == [
        {
            "Name": "eh1",
            "PartitionCount": 2,
            "ConsumerGroups": [{"Name": "$Default"}],
            "RetentionTimeInHours": 24,
            "CleanupPolicy": "Delete",
            "Status": "Active",
            "UserMetadata": "",
        }
    ]
    assert isinstance(run("show", "--emulator-config", str(tmp_path / "no.json")).exception, EmulatorFileError)


@pytest.fixture
def hub(type_command: Typed) -> str:
    type_command("eventhub", "create", "live", "--partitions", "2", "--retention", "36h", "--consumer-group", "one")
    type_command("authorization-rule", "create", "sender", "--rights", "send", "--eventhub", "live")
    return "live"


def test_an_export_reads_back_as_what_is_there_and_does_not_differ_from_it(
    type_command: Typed, hub: str, tmp_path: Path
) -> None:
    without = type_command("config", "export").output
    assert "PrimaryKey" not in without
    exported = type_command("config", "export", "--with-keys")
    assert exported.exit_code == 0, exported.output
    file = tmp_path / "Config.json"
    file.write_text(exported.stdout)
    (namespace,) = read_emulator_files([file]).namespaces
    assert read_emulator_files([file]).warnings == ()
    (read,) = [each for each in namespace.hubs if each.name == hub]
    assert (read.partition_count, read.retention_ms, read.consumer_groups) == (2, 36 * 3_600_000, ("one",))
    keys = json.loads(type_command("authorization-rule", "keys", "list", "sender", "--eventhub", hub, "--json").stdout)
    assert read.rules[0].primary is not None and read.rules[0].primary.reveal() == keys["primaryKey"]
    same = type_command("config", "diff", str(file))
    assert (same.exit_code, same.output) == (0, "no differences\n")


def test_every_kind_of_difference_has_its_line(type_command: Typed, hub: str, tmp_path: Path) -> None:
    document = json.loads(type_command("config", "export").stdout)["UserConfig"]["NamespaceConfig"][0]
    (live,) = [each for each in document["Entities"] if each["Name"] == hub]
    live |= {"PartitionCount": 4, "Status": "Disabled", "UserMetadata": "mine", "RetentionTimeInHours": 48}
    live |= {"ConsumerGroups": [{"Name": "two"}], "AuthorizationRules": [{"KeyName": "sender", "Rights": ["Listen"]}]}
    document |= {"Name": "other", "ThroughputUnits": 3, "Entities": [live, {"Name": "new", "PartitionCount": 1}]}
    result = type_command("config", "diff", write(tmp_path, document))
    assert result.exit_code == 1
    assert result.output.splitlines() == [
        '~ namespace hubweir: Name is "other" in the files, "hubweir" in the namespace',
        "~ namespace hubweir: ThroughputUnits is 3 in the files, 0 in the namespace",
        "~ event hub live: PartitionCount is 4 in the files, 2 in the namespace",
        "~ event hub live: RetentionTimeInHours is 48 in the files, 36 in the namespace",
        '~ event hub live: Status is "Disabled" in the files, "Active" in the namespace',
        '~ event hub live: UserMetadata is "mine" in the files, "" in the namespace',
        "+ event hub live: consumer group two",
        "- event hub live: consumer group one",
        '~ event hub live: authorization rule sender: Rights is ["Listen"] in the files, ["Send"] in the namespace',
        "+ event hub new",
    ]
    empty = write(tmp_path, {"Entities": [{"Name": "new", "PartitionCount": 1}]})
    assert "- event hub live" in type_command("config", "diff", empty).output


def test_a_template_is_imported_and_its_config_json_starts_a_service(tmp_path: Path) -> None:
    resources = [
        {"type": "Microsoft.EventHub/namespaces", "name": "[parameters('name')]"},
        {"type": "Microsoft.EventHub/namespaces/eventhubs", "name": "[concat(parameters('name'), '/orders')]",
         "properties": {"partitionCount": "[parameters('count')]", "newer": 1}},
        {"type": "Microsoft.Web/sites", "name": "left"},
    ]  # fmt: skip
    template, parameters, config = (tmp_path / name for name in ("t.json", "p.json", "Config.json"))
    template.write_text(json.dumps({"parameters": {"name": {}, "count": {"defaultValue": 1}}, "resources": resources}))
    parameters.write_text(json.dumps({"parameters": {"name": {"value": "unused"}, "count": {"value": 3}}}))
    typed = ("config", "import", str(template), "--parameters", str(parameters), "--parameter", "name=shop")
    done = CliRunner().invoke(hubweir, typed)
    assert done.exit_code == 0 and "left out: Microsoft.Web/sites left" in done.stderr
    assert "Entities[0].Newer: warning: nothing reads this member" in done.stderr
    config.write_text(done.stdout)
    found = read_emulator_files([config]).namespaces
    with running_namespace(said=said_namespaces(Settings(), found)) as running:
        (hub,) = running.parts.gateway.management.hubs()
        assert (hub.name, hub.partition_count, running.parts.gateway.settings.namespace) == ("orders", 3, "shop")


def test_a_template_whose_entities_cannot_be_is_refused_with_their_places(tmp_path: Path) -> None:
    template = tmp_path / "t.json"
    hub = {"type": "eventhubs", "name": "orders", "properties": {"partitionCount": 64}}
    space = {"type": "Microsoft.EventHub/namespaces", "name": "shop", "resources": [hub]}
    template.write_text(json.dumps({"resources": [space]}))
    refused = CliRunner().invoke(hubweir, ("config", "import", str(template)))
    assert isinstance(refused.exception, EmulatorFileError) and "PartitionCount is out of range" in str(
        refused.exception
    )
    template.write_text("{")
    assert isinstance(CliRunner().invoke(hubweir, ("config", "import", str(template))).exception, BadTemplate)
    assert CliRunner().invoke(hubweir, ("config", "import", str(template), "--parameter", "x")).exit_code == 2
