import json

import pytest
from click.testing import CliRunner

from hubweir.cli.main import hubweir
from hubweir.cli.tests.typed_commands import Typed, condition_of
from hubweir.errors import (
    ARGUMENT_ERROR,
    ARGUMENT_OUT_OF_RANGE,
    ENTITY_DISABLED,
    ENTITY_EXISTS,
    NOT_FOUND,
)


def test_hub_is_created_listed_shown_and_deleted(type_command: Typed) -> None:
    created = type_command(
        "eventhub", "create", "life", "--partitions", "3", "--retention", "2d", "--durability", "relaxed"
    )
    assert created.output == "created event hub life with 3 partitions\n"
    [row] = json.loads(type_command("eventhub", "list", "--json").stdout)
    assert (row["name"], row["partition_ids"], row["retention_ms"]) == ("life", ["0", "1", "2"], 172_800_000)
    assert row["durability"] == "relaxed"
    assert "3 partitions, kept for 2d, relaxed" in type_command("eventhub", "show", "life").output
    assert type_command("eventhub", "delete", "life", "--yes").output == "deleted event hub life\n"
    assert "no event hubs" in type_command("eventhub", "list").output


def test_show_tells_what_each_partition_holds(type_command: Typed) -> None:
    type_command("eventhub", "create", "held", "--partitions", "2")
    type_command("send", "held", "a", "b", "--partition", "1")
    document = json.loads(type_command("eventhub", "show", "held", "--json").stdout)
    empty, filled = document["partitions"]
    assert (empty["is_empty"], empty["last_sequence_number"]) == (True, -1)
    assert (filled["is_empty"], filled["last_sequence_number"]) == (False, 1)


def test_second_hub_of_a_name_is_refused(type_command: Typed) -> None:
    type_command("eventhub", "create", "twice")
    assert condition_of(type_command("eventhub", "create", "TWICE")) is ENTITY_EXISTS


def test_delete_asks_first(type_command: Typed) -> None:
    type_command("eventhub", "create", "asked")
    assert type_command("eventhub", "delete", "asked", stdin="n\n").exit_code == 1
    assert "asked" in type_command("eventhub", "list").output


def test_missing_hub_is_not_found(type_command: Typed) -> None:
    assert condition_of(type_command("eventhub", "show", "nowhere")) is NOT_FOUND


def test_a_retention_of_nothing_is_refused_as_any_other_that_is_too_short(type_command: Typed) -> None:
    """It was taken for none given, and the hub kept its events for a day."""
    for command in ("create", "update"):
        assert condition_of(type_command("eventhub", command, "brief", "--retention", "0h")) is ARGUMENT_OUT_OF_RANGE
        type_command("eventhub", "create", "brief")


def test_retention_and_durability_can_be_changed(type_command: Typed) -> None:
    type_command("eventhub", "create", "changed")
    changed = type_command("eventhub", "update", "changed", "--retention", "3d", "--durability", "relaxed")
    assert changed.output == "event hub changed keeps events for 3d, relaxed\n"
    assert type_command("eventhub", "update", "changed").exit_code == 2


def test_the_words_of_az_make_and_change_a_hub(type_command: Typed) -> None:
    made = ("--name", "worded", "--partition-count", "2", "--retention-time", "36", "--cleanup-policy", "Delete")
    settings = ("--status", "SendDisabled", "--user-metadata", "team blue")
    assert type_command("eventhub", "create", *made, *settings).output == "created event hub worded with 2 partitions\n"
    document = json.loads(type_command("eventhub", "show", "-n", "worded", "--json").stdout)
    assert (document["retention_ms"], document["status"], document["user_metadata"]) == (
        36 * 3_600_000,
        "SendDisabled",
        "team blue",
    )
    assert condition_of(type_command("send", "worded", "x")) is ENTITY_DISABLED
    shown = type_command("eventhub", "show", "worded").output
    assert "durable, SendDisabled" in shown and "user metadata: team blue" in shown
    changed = type_command(
        "eventhub", "update", "-n", "worded", "--status", "active", "--retention-time-in-hours", "48"
    )
    assert changed.output == "event hub worded keeps events for 2d, durable\n"
    assert type_command("eventhub", "update", "-n", "worded", "--partition-count", "2").exit_code == 0
    other = type_command("eventhub", "update", "-n", "worded", "--partition-count", "4")
    assert condition_of(other) is ARGUMENT_ERROR and "never changes" in str(other.exception)
    assert type_command("send", "worded", "x").exit_code == 0
    document = json.loads(type_command("eventhub", "show", "worded", "--json").stdout)
    assert (document["user_metadata"], document["status"]) == ("team blue", "Active")
    assert document["updated_at_ms"] >= document["created_at_ms"]


def test_options_that_contradict_or_lack_are_usage_errors(type_command: Typed) -> None:
    for wrong in (
        ("create",),
        ("create", "one", "--name", "two"),
        ("create", "one", "--retention", "2d", "--retention-time", "24"),
        ("create", "one", "--cleanup-policy", "Compact"),
        ("update", "one", "--status", "Off"),
        ("update", "one"),
    ):
        assert type_command("eventhub", *wrong).exit_code == 2, wrong
    assert "one" not in [hub["name"] for hub in json.loads(type_command("eventhub", "list", "--json").stdout)]


def test_capture_is_switched_while_the_service_runs_and_shown(type_command: Typed) -> None:
    type_command("eventhub", "create", "filmed", "--partitions", "1")
    assert "capture" not in type_command("eventhub", "show", "filmed").output
    changed = type_command(
        *("eventhub", "update", "filmed", "--enable-capture", "true", "--capture-interval", "60"),
        *("--capture-size-limit", "10485760", "--blob-container", "films", "--skip-empty-archives", "true"),
    )
    assert "capture: every 60 s or 10485760 bytes to EventHubArchive.LocalFolder/films, no empty" in changed.output
    type_command("send", "filmed", "a", "b")
    [state] = json.loads(type_command("eventhub", "show", "filmed", "--json").stdout)["capture_states"]
    assert (state["is_running"], state["next_sequence_number"], state["behind_events"]) == (True, 0, 2)
    assert "events behind" in type_command("eventhub", "show", "filmed").output
    type_command("eventhub", "update", "filmed", "--enable-capture", "false")
    document = json.loads(type_command("eventhub", "show", "filmed", "--json").stdout)
    assert (document["capture"]["enabled"], document["capture"]["interval_s"]) == (False, 60)
    assert document["capture_states"] == []


def test_hub_is_created_with_capture(type_command: Typed) -> None:
    type_command("eventhub", "create", "born-filmed", "--enable-capture", "true")
    assert "capture: every 300 s or 314572800 bytes" in type_command("eventhub", "show", "born-filmed").output


def test_capture_out_of_range_is_refused_with_the_range(type_command: Typed) -> None:
    type_command("eventhub", "create", "unfilmed")
    refused = type_command("eventhub", "update", "unfilmed", "--enable-capture", "true", "--capture-interval", "59")
    assert condition_of(refused) is ARGUMENT_OUT_OF_RANGE
    refused = type_command(
        "eventhub", "update", "unfilmed", "--destination-name", "EventHubArchive.AzureBlockBlob",
        "--enable-capture", "true", "--blob-container", "films",
    )  # fmt: skip
    assert condition_of(refused) is ARGUMENT_ERROR
    assert "capture" not in type_command("eventhub", "show", "unfilmed").output


def test_purge_asks_first_and_says_how_many_went(type_command: Typed) -> None:
    type_command("eventhub", "create", "full")
    type_command("send", "full", "two teas", "one coffee")
    assert type_command("eventhub", "purge", "full", stdin="n\n").exit_code == 1
    assert type_command("eventhub", "purge", "full", stdin="y\n").output.endswith("2 events removed from full\n")
    type_command("send", "full", "the bill")
    assert type_command("eventhub", "purge", "--name", "full", "--yes").output == "1 event removed from full\n"


@pytest.mark.parametrize("rights", [("Send", "Listen"), ("Manage", "Send", "Listen")])
def test_purge_takes_the_right_to_manage_the_hub(type_command: Typed, rights: tuple[str, ...]) -> None:
    hub = f"guarded{len(rights)}"
    type_command("eventhub", "create", hub)
    type_command("send", hub, "two teas")
    rule = ("eventhub", "authorization-rule")
    type_command(*rule, "create", "worker", "--eventhub", hub, "--rights", *rights)
    keys = json.loads(type_command(*rule, "keys", "list", "worker", "--eventhub", hub, "--json").stdout)
    worker = {"HUBWEIR_CONNECTION_STRING": keys["primaryConnectionString"]}
    result = CliRunner().invoke(hubweir, ("eventhub", "purge", hub, "--yes"), env=worker)
    if "Manage" in rights:
        assert result.output == f"1 event removed from {hub}\n"
    else:
        assert result.exit_code == 1 and "Manage,EntityRead claims required" in str(result.exception)
