"""hubweir queue and hubweir topic: made, listed, shown, changed and deleted."""

from __future__ import annotations

import json

import pytest

from hubweir.cli.tests.typed_commands import Typed, condition_of
from hubweir.errors import ARGUMENT_OUT_OF_RANGE, ENTITY_EXISTS, NOT_FOUND


@pytest.mark.parametrize("noun", ["queue", "topic"])
def test_an_entity_is_created_listed_shown_changed_and_deleted(type_command: Typed, noun: str) -> None:
    created = type_command(
        noun, "create", f"{noun}-life", "--default-message-time-to-live", "6h", "--user-metadata", "mine",
        "--max-size", "2048", "--auto-delete-on-idle", "P1DT12H",
    )  # fmt: skip
    assert created.output == f"created {noun} {noun}-life\n"
    assert condition_of(type_command(noun, "create", f"{noun}-LIFE")) is ENTITY_EXISTS
    [row] = json.loads(type_command(noun, "list", "--json").stdout)
    assert (row["Name"], row["DefaultMessageTimeToLive"], row["AutoDeleteOnIdle"]) == (
        f"{noun}-life",
        "PT6H",
        "P1DT12H",
    )
    assert (row["MaxSizeInMegabytes"], row["UserMetadata"], row["CountDetails"]["ActiveMessageCount"]) == (
        "32768", "mine", 0,
    )  # fmt: skip
    assert f"{noun}-life" in type_command(noun, "list").output
    changed = type_command(noun, "update", f"{noun}-life", "--status", "senddisabled")
    assert changed.output == f"changed {noun} {noun}-life\n"
    shown = type_command(noun, "show", f"{noun}-life").output
    assert "SendDisabled" in shown and "PT6H" in shown and "32768" in shown and "store-0" in shown
    assert type_command(noun, "update", f"{noun}-life").exit_code == 2
    assert type_command(noun, "delete", f"{noun}-life", stdin="n\n").exit_code == 1
    assert type_command(noun, "delete", f"{noun}-life", "--yes").output == f"deleted {noun} {noun}-life\n"
    assert type_command(noun, "list").output == f"no {noun}s\n"
    assert condition_of(type_command(noun, "show", f"{noun}-life")) is NOT_FOUND


def test_a_queue_is_given_all_that_az_gives_one(type_command: Typed) -> None:
    type_command("queue", "create", "dead")
    given = {
        "--lock-duration": ("30s", "LockDuration", "PT30S"),
        "--max-delivery-count": ("4", "MaxDeliveryCount", "4"),
        "--enable-session": ("true", "RequiresSession", "true"),
        "--enable-dead-lettering-on-message-expiration": ("yes", "DeadLetteringOnMessageExpiration", "true"),
        "--forward-dead-lettered-messages-to": ("dead", "ForwardDeadLetteredMessagesTo", "sb://127.0.0.1/dead"),
        "--enable-duplicate-detection": ("true", "RequiresDuplicateDetection", "true"),
        "--duplicate-detection-history-time-window": ("PT40S", "DuplicateDetectionHistoryTimeWindow", "PT40S"),
        "--enable-partitioning": ("false", "EnablePartitioning", "false"),
        "--enable-express": ("true", "EnableExpress", "true"),
        "--enable-batched-operations": ("false", "EnableBatchedOperations", "false"),
        "--max-message-size": ("100", "MaxMessageSizeInKilobytes", "100"),
    }
    options = [word for flag, (text, _, _) in given.items() for word in (flag, text)]
    assert type_command("queue", "create", "all", *options).exit_code == 0
    document = json.loads(type_command("queue", "show", "all", "--json").stdout)
    assert {element: document[element] for _, element, _ in given.values()} == {
        element: told for _, element, told in given.values()
    }


@pytest.mark.parametrize("noun", ["queue", "topic"])
@pytest.mark.parametrize(
    ("options", "told"),
    [([], "true"), (["--partitioning"], "true"), (["--no-partitioning"], "false"),
     (["--enable-partitioning", "false"], "false"), (["--no-partitioning", "--enable-partitioning", "true"], "true")],
)  # fmt: skip
def test_partitioning_is_on_unless_it_is_turned_off(
    type_command: Typed, noun: str, options: list[str], told: str
) -> None:
    name = f"{noun}-{'-'.join(options) or 'plain'}"
    assert type_command(noun, "create", name, *options).exit_code == 0
    document = json.loads(type_command(noun, "show", name, "--json").stdout)
    assert document["EnablePartitioning"] == told
    assert len(document["Fragments"]) == (16 if told == "true" else 1)


def test_what_is_no_value_is_told(type_command: Typed) -> None:
    assert "no length of time" in type_command("queue", "create", "q", "--lock-duration", "soon").output
    assert condition_of(type_command("queue", "create", "q", "--lock-duration", "6m")) is ARGUMENT_OUT_OF_RANGE
    assert type_command("queue", "create", "q", "--enable-session", "perhaps").exit_code == 2
