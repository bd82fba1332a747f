"""Capture as maps of $management: what is taken, what is refused by name, what is told."""

from __future__ import annotations

import pytest

from hubweir.amqp.types.values import Int, Long
from hubweir.broker.commands.capture import CaptureState
from hubweir.errors import ServiceError
from hubweir.gateway.amqp.capture_forms import capture_map, capture_state_map, wanted_capture
from hubweir.namespace.capture_description import CaptureDescription, CaptureDestination


def test_what_a_request_leaves_out_stays() -> None:
    known = CaptureDescription(enabled=True, interval_s=90, container="films")
    changed = wanted_capture(known, {"skip_empty_archives": True, "size_limit_bytes": Long(10_485_760)})
    assert (changed.enabled, changed.interval_s, changed.container) == (True, 90, "films")
    assert (changed.skip_empty_archives, changed.size_limit_bytes) == (True, 10_485_760)


def test_a_map_comes_back_as_the_description_that_it_was_made_of() -> None:
    known = CaptureDescription(
        enabled=True, destination=CaptureDestination.AZURE_DATA_LAKE, container="films", storage_account="a"
    )
    told = capture_map(known)
    assert told is not None
    assert (type(told["interval_s"]), type(told["size_limit_bytes"])) == (Int, Long)
    assert wanted_capture(None, told) == known
    assert capture_map(None) is None


@pytest.mark.parametrize(
    ("value", "needle"),
    [
        ("on", "must be a map"),
        ({"enable": True}, "no setting 'enable'"),
        ({3: True}, "no setting '3'"),
        ({"enabled": 1}, "'enabled' of capture must be a boolean"),
        ({"interval_s": True}, "'interval_s' of capture must be a number"),
        ({"interval_s": "60"}, "'interval_s' of capture must be a number"),
        ({"destination": "EventHubArchive.Tape"}, "EventHubArchive.LocalFolder"),
        ({"encoding": "AvroDeflate"}, "deprecated"),
    ],
)
def test_what_does_not_belong_there_is_refused_by_its_name(value: object, needle: str) -> None:
    with pytest.raises(ServiceError, match=needle):
        wanted_capture(None, value)


def test_plain_avro_is_taken_and_not_kept() -> None:
    assert wanted_capture(None, {"encoding": "Avro"}) == CaptureDescription()


def test_state_tells_how_far_a_partition_is() -> None:
    state = CaptureState("log", True, 7, 3, 900, 2, 1, "a.avro", "the disk is full")
    told = capture_state_map("orders", "1", state)
    assert told == {
        "name": "orders", "type": "com.microsoft:capture", "partition": "1", "is_running": True,
        "next_sequence_number": 7, "behind_events": 3, "behind_bytes": 900, "files": 2, "uncaptured_events": 1,
        "last_file": "a.avro", "failure": "the disk is full",
    }  # fmt: skip
    assert {type(each) for each in told.values()} == {str, bool, Long}
