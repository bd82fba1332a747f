import json
from collections.abc import Callable

from click.testing import Result

from hubweir.errors import ENTITY_EXISTS, NOT_FOUND, UNAUTHORIZED, ServiceError

Typed = Callable[..., Result]


def condition_of(result: Result) -> object:
    """The condition that a command failed with, which main() turns into a line and exit code 1."""
    assert isinstance(result.exception, ServiceError), result.output
    return result.exception.condition


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


def test_groups_come_and_go(type_command: Typed) -> None:
    type_command("eventhub", "create", "grouped", "--consumer-group", "one")
    type_command("eventhub", "add-group", "grouped", "two")
    type_command("eventhub", "remove-group", "grouped", "one")
    assert "consumer groups: $Default, two" in type_command("eventhub", "show", "grouped").output


def test_delete_asks_first(type_command: Typed) -> None:
    type_command("eventhub", "create", "asked")
    assert type_command("eventhub", "delete", "asked", stdin="n\n").exit_code == 1
    assert "asked" in type_command("eventhub", "list").output


def test_missing_hub_is_not_found(type_command: Typed) -> None:
    assert condition_of(type_command("eventhub", "show", "nowhere")) is NOT_FOUND


def test_retention_and_durability_can_be_changed(type_command: Typed) -> None:
    type_command("eventhub", "create", "changed")
    changed = type_command("eventhub", "update", "changed", "--retention", "3d", "--durability", "relaxed")
    assert changed.output == "event hub changed keeps events for 3d, relaxed\n"
    assert type_command("eventhub", "update", "changed").exit_code == 2


def test_revoked_publisher_cannot_send_until_it_is_restored(type_command: Typed) -> None:
    type_command("eventhub", "create", "policed", "--partitions", "1")
    send = ("send", "policed", "hello", "--publisher", "device-7")
    assert type_command(*send).exit_code == 0
    type_command("eventhub", "revoke-publisher", "policed", "device-7")
    assert "revoked publishers: device-7" in type_command("eventhub", "show", "policed").output
    assert condition_of(type_command(*send)) is UNAUTHORIZED
    assert type_command("send", "policed", "hello", "--publisher", "device-8").exit_code == 0
    type_command("eventhub", "restore-publisher", "policed", "device-7")
    assert type_command(*send).exit_code == 0
