from hypothesis import given
from hypothesis import strategies as st

from hubweir.spark.captured_file import EventTimes
from hubweir.spark.captured_places import CapturedName
from hubweir.spark.captured_tasks import parts_of, wanted_files

HOUR_MS = 3_600_000


def name(partition_id: str, second: int, size: int = 10) -> CapturedName:
    return CapturedName(f"{partition_id}/{second}.avro", size, partition_id, second)


def test_partitions_and_hours_are_told_by_names() -> None:
    names = [name(partition_id, hour * 3600) for hour in range(5, -1, -1) for partition_id in ("10", "2")]
    everything = wanted_files(names, None, EventTimes())
    assert [(each.partition_id, each.second // 3600) for each in everything] == [
        *(("2", hour) for hour in range(6)),
        *(("10", hour) for hour in range(6)),
    ]
    some = wanted_files(names, frozenset({"2"}), EventTimes(2 * HOUR_MS, 3 * HOUR_MS))
    # What was closed at two may have an event of two; what was closed at four was opened at three, give or take.
    assert [each.second // 3600 for each in some] == [2, 3, 4]


@given(
    st.lists(st.integers(1, 3 * 3600), min_size=1, max_size=20),
    st.lists(st.integers(0, 899_999), min_size=1, max_size=20),
    st.integers(0, 10 * HOUR_MS),
    st.integers(0, 2 * HOUR_MS),
)
def test_no_file_with_a_wanted_event_is_left_out(gaps: list[int], ages: list[int], since: int, length: int) -> None:
    """Windows of at most 15 minutes, closed at the second that names them; events anywhere inside."""
    times = EventTimes(since, since + length)
    names, events, closed_s = [], [], 0
    for place, gap in enumerate(gaps):
        opened_s, closed_s = closed_s, closed_s + gap
        names.append(name("0", closed_s))
        age_ms = min(ages[place % len(ages)], (closed_s - opened_s) * 1000)
        events.append((closed_s, closed_s * 1000 - age_ms))
    read = {each.second for each in wanted_files(names, None, times)}
    assert {closed for closed, at_ms in events if times.since_ms <= at_ms < times.until_ms} <= read


@given(st.lists(st.integers(0, 500), max_size=20), st.integers(1, 200))
def test_every_byte_is_in_one_part_and_small_files_share_a_task(sizes: list[int], task_bytes: int) -> None:
    files = [name("0", second, size) for second, size in enumerate(sizes)]
    tasks = parts_of(files, task_bytes)
    read: dict[int, int] = {}
    for task in tasks:
        assert len(task) == 1 or sum(part.end - part.start for part in task) <= task_bytes
        for part in task:
            assert part.start == read.get(part.file.second, 0)
            assert part.end - part.start <= task_bytes
            read[part.file.second] = part.end
    assert read == dict(enumerate(sizes))


def test_joined_files_are_one_task() -> None:
    assert [len(task) for task in parts_of([name("0", second, 10) for second in range(7)], 30)] == [3, 3, 1]
