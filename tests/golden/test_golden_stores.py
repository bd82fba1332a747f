"""Stores that an earlier build wrote open, whole, in this one (T23, promise P19); a format that changed is noticed."""

from __future__ import annotations

from typing import Any

import pytest

from hubweir.errors import HubweirError
from hubweir.messaging_store.disk import segment, whole_file
from hubweir.testing.memory_files import MemoryFiles
from tests.golden.stores import contents, load

AGAIN = "was a format changed? see the first lines of tests/golden/stores.py"
Golden = dict[str, tuple[MemoryFiles, dict[str, Any]]]


@pytest.fixture
def golden() -> Golden:
    return load()


@pytest.mark.parametrize("name", ["logs", "captured", "numbered", "catalog"])
def test_a_golden_store_shows_what_it_held(golden: Golden, name: str) -> None:
    files, expected = golden[name]
    assert contents(files) == expected, AGAIN


def test_the_golden_stores_hold_what_a_store_can_hold(golden: Golden) -> None:
    logs = golden["logs"][1]
    [durable, relaxed] = [logs[name] for name in logs if "/" in name]
    assert durable["snapshot"] and len(durable["notes"]) == 3 and len(durable["batches"]) > 8
    assert relaxed["durability"] == "RELAXED" and relaxed["batches"][-1][0] > 1_000_000, "numbers were skipped"
    segments = [path for path in golden["logs"][0].paths() if path.endswith(".log")]
    assert len(segments) >= 4 and any(path.endswith(".offsets") for path in golden["logs"][0].paths())
    captured = golden["captured"][1]
    assert captured["captured files"] and any(value["mark"] for name, value in captured.items() if "/" in name)
    numbered = next(value for name, value in golden["numbered"][1].items() if "/" in name)
    assert any("Producer(" in batch[5] for batch in numbered["batches"])
    assert golden["catalog"][1]["namespace"] == ["hubweir", 1]
    assert golden["catalog"][1]["entities"] == [
        ["event-hub", "orders", "ACTIVE", 2, 1],
        ["event-hub", "telemetry", "ACTIVE", 2, 0],
        ["queue", "tasks", "ACTIVE", 1, 0],
        ["topic", "news", "ACTIVE", 1, 0],
        ["subscription", "news/Subscriptions/all", "ACTIVE", 0, 0],
        ["event-hub", "going", "DELETING", 2, 0],
    ]
    rules = golden["catalog"][1]["subscription rules"]
    assert list(rules) == ["news/Subscriptions/all"] and len(rules["news/Subscriptions/all"]) == 1
    assert "'second'" in rules["news/Subscriptions/all"][0]


def changed_segment_header(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(segment, "_MAGIC", b"hWs\x02")


def changed_small_files(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(whole_file, "CRC_SEED", whole_file.CRC_SEED ^ 1)


@pytest.mark.parametrize("change", [changed_segment_header, changed_small_files])
def test_control_a_format_that_changed_is_noticed(golden: Golden, change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    change(monkeypatch)
    files, expected = golden["logs"]
    try:
        assert contents(files) != expected
    except (HubweirError, OSError):
        return


def test_control_a_batch_that_changed_is_noticed(golden: Golden) -> None:
    """One byte of one batch, its checksums with it, is another content."""
    files, expected = golden["numbered"]
    expected_of_log = next(value for name, value in expected.items() if "/" in name)
    expected_of_log["batches"][3][4] ^= 1
    assert contents(files) != expected
