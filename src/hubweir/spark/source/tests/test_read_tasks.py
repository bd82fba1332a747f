import pickle

from hypothesis import given
from hypothesis import strategies as st

from hubweir.spark.source.offsets import EventRange
from hubweir.spark.source.read_tasks import EVENTS_A_TASK, ReadTask, tasks_of

LENGTHS = st.lists(st.integers(1, 200_000), max_size=12)


def made(lengths: list[int]) -> list[EventRange]:
    return [EventRange(str(place), 1_000, 1_000 + length) for place, length in enumerate(lengths)]


@given(LENGTHS, st.none() | st.integers(1, 40))
def test_every_event_is_in_exactly_one_task(lengths: list[int], min_partitions: int | None) -> None:
    found = made(lengths)
    tasks = tasks_of(found, min_partitions)
    assert [task.ranges for task in tasks] == [task.ranges for task in tasks_of(found, min_partitions)]
    read: dict[str, int] = {}
    pieces = sorted((one for task in tasks for one in task.ranges), key=lambda one: (int(one.partition_id), one.start))
    for one in pieces:
        assert one.start == read.get(one.partition_id, 1_000) and one.end > one.start
        read[one.partition_id] = one.end
    assert read == {one.partition_id: one.end for one in found}
    if min_partitions is not None:
        assert len(tasks) >= min(min_partitions, sum(lengths))


def test_small_batch_is_one_task_and_a_large_one_has_a_task_a_partition() -> None:
    assert len(tasks_of(made([250] * 4), None)) == 1
    assert [len(task.ranges) for task in tasks_of(made([EVENTS_A_TASK // 2] * 4), None)] == [2, 2]
    assert len(tasks_of(made([10 * EVENTS_A_TASK] * 4), None)) == 4
    assert tasks_of([], 4) == []


def test_widest_ranges_are_split_for_more_tasks() -> None:
    tasks = tasks_of(made([90, 10]), 4)
    assert [(one.partition_id, len(one)) for task in tasks for one in task.ranges] == [
        ("0", 30),
        ("0", 30),
        ("0", 30),
        ("1", 10),
    ]
    assert len(tasks_of(made([3]), 10)) == 3


def test_task_travels_small_and_says_what_it_reads() -> None:
    task = ReadTask((EventRange("0", 5, 9), EventRange("3", 0, 2)))
    again = pickle.loads(pickle.dumps(task))
    assert again.ranges == task.ranges
    assert repr(again) == "ReadTask(0: 5…9, 3: 0…2)"
    assert len(pickle.dumps(task)) < 300
