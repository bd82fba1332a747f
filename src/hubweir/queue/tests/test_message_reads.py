"""What receivers of one turn share when their messages are read."""

from __future__ import annotations

from typing import Any

from hubweir.queue.tests.conftest import QueueBench, bodies, opened


def read_indexes(bench: QueueBench) -> list[int]:
    """Where the log is read from now on."""
    found: list[int] = []
    read = bench.log.read

    def watched(index: int, **named: Any) -> Any:
        found.append(index)
        return read(index, **named)

    bench.log.read = watched  # type: ignore[method-assign]
    return found


def test_receivers_of_one_turn_read_what_the_log_has_in_memory_once(bench: QueueBench) -> None:
    bench.send(*"abcdef")
    indexes, answers = read_indexes(bench), list[Any]()
    for _ in range(3):
        bench.fragment.receive(bench.receiver(), max_count=2, max_bytes=1 << 20, on_done=answers.append)
    bench.run_for(50)
    assert [bodies(opened(each)) for each in answers] == [["a", "b"], ["c", "d"], ["e", "f"]]
    assert len(indexes) == 1


def test_nothing_of_a_turn_is_kept_behind_it(bench: QueueBench) -> None:
    bench.send("a")
    indexes = read_indexes(bench)
    assert bodies(bench.receive()) == bodies(bench.peek()) == bodies(bench.peek()) == ["a"]
    assert len(indexes) == 3
