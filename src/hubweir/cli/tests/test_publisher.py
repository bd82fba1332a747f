"""Publishers on the command line: revoked and restored."""

from __future__ import annotations

from hubweir.cli.tests.typed_commands import Typed, condition_of
from hubweir.errors import NOT_FOUND, UNAUTHORIZED


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


def test_a_publisher_of_a_hub_that_is_not_there_is_not_found(type_command: Typed) -> None:
    for verb in ("revoke-publisher", "restore-publisher"):
        assert condition_of(type_command("eventhub", verb, "nowhere", "device-7")) is NOT_FOUND
