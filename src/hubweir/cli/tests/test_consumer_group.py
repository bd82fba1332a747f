"""Consumer groups on the command line, in the words of az."""

from __future__ import annotations

import json

from click.testing import Result

from hubweir.cli.tests.typed_commands import Typed, condition_of
from hubweir.errors import ARGUMENT_OUT_OF_RANGE, ENTITY_EXISTS, NOT_ALLOWED, NOT_FOUND


def group(type_command: Typed, *arguments: str) -> Result:
    return type_command("eventhub", "consumer-group", *arguments)


def test_a_group_is_created_listed_shown_and_deleted(type_command: Typed) -> None:
    type_command("eventhub", "create", "Grouped", "--partitions", "1")
    made = group(type_command, "create", "--eventhub-name", "grouped", "--name", "Billing")
    assert made.output == "event hub grouped has the consumer group Billing\n"
    again = group(type_command, "create", "--eventhub-name", "grouped", "--consumer-group-name", "BILLING")
    assert condition_of(again) is ENTITY_EXISTS
    listed = json.loads(group(type_command, "list", "--eventhub-name", "GROUPED", "--json").stdout)
    assert listed == [{"name": "$Default"}, {"name": "Billing"}]
    assert "Billing" in group(type_command, "list", "--eventhub-name", "grouped").output
    assert group(type_command, "show", "billing", "--eventhub", "grouped").output == "Billing of event hub Grouped\n"
    assert group(type_command, "delete", "billing", "--eventhub", "grouped", "--yes").exit_code == 0
    assert condition_of(group(type_command, "show", "billing", "--eventhub", "grouped")) is NOT_FOUND


def test_user_metadata_is_kept_changed_and_taken_away(type_command: Typed) -> None:
    type_command("eventhub", "create", "noted", "--partitions", "1")
    where = ("-n", "one", "--eventhub-name", "noted")
    assert group(type_command, "create", *where, "--user-metadata", "team blue").exit_code == 0
    made = json.loads(group(type_command, "show", *where, "--json").stdout)
    assert made["user_metadata"] == "team blue" and made["updated_at_ms"] == made["created_at_ms"]
    assert group(type_command, "show", *where).output == "one of event hub noted: team blue\n"
    assert group(type_command, "update", *where, "--user-metadata", "").exit_code == 0
    changed = json.loads(group(type_command, "show", *where, "--json").stdout)
    assert changed["user_metadata"] == "" and changed["created_at_ms"] == made["created_at_ms"]
    assert changed["updated_at_ms"] >= made["updated_at_ms"]
    lost = ("-n", "two", "--eventhub-name", "noted", "--user-metadata", "x")
    assert condition_of(group(type_command, "update", *lost)) is NOT_FOUND
    assert condition_of(group(type_command, "create", *lost[:-1], "x" * 1025)) is ARGUMENT_OUT_OF_RANGE


def test_what_is_not_there_is_not_found_and_the_default_group_stays(type_command: Typed) -> None:
    type_command("eventhub", "create", "kept", "--partitions", "1")
    assert condition_of(group(type_command, "list", "--eventhub-name", "nowhere")) is NOT_FOUND
    assert condition_of(group(type_command, "delete", "$Default", "--eventhub", "kept", "--yes")) is NOT_ALLOWED
    assert group(type_command, "delete", "mine", "--eventhub", "kept").exit_code == 1  # asked, and not answered
    assert group(type_command, "create", "mine").exit_code == 2


def test_groups_come_and_go(type_command: Typed) -> None:
    type_command("eventhub", "create", "grouped", "--consumer-group", "one")
    type_command("eventhub", "add-group", "grouped", "two")
    type_command("eventhub", "remove-group", "grouped", "one")
    assert "consumer groups: $Default, two" in type_command("eventhub", "show", "grouped").output
