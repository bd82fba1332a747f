"""A partition on a real log: positions, properties, waiting readers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.event_hub.event_position import EventPosition, PositionKind, parse_selector
from hubweir.event_hub.partition import Partition, PartitionProperties
from hubweir.kernels.stored_batch import RECORD_HEADER_SIZE
from hubweir.messaging_store.control_batch import CONTROL_IDLE_MARK, IDLE, pack_control
from hubweir.messaging_store.log import Durability, Refused, Run
from hubweir.messaging_store.record import begin_batch, headers_of, seal_batch
from hubweir.messaging_store.retention import expire
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.testing.answers import made_log
from hubweir.testing.simulated_env import START_MS, SimulatedEnv

HOUR_MS = 3_600_000
MESSAGE = b"\x00\x53\x75\xa0\x03abc"
RECORD = RECORD_HEADER_SIZE + len(MESSAGE)


class Owner:
    """One partition with its process, and a log id of its own for every partition made."""

    def __init__(self, seed: int = 5) -> None:
        self.env = SimulatedEnv(seed)
        self.store = MessagingStore.open(self.env, "store-0")
        self.partition = self.another()

    def another(self) -> Partition:
        return Partition(made_log(self.env, self.store, self.env.new_id()), "hub", "0")

    def append(self, count: int = 1, *, partition: Partition | None = None) -> None:
        """Append a batch of equal events and wait until it is visible."""
        answers: list[object] = []
        now_ms = self.store.clock.stamp_ms()
        (partition or self.partition).log.append(run_of(count), now_ms=now_ms, on_done=answers.append)
        self.env.run_for(1_000)
        assert len(answers) == 1 and not isinstance(answers[0], Refused)

    def resolve(self, text: str | EventPosition) -> int:
        position = parse_selector(text) if isinstance(text, str) else text
        answers: list[int | Refused] = []
        answer = self.partition.resolve(position, answers.append)
        if not isinstance(answer, int):
            assert not answers
            self.env.run_for(1_000)
            (answer,) = answers
        assert isinstance(answer, int)
        return answer


def run_of(count: int) -> bytearray:
    run = bytearray()
    start = begin_batch(run)
    absent = b"\xff\xff\xff\xff"
    for _ in range(count):
        run += RECORD.to_bytes(4, "big") + bytes(4) + absent * 4 + bytes(4) + absent + MESSAGE
    seal_batch(run, start, count=count)
    return run


@pytest.fixture
def owner() -> Owner:
    return Owner()


def filled() -> Owner:
    """Ten events: sequence numbers 0-3, 4-6, 7-9 at three different times."""
    owner = Owner()
    for count in (4, 3, 3):
        owner.append(count)
        owner.env.run_for(10_000)
    return owner


def times(owner: Owner) -> list[int]:
    run = owner.partition.log.read(0, max_bytes=1 << 20, on_done=lambda _: None)
    assert isinstance(run, Run)
    return [header.enqueued_time_ms for header in headers_of(run.data)]


ANNOTATION, OFFSET, SEQUENCE, TIME = "amqp.annotation.", "x-opt-offset", "x-opt-sequence-number", "x-opt-enqueued-time"


@pytest.mark.parametrize(
    ("position", "first"),
    [
        (f"{OFFSET} > '-1'", 0),
        (f"{OFFSET} > '@latest'", 10),
        (f"{OFFSET} >= '@latest'", 10),
        (f"{OFFSET} > '0'", 1),
        (f"{OFFSET} >= '0'", 0),
        (f"{OFFSET} > {RECORD}", 2),
        (f"{OFFSET} >= {RECORD}", 1),
        (f"{OFFSET} > {RECORD - 1}", 1),
        (f"{OFFSET} >= {4 * RECORD}", 4),
        (f"{OFFSET} > {9 * RECORD}", 10),
        (f"{OFFSET} >= {9 * RECORD}", 9),
        (f"{OFFSET} >= {10 * RECORD}", 10),
        (f"{SEQUENCE} > '-1'", 0),
        (f"{SEQUENCE} >= '-1'", 0),
        (f"{SEQUENCE} > '-999'", 0),
        (f"{SEQUENCE} > '0'", 1),
        (f"{SEQUENCE} >= 5", 5),
        (f"{SEQUENCE} > 9", 10),
        (f"{SEQUENCE} >= 10", 10),
        (f"{TIME} > '-62135596800000'", 0),
        (f"{TIME} >= 0", 0),
        (f"{TIME} > 99999999999999", 10),
        (f"{TIME} > '9223372036854775807'", 10),
    ],
)
def test_a_position_starts_at_the_event_that_clients_expect(position: str, first: int) -> None:
    assert filled().resolve(ANNOTATION + position) == first


@pytest.mark.parametrize(
    ("position", "needle"),
    [
        (
            f"{SEQUENCE} > 10",
            "The supplied sequence number '10' is invalid. The last sequence number in the system is '9'.",
        ),
        (f"{SEQUENCE} >= 11", "The supplied sequence number '11' is invalid."),
        (f"{SEQUENCE} > '9223372036854775807'", "'9223372036854775807'"),
        (f"{OFFSET} > {9 * RECORD + 1}", f"The last offset in the system is '{9 * RECORD}'."),
        (f"{OFFSET} >= {10 * RECORD + 1}", "The supplied offset"),
    ],
)
def test_a_position_beyond_the_end_is_refused_with_the_value_and_the_last_one(position: str, needle: str) -> None:
    with pytest.raises(ServiceError) as refused:
        filled().resolve(ANNOTATION + position)
    assert refused.value.condition is ARGUMENT_ERROR
    assert needle in refused.value.text
    assert "partition 0 of event hub 'hub'" in refused.value.text


def test_a_time_means_whole_milliseconds_and_leaves_its_own_events_out_or_takes_them_in() -> None:
    owner = filled()
    first, second, third = times(owner)
    assert first < second < third
    assert owner.resolve(f"{ANNOTATION}{TIME} > '{first}'") == 4
    assert owner.resolve(f"{ANNOTATION}{TIME} >= '{first}'") == 0
    assert owner.resolve(f"{ANNOTATION}{TIME} > '{second - 1}'") == 4
    assert owner.resolve(f"{ANNOTATION}{TIME} > '{third}'") == 10
    assert owner.resolve(f"{ANNOTATION}{TIME} >= '{third}'") == 7


@pytest.mark.parametrize(
    "position",
    [
        f"{OFFSET} > '-1'",
        f"{OFFSET} > '@latest'",
        f"{OFFSET} >= 0",
        f"{SEQUENCE} > '-1'",
        f"{SEQUENCE} >= '-1'",
        f"{SEQUENCE} >= 0",
        f"{TIME} > '-62135596800000'",
    ],
)
def test_an_empty_partition_takes_its_own_values_as_a_start(owner: Owner, position: str) -> None:
    assert owner.resolve(ANNOTATION + position) == 0


def test_an_empty_partition_has_properties_that_say_so(owner: Owner) -> None:
    assert owner.partition.info() == PartitionProperties(-1, -1, -1, None, is_empty=True, size_bytes=0)


def test_properties_are_those_of_the_newest_event_and_reading_them_changes_nothing() -> None:
    owner = filled()
    expected = PartitionProperties(0, 9, 9 * RECORD, times(owner)[-1], is_empty=False, size_bytes=10 * RECORD)
    assert owner.partition.info() == expected
    assert owner.partition.info() == expected
    owner.append(5)
    assert owner.partition.info().last_sequence_number == 14


def test_first_events_of_equal_size_have_equal_offsets_in_every_partition(owner: Owner) -> None:
    other = owner.another()
    owner.append(2)
    owner.append(2, partition=other)
    assert other.info().last_offset == owner.partition.info().last_offset == RECORD


def test_what_retention_took_shows_as_a_jump_to_the_oldest_event_kept() -> None:
    owner = Owner()
    log = made_log(owner.env, owner.store, owner.env.new_id())
    log.set_roll_age(HOUR_MS // 8)
    owner.partition = Partition(log, "hub", "0")
    owner.append(10)
    owner.env.run_for(2 * HOUR_MS)
    owner.append(1)
    before = owner.partition.info()
    expire(log, now_ms=owner.env.now_ms(), retention_ms=HOUR_MS)
    owner.env.run_for(5_000)
    after = owner.partition.info()
    assert after.begin_sequence_number == 10
    assert (after.last_sequence_number, after.last_offset) == (before.last_sequence_number, before.last_offset)
    for below in (f"{OFFSET} > '-1'", f"{OFFSET} >= 0", f"{OFFSET} > 5", f"{SEQUENCE} >= '0'", f"{SEQUENCE} > 3"):
        assert owner.resolve(ANNOTATION + below) == 10
    assert owner.resolve(f"{ANNOTATION}{SEQUENCE} > '10'") == 11


def test_a_waiting_reader_is_called_once_when_its_event_is_visible_and_not_before(owner: Owner) -> None:
    calls: list[str] = []
    owner.partition.wait(0, lambda: calls.append("first"))
    owner.partition.wait(2, lambda: calls.append("third"))
    owner.partition.wait(3, lambda: calls.append("fourth"))
    run = run_of(2)
    owner.partition.log.append(run, now_ms=START_MS, on_done=lambda _: calls.append("accepted"))
    assert calls == []
    owner.env.run_for(1_000)
    assert sorted(calls) == ["accepted", "first"]
    owner.append(1)
    assert sorted(calls) == ["accepted", "first", "third"]
    owner.append(1)
    owner.append(1)
    assert sorted(calls) == ["accepted", "first", "fourth", "third"]


def test_a_cancelled_reader_is_not_called_even_when_another_cancels_it_in_the_same_wake(owner: Owner) -> None:
    calls: list[str] = []
    second = [owner.partition.wait(0, lambda: calls.append("never"))]
    second.pop().cancel()
    later: list[Callable[[], None]] = []
    owner.partition.wait(0, lambda: (calls.append("one"), later[0]()))
    third = owner.partition.wait(0, lambda: calls.append("three"))
    later.append(third.cancel)
    owner.append(1)
    assert calls == ["one"]
    third.cancel()


def test_a_reader_that_waits_again_from_its_callback_is_called_for_the_next_event(owner: Owner) -> None:
    calls: list[int] = []

    def again() -> None:
        calls.append(owner.partition.log.bounds.next_index)
        owner.partition.wait(owner.partition.log.bounds.next_index, again)

    owner.partition.wait(0, again)
    owner.append(1)
    owner.append(3)
    assert calls == [1, 4]


def test_an_earliest_position_needs_no_search() -> None:
    assert filled().resolve(EventPosition(PositionKind.EARLIEST)) == 0


def test_after_an_unclean_start_of_a_relaxed_hub_the_last_number_is_that_of_an_event() -> None:
    env = SimulatedEnv(6)
    log_id, durability = env.new_id(), Durability.RELAXED
    for starts in range(3):
        partition = Partition(
            made_log(env, MessagingStore.open(env, "store-0"), log_id, durability=durability), "hub", "0"
        )
        if not starts:
            partition.log.append(run_of(4), now_ms=env.now_ms(), on_done=lambda outcome: None)
            env.run_for(1_000)
        found = partition.info()
        assert (found.begin_sequence_number, found.last_sequence_number, found.is_empty) == (0, 3, False)
        if starts:
            assert partition.log.bounds.next_index > 1_000_000, "numbers were skipped"
            with pytest.raises(ServiceError, match="'3'"):
                partition.resolve(EventPosition(PositionKind.SEQUENCE_NUMBER, 1 << 40), lambda outcome: None)
        env.crash()
        env = env.restart()


def test_a_relaxed_hub_that_never_had_an_event_has_none_after_an_unclean_start() -> None:
    env = SimulatedEnv(7)
    log_id = env.new_id()
    log = made_log(env, MessagingStore.open(env, "store-0"), log_id, durability=Durability.RELAXED)
    log.append(pack_control(CONTROL_IDLE_MARK, IDLE), now_ms=0, on_done=lambda outcome: None)
    env.run_for(100)
    env.crash()
    env = env.restart()
    log = made_log(env, MessagingStore.open(env, "store-0"), log_id, durability=Durability.RELAXED)
    found = Partition(log, "hub", "0").info()
    assert (found.begin_sequence_number, found.last_sequence_number, found.is_empty) == (-1, -1, True)


def test_a_reader_that_faults_when_it_is_woken_keeps_none_of_the_others_asleep() -> None:
    owner = Owner()
    woken: list[int] = []
    owner.partition.wait(0, lambda: woken.append(1 // 0))
    owner.partition.wait(0, lambda: woken.append(2))
    owner.append()
    assert woken == [2]
