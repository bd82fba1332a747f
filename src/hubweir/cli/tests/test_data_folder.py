"""Whose a log is, by the catalogs of its folder, and what a person may call it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubweir.cli.data_folder import DataFolder, NoSuchLog, OwnedLog
from hubweir.testing.running_namespace import RunningNamespace


def test_a_log_is_called_by_its_entity_with_and_without_its_namespace() -> None:
    partition = OwnedLog("store-0", "a" * 32, "…", namespace="NS", hub="Orders/Eu", partition_id="3")
    assert partition.paths == ("orders/eu/3", "ns/orders/eu/3")
    assert OwnedLog("catalog", "a" * 32, "…", namespace="NS").paths == ("catalog", "catalog/ns")
    assert OwnedLog("store-0", "a" * 32, "unknown").paths == ()


def test_a_partition_is_found_by_name_and_by_the_beginning_of_its_id_until_it_is_deleted(
    namespace: RunningNamespace,
) -> None:
    namespace.create_event_hub("Owned", partition_count=2)
    folder = DataFolder(Path(namespace.service.settings.data))
    one = folder.find("owned/1")
    assert (one.hub, one.partition_id, one.namespace, one.state) == ("Owned", "1", "hubweir", "")
    assert folder.find(one.log_id) == folder.find(one.log_id[:20]) == one
    with pytest.raises(NoSuchLog, match="HUB/PARTITION"):
        folder.find(one.log_id[:3])
    namespace.delete_event_hub("Owned")
    assert "Owned" not in {log.hub for log in folder.logs()}
