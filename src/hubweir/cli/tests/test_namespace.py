import json
from datetime import UTC, datetime
from pathlib import Path

from hubweir.cli.tests.typed_commands import Typed, condition_of
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


def test_usage_is_a_bill_with_a_price_list(type_command: Typed, tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text('currency = "EUR"\nthroughput_unit_hour = 0.5\n')
    type_command("namespace", "update", "--throughput-units", "3")
    month = datetime.now(UTC).strftime("%Y-%m")
    printed = type_command("namespace", "usage", "--month", month, "--prices", str(prices)).output
    hours = type_command("namespace", "usage", "--month", month, "--json").stdout
    cost = json.loads(hours)["unit_hours"] * 0.5
    assert f"total {cost:.2f} EUR" in printed and "throughput units, hours" in printed
    document = json.loads(type_command("namespace", "usage", "--prices", str(prices), "--json").stdout)
    assert (document["currency"], document["bill"][0]["price"]) == ("EUR", "0.5")
    assert float(document["total"]) >= 1.5
    assert "total 0.00 EUR" in type_command("namespace", "usage", "--month", "2001-01", "--prices", str(prices)).output
    assert type_command("namespace", "usage", "--month", "November").exit_code == 2
    type_command("namespace", "update", "--throughput-units", "0")


def test_namespaces_are_made_listed_shown_and_deleted(type_command: Typed) -> None:
    made = type_command("namespace", "create", "shop", "--hostname", "shop.example", "--capacity", "2", "--key", "own")
    assert made.output.startswith("created namespace shop, profile development\nEndpoint=sb://127.0.0.1")
    assert "SharedAccessKey=own;UseDevelopmentEmulator=true" in made.output
    listed = type_command("namespace", "list").output
    assert "hubweir" in listed and "shop, shop.example, shop.localhost" in listed
    shown = type_command("namespace", "show", "shop").output
    assert "namespace shop: throughput units 2, 0 event hubs, 0 queues, 0 topics" in shown
    assert json.loads(type_command("namespace", "show", "shop", "--json").stdout)["maximum_throughput_units"] == 0
    assert condition_of(type_command("namespace", "create", "shop")).http == 409
    asked = type_command("namespace", "delete", "shop", stdin="n\n")
    assert asked.exit_code == 1 and "shop" in type_command("namespace", "list").output
    assert "deleted namespace shop" in type_command("namespace", "delete", "--name", "shop", "--yes").output
    assert condition_of(type_command("namespace", "show", "shop")).http == 404
    drawn = json.loads(type_command("namespace", "create", "drawn", "--json").stdout)
    assert len(drawn["key"]) == 44 and drawn["key"] in drawn["connection_string"]
    type_command("namespace", "delete", "drawn", "--yes")
