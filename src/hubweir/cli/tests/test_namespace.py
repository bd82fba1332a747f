import json

from hubweir.cli.tests.typed_commands import Typed
from hubweir.errors import ARGUMENT_OUT_OF_RANGE, ServiceError


def test_units_are_changed_shown_and_turned_off(type_command: Typed) -> None:
    assert "throughput units off, 0 partitions" in type_command("namespace", "show").output
    changed = type_command("namespace", "update", "--capacity", "2", "--maximum-throughput-units", "10")
    assert "throughput units 2, auto-inflate to 10" in changed.output
    shown = json.loads(type_command("namespace", "show", "--json").stdout)
    assert (shown["throughput_units"], shown["maximum_throughput_units"]) == (2, 10)
    stopped = type_command("namespace", "update", "--enable-auto-inflate", "false")
    assert "auto-inflate" not in stopped.output
    type_command("namespace", "update", "--throughput-units", "0")
    assert "throughput units off" in type_command("namespace", "show").output


def test_the_profile_and_the_hosts_are_shown(type_command: Typed) -> None:
    assert (
        "quotas of profile development; hosts: hubweir, hubweir.localhost" in type_command("namespace", "show").output
    )
    document = json.loads(type_command("namespace", "show", "--json").stdout)
    assert (document["profile"], document["host_names"]) == ("development", ["hubweir", "hubweir.localhost"])


def test_more_units_than_partitions_is_warned_of(type_command: Typed) -> None:
    type_command("eventhub", "create", "narrow", "--partitions", "1")
    changed = type_command("namespace", "update", "--throughput-units", "3")
    assert "2 of them cannot be used" in changed.stderr
    type_command("namespace", "update", "--throughput-units", "0")


def test_units_out_of_range_are_refused(type_command: Typed) -> None:
    refused = type_command("namespace", "update", "--throughput-units", "41")
    assert isinstance(refused.exception, ServiceError)
    assert refused.exception.condition is ARGUMENT_OUT_OF_RANGE
    assert type_command("namespace", "update").exit_code == 2
    assert type_command("namespace", "update", "--enable-auto-inflate", "true").exit_code == 2


def test_usage_counts_what_was_sent(type_command: Typed) -> None:
    type_command("eventhub", "create", "counted", "--partitions", "1")
    type_command("send", "counted", "a", "b", "c")
    document = json.loads(type_command("namespace", "usage", "--hours", "2", "--json").stdout)
    assert sum(row["events_in"] for row in document["hours"]) == 3
    assert "unit-hours" in type_command("namespace", "usage").output
