from hypothesis import given
from hypothesis import strategies as st

from hubweir.spark.captured.avro_file import EventTimes
from hubweir.spark.captured.file_parts import parts_of, wanted_files
from hubweir.spark.captured.places import CapturedName

HOUR_MS = 3_600_000


def name(partition_id: str, second: int, size: int = 10) -> CapturedName:
    return CapturedName(f"{partition_id}/{second}.avro", size, partition_id, second)


def never_asked(file: CapturedName, time_ms: int) -> bool:
    raise AssertionError(f"{file} was looked into")


def test_partitions_and_hours_are_told_by_names() -> None:
    names = [name(partition_id, hour * 3600) for hour in range(5, -1, -1) for partition_id in ("10", "2")]
    everything = wanted_files(names, None, EventTimes(), never_asked)
    assert [(each.partition_id, each.second // 3600) for each in everything] == [
        *(("2", hour) for hour in range(6)),
        *(("10", hour) for hour in range(6)),
    ]
    some = wanted_files(names, frozenset({"2"}), EventTimes(since_ms=2 * HOUR_MS), never_asked)
    # What was closed at two may have an event of two.
    assert [each.second // 3600 for each in some] == [2, 3, 4, 5]


def test_files_of_two_hubs_in_one_folder_have_an_order_each() -> None:
    """The first event of a file tells of those behind it, of its own hub only."""
    names = [CapturedName(f"{hub}/{hour}", 10, "0", hour * 3600, hub) for hour in range(1, 9) for hub in ("a", "b")]
    until_ms = 3 * HOUR_MS
    # Hub b's capture was away for eight hours: all its files were closed late.
    begin_ms = {"a": [hour * HOUR_MS for hour in range(9)], "b": [hour * HOUR_MS // 4 for hour in range(9)]}
    found = wanted_files(
        names, None, EventTimes(until_ms=until_ms), lambda file, ms: begin_ms[file.series][file.second // 3600 - 1] < ms
    )
    assert [each.path for each in found] == ["a/1", "a/2", "a/3", *(f"b/{hour}" for hour in range(1, 9))]


@given(
    st.lists(st.tuples(st.integers(1, 3 * 3600), st.integers(0, 5)), min_size=1, max_size=20),
    st.integers(0, 10 * HOUR_MS),
    st.integers(0, 2 * HOUR_MS),
)
def test_no_file_with_a_wanted_event_is_left_out(files: list[tuple[int, int]], since: int, length: int) -> None:
    """files: seconds until the next is closed, and how many events it has, in order, however late it was closed."""
    times = EventTimes(since, since + length)
    closed_s, names = 0, []
    events_ms: dict[int, list[int]] = {}
    last_ms = 0
    for gap, count in files:
        closed_s += gap
        names.append(name("0", closed_s))
        events_ms[closed_s] = [last_ms + (closed_s * 1000 - last_ms) * place // 7 for place in range(1, count + 1)]
        last_ms = max([last_ms, *events_ms[closed_s]])

    def begins_before(file: CapturedName, time_ms: int) -> bool | None:
        found = events_ms[file.second]
        return found[0] < time_ms if found else None

    read = {each.second for each in wanted_files(names, None, times, begins_before)}
    wanted = {key for key, found in events_ms.items() if any(times.since_ms <= ms < times.until_ms for ms in found)}
    assert wanted <= read
    behind = {key for key, found in events_ms.items() if found and found[0] >= times.until_ms}
    assert not behind & read


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
