import logging
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from hubweir.client.blocking import BlockingEventHubClient
from hubweir.client.entity_info import PartitionState
from hubweir.event_hub.event_position import EARLIEST, LATEST, EventPosition, PositionKind
from hubweir.spark.errors import DataLoss, IllegalOption
from hubweir.spark.source import hub_bounds
from hubweir.spark.source.hub_bounds import HubBounds, bounds_of
from hubweir.spark.source.offsets import EventRange, PartitionBounds
from hubweir.spark.source.positions import Positions
from hubweir.spark.source.read_options import parse_options

NewHub = Callable[..., str]
OptionsOf = Callable[..., dict[str, str]]
ClientOf = Callable[[str], BlockingEventHubClient]


def sent(client: BlockingEventHubClient, partition_id: str = "0") -> tuple[list[int], list[int]]:
    """Times and offsets of six events, in three batches that came at different times."""
    for _ in range(3):
        client.sender(partition_id=partition_id).send([b"x", b"y"])
        time.sleep(0.005)  # so that the next one has a later time
    times: list[int] = []
    offsets: list[int] = []
    receiver = client.receiver(partition_id)
    while len(times) < 6:
        run = receiver.receive(max_wait_s=5)
        assert run is not None
        times += run.enqueued_times_ms()
        offsets += run.offsets()
    receiver.close()
    return times, offsets


def test_every_kind_of_position_becomes_a_number(new_hub: NewHub, options_of: OptionsOf, client_of: ClientOf) -> None:
    hub = new_hub(partition_count=2)
    times, offsets = sent(client_of(hub))
    bounds = HubBounds(parse_options(options_of(hub), is_stream=False))

    def number(kind: PositionKind, value: int = 0, inclusive: bool = True) -> int:
        resolved = bounds.resolve(Positions(EventPosition(kind, value, inclusive)), option="startingPosition")
        assert resolved["1"] == (value if kind is PositionKind.SEQUENCE_NUMBER and not value else 0)
        return resolved["0"]

    assert (number(PositionKind.EARLIEST), number(PositionKind.LATEST)) == (0, 6)
    assert number(PositionKind.ENQUEUED_TIME, times[2]) == 2
    assert number(PositionKind.ENQUEUED_TIME, times[2] + 1) == times.index(min(t for t in times if t > times[2]))
    assert number(PositionKind.ENQUEUED_TIME, times[5], False) == 6
    assert number(PositionKind.ENQUEUED_TIME, times[5] + 60_000) == 6
    assert number(PositionKind.ENQUEUED_TIME, 0) == 0
    assert number(PositionKind.OFFSET, offsets[3]) == 3
    assert number(PositionKind.OFFSET, offsets[3], False) == 4
    assert number(PositionKind.OFFSET, offsets[5], False) == 6
    assert number(PositionKind.OFFSET, offsets[5] + 10_000) == 6


def test_partitions_may_start_at_different_places(new_hub: NewHub, options_of: OptionsOf, client_of: ClientOf) -> None:
    hub = new_hub(partition_count=3)
    for partition_id in "012":
        client_of(hub).sender(partition_id=partition_id).send([b"x"] * 5)
    bounds = HubBounds(parse_options(options_of(hub), is_stream=False))
    four = EventPosition(PositionKind.SEQUENCE_NUMBER, 4, True)
    positions = Positions(EARLIEST, {"1": LATEST, "2": four})
    assert bounds.resolve(positions, option="startingPosition") == {"0": 0, "1": 5, "2": 4}
    assert bounds.bounds() == {key: PartitionBounds(0, 5) for key in "012"}
    with pytest.raises(IllegalOption, match="partition 7"):
        bounds.resolve(Positions(EARLIEST, {"7": LATEST}), option="startingPosition")


def test_number_behind_the_end_is_refused(new_hub: NewHub, options_of: OptionsOf) -> None:
    bounds = HubBounds(parse_options(options_of(new_hub()), is_stream=False))
    beyond = Positions(EventPosition(PositionKind.SEQUENCE_NUMBER, 1, True))
    with pytest.raises(IllegalOption, match="startingPosition is sequence number 1 .* next one is 0"):
        bounds.resolve(beyond, option="startingPosition")


def test_what_retention_took_is_data_loss_or_left_out(
    new_hub: NewHub, options_of: OptionsOf, caplog: pytest.LogCaptureFixture
) -> None:
    options = parse_options(options_of("orders"), is_stream=False)
    strict, lenient = HubBounds(options), HubBounds(replace(options, fail_on_data_loss=False))
    sound = EventRange("0", 7, 9)
    assert strict.kept(sound, PartitionBounds(5, 20)) is sound
    with pytest.raises(
        DataLoss, match="2 events of partition 0 of event hub 'orders' .* 3 to 4: .* oldest one now is 5"
    ):
        strict.kept(EventRange("0", 3, 9), PartitionBounds(5, 20))
    with pytest.raises(DataLoss, match="made anew"):
        strict.kept(EventRange("0", 3, 9), PartitionBounds(0, 4))
    with caplog.at_level(logging.WARNING):
        assert lenient.kept(EventRange("0", 3, 9), PartitionBounds(5, 20)) == EventRange("0", 5, 9)
        assert lenient.kept(EventRange("0", 3, 9), PartitionBounds(15, 20)) is None
        assert lenient.kept(EventRange("0", 3, 9), PartitionBounds(0, 4)) == EventRange("0", 0, 4)
        assert lenient.kept(EventRange("0", 3, 9), PartitionBounds(0, 0)) is None
    assert len(caplog.records) == 4


def test_hub_is_not_asked_again_while_enough_is_known_to_wait(
    new_hub: NewHub, options_of: OptionsOf, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = new_hub(partition_count=2)
    sender = client_of(hub).sender(partition_id="1")
    sender.send([b"x"] * 5)
    bounds = HubBounds(parse_options(options_of(hub), is_stream=True))
    monkeypatch.setattr(hub_bounds, "_RECENT_S", 3600.0)
    first = bounds.bounds_behind({}, 0)
    assert first == {"0": PartitionBounds(0, 0), "1": PartitionBounds(0, 5)}
    sender.send([b"x"] * 3)
    assert bounds.bounds_behind({"0": 0, "1": 1}, 4) is first
    assert bounds.bounds_behind({"0": 0, "1": 2}, 4)["1"].high == 8  # too few of them were known
    sender.send([b"x"])
    assert bounds.bounds_behind({"0": 0, "1": 9}, 0)["1"].high == 9  # behind what was known
    sender.send([b"x"])
    monkeypatch.setattr(hub_bounds, "_RECENT_S", 0.0)
    assert bounds.bounds_behind({"0": 0, "1": 0}, 0)["1"].high == 10  # too old


def test_partition_that_never_held_anything_is_empty_at_zero() -> None:
    assert bounds_of(PartitionState("0", -1, -1, "-1", 0, True)) == PartitionBounds(0, 0)
    assert bounds_of(PartitionState("0", 8, 7, "9", 1, True)) == PartitionBounds(8, 8)
    assert bounds_of(PartitionState("0", 5, 7, "9", 1, True)) == PartitionBounds(
        8, 8
    )  # other services keep the first number
    assert bounds_of(PartitionState("0", 5, 7, "9", 1, False)) == PartitionBounds(5, 8)
