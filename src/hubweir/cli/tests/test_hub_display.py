"""Event hubs as people and programs see them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hubweir.cli.hub_display import ShownHub, hub_document, print_hubs, unless_active
from hubweir.client.entity_info import HubInfo, PartitionState

NEVER_HELD = PartitionState("0", -1, -1, "-1", 0, True)
OUTLIVED = PartitionState("1", 40, 39, "900", 1_769_860_800_123, True)  # retention took all it had
HOLDS = PartitionState("2", 7, 9, "210", 1_769_860_800_123, False)


def hub(**changed: object) -> HubInfo:
    """A hub as another service describes it, with what is changed."""
    return replace(HubInfo("orders", 1, ("0", "1", "2"), (), None, None), **changed)  # type: ignore[arg-type]


def rows_of(shown: ShownHub, capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    shown.print()
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def test_a_partition_shows_only_the_numbers_that_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    rows = rows_of(ShownHub(hub(), [NEVER_HELD, OUTLIVED, HOLDS], []), capsys)
    moment = "2026-01-31T12:00:00.123+00:00"
    assert rows[-3:] == [["0"], ["1", "39", "900", moment], ["2", "7", "9", "210", moment]]


def test_what_is_not_known_or_usual_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    """Another service tells neither retention nor groups nor status."""
    plain = rows_of(ShownHub(hub(), [], []), capsys)
    assert plain[0] == ["event", "hub", "orders:", "3", "partitions"]
    assert plain[1] == ["consumer", "groups:", "$Default"]
    full = hub(
        retention_ms=7_200_000, durability="relaxed", status="SendDisabled", consumer_groups=("$Default", "one"),
        user_metadata="team blue", revoked_publishers=("device-7",),
    )  # fmt: skip
    lines = [" ".join(row) for row in rows_of(ShownHub(full, [], []), capsys)][:4]
    assert lines == [
        "event hub orders: 3 partitions, kept for 2h, relaxed, SendDisabled",
        "consumer groups: $Default, one",
        "user metadata: team blue",
        "revoked publishers: device-7",
    ]
    assert unless_active(hub(status="Active")) == ""


def test_a_list_has_a_row_a_hub(capsys: pytest.CaptureFixture[str]) -> None:
    print_hubs([hub(retention_ms=86_400_000, durability="durable", status="Active"), hub(name="other")])
    *_, first, second = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert first == ["orders", "3", "1d", "durable", "Active"] and second == ["other", "3"]


def test_a_document_has_every_number_in_its_unit_and_what_capture_told() -> None:
    document = ShownHub(hub(retention_ms=5), [HOLDS], [{"partition": "2", "behind_events": 3}]).document()
    assert json.loads(json.dumps(document)) == document | {"partition_ids": ["0", "1", "2"]}
    assert document["partitions"] == [
        {
            "partition_id": "2", "begin_sequence_number": 7, "last_sequence_number": 9, "last_offset": "210",
            "last_enqueued_time_ms": 1_769_860_800_123, "is_empty": False,
        }
    ]  # fmt: skip
    assert document["capture_states"] == [{"partition": "2", "behind_events": 3}]
    assert set(hub_document(hub())) == set(document) - {"partitions", "capture_states"}
