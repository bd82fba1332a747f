"""kill -9 under load, over and over: nothing that was accepted is lost, moved, changed or doubled (T6).

A server runs as its users run it. Clients write to every partition; at a random moment the server is killed, sometimes
in the middle of its start, sometimes it is asked to end. After each start what is new is read back and the whole
history checked; at the end everything is read once more and compared, event by event, with what was seen before.
A kill says nothing about syncs, since the page cache survives it: that is what the power cuts test.
"""

import asyncio
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hubweir.testing.log_history import PartitionHistory, Seen, make_body
from hubweir.testing.server_process import ServerProcess
from tests.crash.kill_load import Load

KILLS = 200
PARTITIONS = 4

pytestmark = [pytest.mark.crash, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("durability", ["durable", "relaxed"])
def test_nothing_accepted_is_lost_over_many_kills(
    tmp_path: Path, measure: Callable[[int], int], first_seed: int, durability: str
) -> None:
    seed, kills = first_seed, measure(KILLS // 2)
    chance = random.Random(seed)
    server = ServerProcess(tmp_path / "data")
    load = Load(server.connection_string(), PARTITIONS, seed)
    starts: list[float] = []
    ends = {"killed under load": 0, "killed while starting": 0, "asked to end": 0}
    try:
        server.start()
        asyncio.run(load.create_hub(durability))
        for _ in range(kills):
            way = chance.choices(list(ends), weights=(8, 1, 1))[0]
            end = server.kill9 if way != "asked to end" else lambda: _end(server)
            asyncio.run(load.write(chance.uniform(0.05, 0.5), end))
            if way == "killed while starting":
                server.begin()
                time.sleep(chance.uniform(0.1, 0.6))
                server.kill9()
            ends[way] += 1
            if durability == "relaxed":
                for history in load.histories:
                    history.jumps_allowed = 2 * sum(ends.values())
            starts.append(server.start())
            wrong = asyncio.run(load.read_new())
            assert not wrong, f"seed {seed}, after {ends}: {wrong[:5]}\n{server.output}"
        wrong = asyncio.run(load.read_all_again())
        assert not wrong, f"seed {seed}: {wrong[:5]}"
    finally:
        server.kill9()
    events = sum(len(history.seen) for history in load.histories)
    accepted = sum(len(history.accepted) for history in load.histories)
    starts.sort()
    print(
        f"\n{durability}, seed {seed}: {ends}; {accepted} batches accepted, {load.unknown} unknown, {events} events "
        f"read; ready again in {starts[len(starts) // 2]:.2f} s (median), {starts[-1]:.2f} s (longest)"
    )
    # A run that tested nothing must not be green.
    assert accepted > PARTITIONS * kills  # so many are written when it is read
    assert load.unknown > 0


# Where a write can be cut: in the thread and on the loop, before and after the bytes are down, at a new segment.
POINTS = {
    "durable": ("log.before_round", "log.before_new_segment", "log.before_write", "log.after_sync"),
    "relaxed": ("log.before_relaxed_write", "log.before_relaxed_sync"),
}


@pytest.mark.parametrize(
    ("durability", "point"), [(durability, point) for durability, points in POINTS.items() for point in points]
)
def test_nothing_accepted_is_lost_by_an_end_at_a_fault_point(
    tmp_path: Path, measure: Callable[[int], int], first_seed: int, durability: str, point: str
) -> None:
    seed, data = first_seed, tmp_path / "data"
    chance = random.Random(seed)
    server = ServerProcess(data)
    load = Load(server.connection_string(), PARTITIONS, seed)
    try:
        server.start()
        asyncio.run(load.create_hub(durability))
        server.stop()
        for cut in range(measure(10)):
            # A log comes to a new segment once an open, to the other points with every write; the catalog adds one.
            count = chance.randint(1, PARTITIONS if point == "log.before_new_segment" else 60)
            crashing = ServerProcess(
                data, ports=server.ports, program=(str(Path(__file__).with_name("crashing_server.py")),),
                environment={"CRASH_AT": point, "CRASH_COUNT": str(count)},
            )  # fmt: skip
            crashing.begin()
            try:
                # The catalog is a log too: its first write comes with the start, and may be the one that ends it.
                if crashing.becomes_ready():
                    asyncio.run(load.write(60, lambda: None, until=lambda: not crashing.is_running))  # noqa: B023
                assert not crashing.is_running, f"{point} was not reached {count} times"
            finally:
                crashing.kill9()
            if durability == "relaxed":
                for history in load.histories:
                    history.jumps_allowed = 2 * (cut + 1)
            server.start()
            wrong = asyncio.run(load.read_new())
            assert not wrong, f"seed {seed}, {point} time {count}: {wrong[:5]}\n{server.output}"
            server.stop()
    finally:
        server.kill9()


def _end(server: ServerProcess) -> None:
    assert server.stop() == 0, server.output


# The control arm: a checker that lets these pass would prove nothing above.


def good_history() -> PartitionHistory:
    history = PartitionHistory(3)
    for batch in range(4):
        for place in range(3):
            number = len(history.seen)
            history.seen.append(Seen(number, number * 100, 1_000 + number, make_body(3, batch, place, 3, b"filler")))
        history.accepted[batch] = 3
    return history


def replaced(history: PartitionHistory, at: int, **changes: object) -> None:
    old = history.seen[at]
    fields = {name: getattr(old, name) for name in ("sequence_number", "offset", "enqueued_time_ms", "body")}
    history.seen[at] = Seen(**{**fields, **changes})  # type: ignore[arg-type]


def renumbered(history: PartitionHistory) -> None:
    for number in range(len(history.seen)):
        replaced(history, number, sequence_number=number, offset=number * 100, enqueued_time_ms=1_000 + number)


def lose_last_batch(history: PartitionHistory) -> None:
    del history.seen[-3:]


def lose_middle_batch(history: PartitionHistory) -> None:
    del history.seen[3:6]
    renumbered(history)


def tear_last_batch(history: PartitionHistory) -> None:
    del history.accepted[3]
    del history.seen[-1]


def tear_middle_batch(history: PartitionHistory) -> None:
    del history.seen[4]
    renumbered(history)


def store_twice(history: PartitionHistory) -> None:
    history.seen[6:6] = history.seen[3:6]
    renumbered(history)


def swap_batches(history: PartitionHistory) -> None:
    history.seen[3:6], history.seen[6:9] = history.seen[6:9], history.seen[3:6]
    renumbered(history)


def change_a_bit(history: PartitionHistory) -> None:
    body = bytearray(history.seen[5].body)
    body[14] ^= 1
    replaced(history, 5, body=bytes(body))


def other_partition(history: PartitionHistory) -> None:
    replaced(history, 5, body=make_body(2, 1, 2, 3, b"filler"))


def use_a_number_twice(history: PartitionHistory) -> None:
    replaced(history, 5, sequence_number=4)


def offset_goes_back(history: PartitionHistory) -> None:
    replaced(history, 5, offset=400)


def time_goes_back(history: PartitionHistory) -> None:
    replaced(history, 5, enqueued_time_ms=999)


FAULTS = [
    lose_last_batch, lose_middle_batch, tear_last_batch, tear_middle_batch, store_twice, swap_batches, change_a_bit,
    other_partition, use_a_number_twice, offset_goes_back, time_goes_back,
]  # fmt: skip


@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__)
def test_the_checker_finds_a_planted_fault(plant: Callable[[PartitionHistory], None]) -> None:
    history = good_history()
    assert history.check() == []
    plant(history)
    assert history.check()


def test_the_checker_finds_what_changed_between_two_reads() -> None:
    history = good_history()
    again = list(history.seen)
    assert history.again(again) == []
    again[4] = again[5]
    assert history.again(again)
    assert history.again(history.seen[:-1])


def test_numbers_may_be_skipped_as_often_as_is_allowed_and_no_more() -> None:
    history = good_history()
    for at in range(6, len(history.seen)):
        replaced(history, at, sequence_number=1_000 + at)
    assert history.check()
    history.jumps_allowed = 1
    assert history.check() == []
    for at in range(9, len(history.seen)):
        replaced(history, at, sequence_number=2_000 + at)
    assert history.check()


def test_a_batch_whose_outcome_is_unknown_may_be_there_or_not() -> None:
    there, absent = good_history(), good_history()
    del there.accepted[3], absent.accepted[3]
    lose_last_batch(absent)
    assert there.check() == absent.check() == []


def test_what_a_lost_process_had_sent_may_be_stored_late_once_and_only_where_nobody_answered_for_it() -> None:
    history = good_history()
    swap_batches(history)  # batch 1 stands behind batch 2
    del history.accepted[1]
    assert history.check()
    history.may_be_late = True
    assert history.check() == []
    history.accepted[1] = 3
    assert history.check()
    del history.accepted[1]
    history.seen += history.seen[6:9]
    renumbered(history)
    assert history.check()
