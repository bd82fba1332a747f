"""hubweir store on a folder of several messaging stores: all are listed, verified, copied; one may be missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hubweir.cli.main import hubweir
from hubweir.testing.running_namespace import RunningNamespace, running_namespace


def typed(*arguments: str, namespace: RunningNamespace | None = None) -> Result:
    environment = {} if namespace is None else {"HUBWEIR_CONNECTION_STRING": namespace.connection_string()}
    return CliRunner().invoke(hubweir, list(arguments), env=environment)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """What a service of three stores left: a partitioned queue with messages, and a hub."""
    with running_namespace(data=str(tmp_path / "data"), stores=3) as namespace:
        assert typed("queue", "create", "orders", namespace=namespace).exit_code == 0
        namespace.create_event_hub("events", partition_count=4)
        for number in range(12):
            sent = typed("message", "send", "orders", "tea", "--partition-key", f"table {number}", namespace=namespace)
            assert sent.exit_code == 0, sent.output
    return tmp_path / "data"


def test_logs_of_all_stores_are_listed_with_their_fragments_and_are_sound(data: Path) -> None:
    rows = json.loads(typed("store", "list", "--data", str(data), "--json").stdout)
    assert {row["store"] for row in rows} == {"catalog", "store-0", "store-1", "store-2"}
    fragments = {row["entity"]: row["store"] for row in rows if row["hub"] == "orders"}
    assert sorted(fragments) == sorted(f"queue orders, fragment {number}" for number in range(16))
    assert set(fragments.values()) == {"store-0", "store-1", "store-2"}
    shown = typed("store", "show", "orders/3", "--data", str(data))
    assert shown.exit_code == 0 and fragments["queue orders, fragment 3"] in shown.stdout
    verified = typed("store", "verify", "--data", str(data))
    assert verified.exit_code == 0 and "everything is sound" in verified.stdout


def test_a_copy_of_all_stores_serves_what_was_there(data: Path, tmp_path: Path) -> None:
    copied = typed("store", "backup", str(tmp_path / "copy"), "--data", str(data))
    assert copied.exit_code == 0 and "21 logs" in copied.stdout, copied.output
    with running_namespace(data=str(tmp_path / "copy")) as namespace:
        assert len(namespace.service.stores) == 3
        document = json.loads(typed("queue", "show", "orders", "--json", namespace=namespace).stdout)
        assert document["CountDetails"]["ActiveMessageCount"] == 12
        assert document["EntityAvailabilityStatus"] == "Available"


def test_logs_of_a_store_that_is_missing_are_told_and_the_others_copied(data: Path, tmp_path: Path) -> None:
    (data / "store-1").rename(tmp_path / "elsewhere")
    rows = json.loads(typed("store", "list", "--data", str(data), "--json").stdout)
    assert {row["store"] for row in rows if row["state"] == "missing"} == {"store-1"}
    assert typed("store", "verify", "--data", str(data)).exit_code == 1
    copied = typed("store", "backup", str(tmp_path / "copy"), "--data", str(data))
    assert copied.exit_code == 1 and (tmp_path / "copy" / "store-2").is_dir()
